"""Values to 512 MB through the proxy: passed on in pieces, so that neither the proxy's memory nor other clients feel
them; with clients that stall or leave and members that die in the middle, in RESP2, RESP3 and TLS."""
import hashlib
import random
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
import redis

from differential.resp import encode
from harness.process import wait_until
from test_46_tls import Authority, tls_flags, tls_port

MB = 1 << 20
HUGE = 300 * MB
GROWTH = 32 * MB
BLOCK = random.Random(84).randbytes(MB + 13)  # No divisor of anything, so that no two parts of a value are the same.


def parts(size):
    """A value in parts, so that this test need not hold it either."""
    left, at = size, 0
    while left:
        part = BLOCK[at:at + min(left, 65536)]
        yield part
        left -= len(part)
        at = (at + len(part) * 7) % (len(BLOCK) - 65536)


def digest(size):
    total = hashlib.blake2b()
    for part in parts(size):
        total.update(part)
    return total.hexdigest()


class Raw:
    """A socket that sends and takes values in parts."""

    def __init__(self, port, small_window=False, ca=None, protocol=2):
        self.socket = socket.socket()
        if small_window:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        self.rest = b""
        if ca:
            context = ssl.create_default_context(cafile=ca["ca.pem"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        if protocol == 3:
            self.send(b"HELLO 3\r\n")
            while not self.rest.endswith(b"modules\r\n*0\r\n"):
                self.rest += self.socket.recv(65536)
            self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def take(self, size):
        while len(self.rest) < size:
            part = self.socket.recv(1 << 18)
            if not part:
                raise EOFError
            self.rest += part
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def line(self):
        while b"\r\n" not in self.rest:
            part = self.socket.recv(65536)
            if not part:
                raise EOFError
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\r\n")
        return line

    def begin_set(self, key, size):
        self.send(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n" % (len(key), key, size))

    def set(self, key, size):
        self.begin_set(key, size)
        for part in parts(size):
            self.send(part)
        self.send(b"\r\n")
        return self.line()

    def get(self, key, begun=lambda: None):
        """Size and hash of the value."""
        self.send(encode(["GET", key]))
        header = self.line()
        assert header[:1] == b"$", header
        begun()
        left = size = int(header[1:])
        total = hashlib.blake2b()
        while left:
            part = self.rest[:left] or self.socket.recv(min(left, 1 << 18))
            self.rest = self.rest[len(part):] if self.rest else b""
            if not part:
                raise EOFError
            total.update(part)
            left -= len(part)
        assert self.take(2) == b"\r\n"
        return size, total.hexdigest()


class Bystander(threading.Thread):
    """GETs of a small value of the same member; counts them, and keeps how long the slowest took."""

    def __init__(self, client, key):
        super().__init__()
        self.client, self.key = client, key
        self.count, self.slowest, self.problems, self.stopping = 0, 0.0, [], False
        self.start()

    def run(self):
        while not self.stopping:
            begin = time.monotonic()
            try:
                if self.client.get(self.key) != b"small":
                    self.problems.append("a wrong value")
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it.
                self.problems.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - begin)
            self.count += 1
            time.sleep(0.002)

    def finish(self):
        self.stopping = True
        self.join()
        assert not self.problems, self.problems[:5]
        return self.count


def peak(process):
    """The most memory that was ever resident since forget_peak(), in bytes."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def forget_peak(process):
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    return peak(process)


@pytest.fixture
def one(make_cluster):
    # A server that copies 300 MB for its answer may need a second on a busy machine.
    return make_cluster(members=1, proxies=1).start_static(options=("--request-timeout-ms", "5000"))


def test_300_mb_pass_through_a_proxy_that_does_not_grow(one):
    proxy, member = one.proxies[0], one.members[0]
    client = one.client()
    client.set("small", "small")
    wanted = digest(HUGE)
    bystanders = []
    with Raw(proxy.port) as raw:
        before = forget_peak(proxy)
        bystanders.append(Bystander(one.client(), "small"))
        assert raw.set(b"huge", HUGE) == b"+OK"
        bystanders[0].finish()
        after_set = peak(proxy)
        assert member.client.strlen("huge") == HUGE
        # From when the answer has begun: a command that was already on its way behind it would wait for it, and make
        # the proxy take more than this client can.
        assert raw.get("huge", lambda: bystanders.append(Bystander(one.client(), "small"))) == (HUGE, wanted)
        bystanders[1].finish()
        after_get = peak(proxy)
    print(f"growth: SET {(after_set - before) / MB:.1f} MiB, GET {(after_get - before) / MB:.1f} MiB; meanwhile",
          ", ".join(f"{b.count} small GETs, the slowest {b.slowest * 1000:.0f} ms" for b in bystanders))
    assert after_get - before < GROWTH
    assert all(b.count > 20 for b in bystanders)
    member.client.delete("huge")


def test_a_client_that_reads_slowly_holds_up_neither_memory_nor_others(one):
    proxy = one.proxies[0]
    one.client().set("small", "small")
    with Raw(proxy.port) as raw:
        assert raw.set(b"huge", 48 * MB) == b"+OK"
    wanted = digest(48 * MB)
    before = forget_peak(proxy)
    with Raw(proxy.port, small_window=True) as slow:
        slow.send(encode(["GET", "huge"]))
        assert slow.line() == b"$%d" % (48 * MB)
        bystander = Bystander(one.client(), "small")
        time.sleep(1.5)
        assert bystander.finish() > 20
        grown = peak(proxy) - before
        total = hashlib.blake2b()
        left = 48 * MB
        while left:
            part = slow.take(min(left, 65536))
            total.update(part)
            left -= len(part)
        assert total.hexdigest() == wanted
    assert grown < GROWTH, grown / MB


@pytest.mark.parametrize("protocol", [2, 3])
def test_tls_and_both_protocols(make_cluster, tmp_path, protocol):
    ca = Authority(tmp_path / "ca")
    ca.issue("proxy")
    cluster = make_cluster(members=2, proxies=0)
    spec = cluster.write_spec()
    proxy = cluster.add_proxy(*tls_flags(ca), spec=spec)
    before = forget_peak(proxy)
    with Raw(proxy.port, protocol=protocol) as plain, Raw(tls_port(proxy), ca=ca, protocol=protocol) as secure:
        for size in (16306, 65314, MB - 1, MB, MB + 1, 16 * MB):
            for raw, reader in ((plain, secure), (secure, plain)):
                assert raw.set(b"key-%d" % size, size) == b"+OK"
                assert reader.get(f"key-{size}") == (size, digest(size))
    assert peak(proxy) - before < GROWTH


def test_one_byte_at_a_time(one):
    with Raw(one.proxies[0].port) as raw:
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for size in (16306, MB + 1):
            value = b"".join(parts(size))
            command = encode(["SET", "k", value, "EX", "100"])
            edge = 20000 if size == 16306 else 300
            for byte in command[:edge]:
                raw.send(bytes([byte]))
            raw.send(command[edge:-edge])
            for byte in command[-edge:] if len(command) > edge else b"":
                raw.send(bytes([byte]))
            assert raw.line() == b"+OK"
            assert raw.get("k") == (size, digest(size))


def test_clients_that_stall_or_leave_and_a_member_that_dies(one):
    proxy, member = one.proxies[0], one.members[0]
    client = one.client()
    client.set("small", "small")
    bystander = Bystander(one.client(), "small")
    with Raw(proxy.port) as stalled, Raw(proxy.port) as leaving:
        for raw, key in ((stalled, b"stalled"), (leaving, b"left")):
            raw.begin_set(key, 64 * MB)
            raw.send(BLOCK[:MB] * 20)
        leaving.socket.close()
        time.sleep(0.5)
        assert client.exists("stalled", "left") == 0
        bystander.finish()
        # The member dies: the reply of a SET has not begun, so its client gets an error once it sent the rest; half of
        # an answer cannot be mended, so that client is disconnected.
        with Raw(proxy.port) as raw:
            assert raw.set(b"huge", 64 * MB) == b"+OK"
        with Raw(proxy.port, small_window=True) as reader:
            reader.send(encode(["GET", "huge"]))
            assert reader.line() == b"$%d" % (64 * MB)
            time.sleep(0.3)
            member.process.kill()
            got = 0
            with pytest.raises((EOFError, ConnectionResetError)):
                while True:
                    got += len(reader.take(65536))
            assert got < 64 * MB
        for _ in range(44):
            stalled.send(BLOCK[:MB])
        stalled.send(b"\r\n")
        assert stalled.line().startswith(b"-TRYAGAIN member cache-1")
        stalled.send(encode(["ECHO", "alive"]))
        assert stalled.line() == b"$5" and stalled.line() == b"alive"
    member.start()
    wait_until("the member serves again", lambda: ok(one.client()))


def ok(client):
    try:
        return client.set("small", "small")
    except Exception:  # noqa: BLE001 - not yet.
        return False


class Registers(threading.Thread):
    """Writes large values through one proxy and reads them through the other; what was acknowledged last is read."""

    def __init__(self, cluster, number):
        super().__init__()
        self.writer, self.reader = cluster.client(number % 2), cluster.client((number + 1) % 2)
        self.number, self.written, self.refused, self.bad, self.stopping = number, 0, [], [], False
        self.known = {}
        self.start()

    def run(self):
        try:
            while not self.stopping and not self.bad:
                self.round(f"large:{self.number}:{self.written % 5}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it.
            self.bad.append(repr(error))

    def round(self, key):
        self.written += 1
        value = b"%s %d " % (key.encode(), self.written) * 120_000  # About 2 MB, a little more each time.
        try:
            assert self.writer.set(key, value)
            self.known[key] = value
        except redis.ResponseError as error:
            self.refused.append(str(error))
            if not str(error).startswith("TRYAGAIN"):
                raise
        self.check(key)

    def check(self, key):
        got = self.reader.get(key)
        if got != self.known.get(key):
            self.bad.append(f"{key}: {got and got[:30]!r} instead of {self.known.get(key, b'-')[:30]!r}")

    def finish(self):
        self.stopping = True
        self.join()
        assert not self.bad, self.bad
        for key in self.known:
            self.check(key)
        assert not self.bad, self.bad


def test_large_values_keep_their_newest_version_through_growth_and_back(make_cluster):
    cluster = make_cluster(members=3, proxies=2)
    slow = {"move_keys_per_second": 400, "move_batch_keys": 10}
    two = cluster.write_spec(members=["cache-1", "cache-2"], limits=slow)
    cluster.start(two)
    cluster.fill(1200)
    registers = [Registers(cluster, number) for number in range(2)]
    cluster.resize_start(cluster.write_spec(limits=slow), steps="50,100")
    grown = [r.written for r in registers]
    cluster.resize_start(two, steps="50,100")
    for register in registers:
        register.finish()
    print(f"large SETs: {grown} while it grew, {[r.written for r in registers]} in all; refused: "
          f"{[text for r in registers for text in r.refused]}")
    assert min(grown) > 10
    assert sum(len(r.refused) for r in registers) <= 16, "only what a step cuts off"
    cluster.assert_placed(two)
