"""A proxy ends, or another one takes its place, under clients that count every answer: none is refused, no answer is lost
or cut, and what was not answered was not executed."""
import os
import signal
import socket
import threading
import time

import pytest
import redis

from harness.cluster import FAILED, RINGSHIFT, run
from harness.process import Process, free_port, wait_until
from test_46_tls import ca, tls_client, tls_flags  # pylint: disable=unused-import

REPLACED = 5
BATCH = 50


class Line:
    """Proxies that follow one another with one command line."""

    def __init__(self, cluster, *options, source=None, handover=True):
        self.cluster, self.options = cluster, list(options)
        self.source = source or ["--spec", cluster.spec or cluster.write_spec()]
        self.port, self.unix = free_port(), cluster.directory / "proxy.sock"
        self.handover = cluster.directory / "handover.sock"
        self.with_handover = handover
        self.number = 0
        self.current = None

    def command(self, *more, threads=2, port=None):
        handover = ["--handover", self.handover] if self.with_handover else []
        return [RINGSHIFT, "proxy", *self.source, "--listen", f"127.0.0.1:{port or self.port}", "--listen",
                f"unix:{self.unix}", "--threads", threads, *handover, *self.options, *more]

    def start(self, *more, **options):
        """The next one; gives the one before it."""
        before, self.number = self.current, self.number + 1
        self.current = Process(f"line-{self.number}", self.command(*more, **options), self.cluster.directory)
        self.cluster.proxies.append(self.current)
        self.current.start().wait_ready()
        self.current.port = self.port
        return before

    def replace(self, *more, **options):
        before = self.start(*more, **options)
        before.expected_dead = True
        assert before.popen.wait(40) == 0, before.tail()
        return before

    def client(self, **options):
        return redis.Redis(port=self.port, **{"socket_timeout": 20, **options})

    def raw(self, unix=False):
        connection = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        connection.settimeout(20)
        connection.connect(str(self.unix) if unix else ("127.0.0.1", self.port))
        return connection


class Counting:
    """Clients of all kinds, until they are told to stop; each counts the answers to its INCRs."""

    def __init__(self, line):
        self.line, self.stopping, self.faults = line, False, []
        self.answered, self.closed = {}, {}
        kinds = [(self.short, False), (self.short, True), (self.long, False), (self.long, True), (self.busy, False),
                 (self.pipelined, False), (self.pipelined, True), (self.pipelined_with_pauses, False)]
        self.threads = [threading.Thread(target=self.run, args=(kind, unix, f"n{i}-{kind.__name__}"))
                        for i, (kind, unix) in enumerate(kinds)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join(60)

    def run(self, kind, unix, key):
        self.answered[key] = self.closed[key] = 0
        try:
            kind(unix, key)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(f"{key} after {self.answered[key]}: {type(error).__name__}: {error}")

    def redis(self, unix, **options):
        return redis.Redis(socket_timeout=20, **({"unix_socket_path": str(self.line.unix)} if unix else
                                                 {"port": self.line.port}), **options)

    def count(self, key, value):
        self.answered[key] += 1
        assert value == self.answered[key], f"{value} is the answer to number {self.answered[key]}"

    def short(self, unix, key):
        while not self.stopping:
            with self.redis(unix) as client:
                self.count(key, client.incr(key))
            time.sleep(0.001)

    def long(self, unix, key, pause=0.004):
        """A pooled connection, which redis-py makes anew when it finds it closed before it sends."""
        client = self.redis(unix)
        while not self.stopping:
            try:
                value = client.incr(key)
            except redis.ConnectionError as error:  # It sent in the moment of the end: not executed, so again.
                assert "refused" not in str(error), error
                self.closed[key] += 1
                continue
            self.count(key, value)
            time.sleep(pause)

    def busy(self, unix, key):
        self.long(unix, key, pause=0)

    def pipelined_with_pauses(self, unix, key):
        self.pipelined(unix, key, pause=0.05)
        assert self.closed[key] == 0, "a pipeline was cut though the client was quiet before and after it"

    def pipelined(self, unix, key, pause=0.0):
        """Batches in one write. When the connection ends, it ends behind a whole answer."""
        command = f"*2\r\n$4\r\nINCR\r\n${len(key)}\r\n{key}\r\n".encode()
        connection, buffer, owed = self.line.raw(unix), b"", 0
        while not self.stopping or owed:
            try:
                if not owed:
                    time.sleep(pause)
                    owed = BATCH
                    connection.sendall(command * owed)
                data = connection.recv(65536)
            except (BrokenPipeError, ConnectionResetError):
                data = b""
            if not data:
                assert buffer == b"", f"an answer was cut: {buffer}"
                self.closed[key] += 0 < owed < BATCH
                connection, owed = self.line.raw(unix), 0
                continue
            *lines, buffer = (buffer + data).split(b"\r\n")
            for line in lines:
                assert line.startswith(b":"), line
                self.count(key, int(line[1:]))
                owed -= 1
        connection.close()

    def assert_whole(self, least=200):
        assert not self.faults, self.faults
        assert len(self.answered) == len(self.threads)
        client = self.line.client()
        executed = {key: int(client.get(key)) for key in self.answered}
        assert executed == self.answered, "something was executed that was not answered, or the contrary"
        assert sum(self.answered.values()) >= least
        print("answered:", self.answered, "sent again:", self.closed)


def exchange(connection, request, answer):
    connection.sendall(request)
    data = b""
    while len(data) < len(answer):
        more = connection.recv(65536)
        assert more, f"the connection ended after {data}"
        data += more
    assert data == answer, data


def ends(connection):
    try:
        return connection.recv(65536) == b""
    except ConnectionResetError:
        return True


@pytest.fixture
def line(make_cluster):
    cluster = make_cluster(members=3, proxies=0)
    cluster.spec = cluster.write_spec()
    made = Line(cluster)
    made.start()
    return made


def test_replaced_under_load(line):
    """Also by ones with more and with fewer threads, so with more and fewer sockets."""
    with Counting(line) as clients:
        for threads in [3, 1, 4, 2, 2][:REPLACED]:
            time.sleep(0.4)
            line.replace(threads=threads)
        time.sleep(0.4)
    clients.assert_whole(least=2000)
    assert line.unix.exists() and line.handover.exists()
    line.current.expected_dead = True
    assert line.current.end() == 0
    assert not line.unix.exists() and not line.handover.exists()


def test_tls_clients(make_cluster, ca):  # pylint: disable=redefined-outer-name
    cluster = make_cluster(members=3, proxies=0)
    cluster.spec, port = cluster.write_spec(), free_port()
    line = Line(cluster, *tls_flags(ca, f"127.0.0.1:{port}"))
    line.start()
    stopping, faults, answered, lost = threading.Event(), [], [], []

    def load(key, short):
        client, count = tls_client(ca, port), 0
        try:
            while not stopping.is_set():
                if short:
                    client.connection_pool.disconnect()
                try:
                    value = client.incr(key)
                except redis.ConnectionError:  # It sent in the moment of the end: not executed, so again.
                    lost.append(key)
                    continue
                count += 1
                assert value == count, f"{value} is the answer to number {count}"
        except Exception as error:  # pylint: disable=broad-except
            faults.append(f"{key} after {count}: {type(error).__name__}: {error}")
        answered.append(count)
    threads = [threading.Thread(target=load, args=(f"n{i}", i < 2)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.4)
        line.replace()
    stopping.set()
    for thread in threads:
        thread.join(30)
    assert not faults and len(answered) == 4 and min(answered) > 4, (faults, answered)
    assert len(lost) <= 3 * len(threads), "at most one a client and replacement"


def test_replaced_during_a_resize(make_cluster):
    cluster = make_cluster(members=4, proxies=0).start()
    line = Line(cluster, "--id", "edge", source=["--registry", cluster.registry_url, "--cluster", cluster.name])
    line.start()
    written = cluster.fill(12000)
    cluster.add_member()
    five = cluster.write_spec(limits={"move_keys_per_second": 400, "move_bytes_per_second": "50MiB",
                                      "move_batch_keys": 10})
    with cluster.history(proxies=[line.current], rate=1500) as load, Counting(line) as clients:
        cluster.resize_start(five, wait=False)
        for _ in range(2):
            time.sleep(0.5)
            line.replace()
        assert cluster.status()["state"] not in ("idle", "finished"), "the resize was over before the last replacement"
        cluster.wait_resized()
    clients.assert_whole(least=1000)
    load.assert_clean(errors=False)
    cluster.proxies = [line.current]
    cluster.assert_placed(five)
    cluster.assert_filled(written)


def test_the_old_one_acknowledges_until_it_has_drained(make_cluster):
    """A subscriber keeps the old one for its whole drain time; a resize that begins in it is not held up."""
    cluster = make_cluster(members=3, proxies=0).start()
    line = Line(cluster, "--drain-timeout-ms", 12000,
                source=["--registry", cluster.registry_url, "--cluster", cluster.name])
    line.start()
    cluster.fill(500)
    subscriber = line.raw()
    exchange(subscriber, b"SUBSCRIBE news\r\n", b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
    old = line.start()
    old.expected_dead = True
    cluster.proxies = [line.current]
    cluster.add_member()
    cluster.resize_start(cluster.write_spec(), timeout=10)
    assert old.alive(), "the old one was to acknowledge the steps"
    assert line.client().publish("news", "hello") >= 1
    exchange(subscriber, b"", b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n")
    assert ends(subscriber)
    assert old.popen.wait(15) == 0


def test_what_is_open_is_finished_by_the_old_one(line):
    multi, watcher, popping, half = (line.raw() for _ in range(4))
    exchange(multi, b"MULTI\r\nSET in-multi 1\r\n", b"+OK\r\n+QUEUED\r\n")
    exchange(watcher, b"WATCH watched\r\n", b"+OK\r\n")
    popping.sendall(b"BLPOP queue 0\r\n")
    half.sendall(b"*2\r\n$4\r\nINCR\r\n$4\r\nha")
    idle = line.raw()
    exchange(idle, b"PING\r\n", b"+PONG\r\n")
    time.sleep(0.1)
    old = line.start()
    old.expected_dead = True
    assert ends(idle)
    time.sleep(1.5)  # The time of the quiet ones is over, too.
    assert old.alive()
    assert line.client().lpush("queue", "x") == 1
    exchange(popping, b"", b"*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n")
    exchange(half, b"lf\r\n", b":1\r\n")
    exchange(watcher, b"MULTI\r\nINCR watched\r\nEXEC\r\n", b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n")
    exchange(multi, b"EXEC\r\n", b"*1\r\n+OK\r\n")
    for connection in (multi, watcher, popping, half):
        assert ends(connection)
    assert old.popen.wait(10) == 0


def test_the_waiting_are_ended_when_the_time_is_over(line):
    line.replace("--drain-timeout-ms", 1500)
    popping, subscriber = line.raw(), line.raw()
    exchange(subscriber, b"SUBSCRIBE news\r\n", b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
    popping.sendall(b"BLPOP queue 0\r\n")
    time.sleep(0.2)
    began = time.monotonic()
    line.replace()
    assert 0.9 < time.monotonic() - began < 4
    exchange(popping, b"", b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
    assert ends(popping) and ends(subscriber)
    assert line.client().rpush("queue", "kept") == 1 and line.client().llen("queue") == 1


def test_sigterm_hastens_a_drain(line):
    line.replace("--shutdown-grace-ms", 300)
    subscriber = line.raw()
    exchange(subscriber, b"SUBSCRIBE news\r\n", b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
    old = line.start()
    old.expected_dead = True
    time.sleep(0.3)
    assert old.alive()
    old.send(signal.SIGTERM)
    assert old.popen.wait(3) == 0


def test_sigterm_answers_what_is_owed(line):
    """Of a member that hangs for a moment, and to clients that nobody has accepted yet."""
    owed = line.raw()
    exchange(owed, b"SET slow 1\r\n", b"+OK\r\n")
    for member in line.cluster.members:
        member.process.pause()
    owed.sendall(b"GET slow\r\n")
    time.sleep(0.1)
    line.current.pause()
    waiting = [line.raw(unix=number % 2 == 1) for number in range(40)]
    for connection in waiting:
        connection.sendall(b"PING\r\n")
    line.current.expected_dead = True
    line.current.send(signal.SIGTERM)
    line.current.resume()
    for connection in waiting:
        exchange(connection, b"", b"+PONG\r\n")
    assert line.current.alive(), "an answer is owed"
    for member in line.cluster.members:
        member.process.resume()
    exchange(owed, b"", b"$1\r\n1\r\n")
    assert ends(owed) and all(ends(connection) for connection in waiting)
    assert line.current.popen.wait(10) == 0
    assert not line.unix.exists()


def test_sigterm_under_load(make_cluster):
    """Without a successor connections are refused afterwards; but nothing is executed that is not answered."""
    cluster = make_cluster(members=3, proxies=0)
    cluster.spec = cluster.write_spec()
    line = Line(cluster, handover=False)
    line.start()
    with Counting(line) as clients:
        time.sleep(0.5)
        line.current.expected_dead = True
        assert line.current.end() == 0
    refused = [fault for fault in clients.faults if "refused" in fault.lower() or "FileNotFoundError" in fault
               or "No such file" in fault]
    assert refused and refused == clients.faults, clients.faults
    line.start()
    client = line.client()
    executed = {key: int(client.get(key)) for key in clients.answered}
    assert executed == clients.answered


def test_a_successor_that_fails_changes_nothing(line):
    with Counting(line) as clients:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            # It has the sockets already when it finds that one port is another program's.
            failed = run(*line.command("--listen", f"127.0.0.1:{port}")[1:])
        assert failed.returncode == FAILED and f"127.0.0.1:{port}: the port is in use" in failed.stderr
        bad = run("proxy", "--spec", os.devnull, "--handover", line.handover, "--listen", f"127.0.0.1:{line.port}")
        assert bad.returncode == FAILED
        time.sleep(0.2)
    clients.assert_whole()
    assert line.current.alive() and line.unix.exists() and line.handover.exists()
    line.replace()
    assert line.client().ping() and redis.Redis(unix_socket_path=str(line.unix)).ping()


def test_a_stranger_is_told_apart(line, tmp_path):
    spec = line.cluster.spec
    taken = run("proxy", "--spec", spec, "--listen", f"127.0.0.1:{line.port}")
    assert taken.returncode == FAILED and "the port is in use" in taken.stderr
    # A path at which nobody is: an ordinary start, so the port is somebody's.
    taken = run("proxy", "--spec", spec, "--listen", f"127.0.0.1:{line.port}", "--handover", tmp_path / "other.sock")
    assert taken.returncode == FAILED and "the port is in use" in taken.stderr
    for path in ("a-file", "a-stream.sock"):
        where = tmp_path / path
        if path.endswith("sock"):
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(where))
            server.listen()
        else:
            where.write_text("mine")
        refused = run("proxy", "--spec", spec, "--listen", "127.0.0.1:0", "--handover", where)
        assert refused.returncode == FAILED and "something else than the handover socket" in refused.stderr
    assert (tmp_path / "a-file").read_text() == "mine"
    assert line.client().ping()
    assert os.stat(line.handover).st_mode & 0o777 == 0o600


def test_a_silent_visitor_does_not_hold_the_place(line):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(str(line.handover))
        began = time.monotonic()
        line.replace()
        print(f"replaced after {time.monotonic() - began:.1f} s")
        assert line.client().ping()
    # Nor one that says something else.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as rude:
        rude.connect(str(line.handover))
        rude.send(b"serving")
        line.replace()
        assert line.client().ping()


def test_a_crashed_predecessor_is_no_obstacle(line):
    line.current.kill()
    assert line.handover.exists()
    line.start()
    assert line.client().ping()
    line.replace()
    assert line.client().ping()


def test_an_address_that_the_successor_leaves_is_closed(line):
    old_port, line.port = line.port, free_port()
    line.replace()
    assert line.client().ping()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", old_port))


def test_by_a_configuration_file(make_cluster):
    cluster = make_cluster(members=2, proxies=0)
    spec = cluster.write_spec()
    port = free_port()
    file = cluster.directory / "proxy.yaml"
    file.write_text(f"listen: 127.0.0.1:{port}\nhandover: handover.sock\ntimeouts: {{drain_ms: 20000}}\n"
                    f"clusters: [{{name: cache, spec: {spec}}}]\n")

    def start(name):
        process = Process(name, [RINGSHIFT, "proxy", "--config", file], cluster.directory)
        cluster.proxies.append(process.start())
        process.wait_ready()
        return process

    old = start("first")
    client = redis.Redis(port=port)
    client.set("a", 1)
    old.expected_dead = True
    start("second")
    wait_until("the first has ended", lambda: not old.alive())
    assert old.popen.returncode == 0 and client.get("a") == b"1"
