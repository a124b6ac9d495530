"""What stops a bench or one row of it, in words for the user."""


class BenchError(Exception):
    pass


class OutOfTime(BenchError):
    pass
