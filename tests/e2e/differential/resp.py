"""RESP as bytes: a connection that hands over each reply as it came, the values in a reply, commands in both forms."""
import re
import socket


class Closed(Exception):
    """The other side ended, cut or did not answer; the text says which."""


class Connection:
    def __init__(self, port, timeout=8.0):
        self.port, self.timeout = port, timeout
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.at = bytearray(), 0

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(f"cannot send: {error}") from None

    def _more(self):
        if self.at > 1 << 16:
            del self.buffer[:self.at]
            self.at = 0
        try:
            part = self.socket.recv(1 << 18)
        except TimeoutError:
            raise Closed(f"no answer within {self.socket.gettimeout()} s, "
                         f"after {bytes(self.buffer[self.at:])[:80]!r}") from None
        except OSError as error:
            raise Closed(str(error)) from None
        if not part:
            raise Closed(f"connection closed, after {bytes(self.buffer[self.at:])[:80]!r}")
        self.buffer += part

    def reply(self):
        """The bytes of the next reply, or push message."""
        length = self._frame()
        raw = bytes(self.buffer[self.at:self.at + length])
        self.at += length
        return raw

    def _frame(self):
        at, wanted = 0, 1  # at: from self.at on, which _more() may move.
        while wanted:
            while (end := self.buffer.find(b"\r\n", self.at + at)) < 0:
                self._more()
            kind = self.buffer[self.at + at]
            wanted -= 1
            if kind in b"$=!*~>%|":
                count = int(self.buffer[self.at + at + 1:end])
                at = end + 2 - self.at
                if kind in b"$=!":
                    at += count + 2 if count >= 0 else 0
                    while len(self.buffer) - self.at < at:
                        self._more()
                elif count > 0:
                    wanted += count * 2 if kind in b"%|" else count
                if kind == ord("|"):
                    wanted += 1  # What the attributes belong to.
            elif kind in b"+-:,#(_":
                at = end + 2 - self.at
            else:
                raise Closed(f"not RESP: {bytes(self.buffer[self.at:self.at + at + 60])!r}")
        return at

    def ask(self, *arguments):
        self.send(encode(arguments))
        return self.reply()

    def silent(self, seconds=0.1):
        """Whether nothing comes for a while."""
        if self.at < len(self.buffer):
            return False
        self.socket.settimeout(seconds)
        try:
            self._more()
            return False
        except Closed as closed:
            return "no answer" in str(closed)
        finally:
            self.socket.settimeout(self.timeout)

    def closed(self, seconds=2.0):
        """Whether the other side ends the connection in time."""
        self.socket.settimeout(seconds)
        try:
            while True:
                self._more()
        except Closed as closed:
            return "no answer" not in str(closed)
        finally:
            self.socket.settimeout(self.timeout)


def as_bytes(argument):
    return argument if isinstance(argument, bytes) else str(argument).encode()


def encode(arguments):
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in map(as_bytes, arguments):
        parts.append(b"$%d\r\n%b\r\n" % (len(argument), argument))
    return b"".join(parts)


_PLAIN = re.compile(rb"[A-Za-z0-9_:.{}*?()\[\]+-]+")
_ESCAPES = {ord("\n"): b"\\n", ord("\r"): b"\\r", ord("\t"): b"\\t", 7: b"\\a", 8: b"\\b", ord('"'): b'\\"',
            ord("\\"): b"\\\\"}


def quote(argument):
    """As an inline command takes any bytes."""
    if _PLAIN.fullmatch(argument):
        return argument
    if not argument.strip(b" abcdefghijklmnopqrstuvwxyz"):
        return b"'" + argument + b"'"
    plain = (_ESCAPES.get(c) or (bytes([c]) if 32 <= c < 127 else b"\\x%02x" % c) for c in argument)
    return b'"' + b"".join(plain) + b'"'


def encode_inline(arguments):
    return b" ".join(quote(as_bytes(argument)) for argument in arguments) + b"\r\n"


def parse(raw):
    """(kind, value) of a reply; the value of an aggregate is a list (of keys and values in turn for a map)."""
    value, end = _parse(raw, 0)
    assert end == len(raw), raw[:200]
    return value


def _parse(raw, at):
    end = raw.index(b"\r\n", at)
    kind, line, at = chr(raw[at]), raw[at + 1:end], end + 2
    if kind in "$=!":
        size = int(line)
        return ((kind, None), at) if size < 0 else ((kind, raw[at:at + size]), at + size + 2)
    if kind in "*~>%":
        count = int(line)
        if count < 0:
            return (kind, None), at
        values = []
        for _ in range(count * 2 if kind == "%" else count):
            value, at = _parse(raw, at)
            values.append(value)
        return (kind, values), at
    return (kind, int(line) if kind == ":" else line), at
