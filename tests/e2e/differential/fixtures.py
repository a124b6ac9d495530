"""What the tests that compare with Redis start."""
import pytest

from .bench import Bench


@pytest.fixture
def sides(make_cluster):
    """A proxy over five members, and the plain server: member 6, which the spec does not name."""
    bench = Bench.of_six(make_cluster(members=6, proxies=1))
    yield bench
    bench.close()
