"""Load on one server: redis-benchmark's requests, clients that idle, clients that subscribe.

A run is bounded: redis-benchmark is ended by its pid when it takes longer than its limit.
"""
import re
import signal
import subprocess
import tempfile
import threading
import time

from errors import BenchError
from farm import connect, rss_kib, spawn

SAMPLE_SECONDS = 0.05
DRAIN_SECONDS = 20  # How long subscribers may lag behind the publisher.
RATE_MAX = 1e9
THROUGHPUT = re.compile(r"throughput summary: ([0-9.]+|inf) requests per second")
PERCENTILE = re.compile(r"^([0-9.]+)% <= ([0-9.]+) milliseconds \(cumulative count", re.M)


class Run:
    """What one redis-benchmark said: requests per second, and percentiles in ms of a whole pipeline's round trip."""

    def __init__(self, out):
        head, _, _ = out.partition("Cumulative distribution of latencies")
        rate, table = THROUGHPUT.search(out), [(float(p), float(ms)) for p, ms in PERCENTILE.findall(head)]
        if rate is None or not table:
            raise BenchError("redis-benchmark said:\n" + out[-1000:])
        # "inf" of a run that was over within its first millisecond, as one that only connects is.
        self.rate = min(float(rate.group(1)), RATE_MAX)
        # Its table halves the rest in each line: 50, 75, ... 99.902; p99 is in its summary.
        self.p50_ms = first_at_least(table, 50.0)
        self.p999_ms = first_at_least(table, 99.9)
        summary = out[out.index("latency summary"):].split("\n")[2].split()
        self.p99_ms = float(summary[4])
        self.rss_kib = 0  # Of the server, the most that was seen.


def first_at_least(table, percent):
    return next((ms for p, ms in table if p >= percent), table[-1][1])


def redis_benchmark(server, command, clients, pipeline, requests, keyspace, seconds_max):
    """Runs `command`, a list of words, `requests` times."""
    words = ["redis-benchmark", "-p", server.port, "-c", clients, "-P", pipeline, "-n", requests, "-r", keyspace,
             "--precision", 3]
    if server.ca is not None:
        words += ["--tls", "--cacert", server.ca, "--sni", "localhost"]
    rss, end = 0, time.monotonic() + seconds_max
    with tempfile.TemporaryFile("w+") as out:
        process = spawn([*words, *command], out)
        try:
            while True:
                try:
                    process.wait(SAMPLE_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    server.check()
                    rss = max(rss, rss_kib(server.pid))
                    if time.monotonic() > end:
                        raise BenchError(f"{' '.join(command[:2])}: {requests} requests took more than "
                                         f"{seconds_max:.0f} s, the most that this run may take") from None
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        out.seek(0)
        text = out.read().replace("\r", "\n")
    server.check()
    if process.returncode != 0:
        raise BenchError(f"redis-benchmark on port {server.port} ended with {process.returncode}:\n{text[-500:]}")
    run = Run(text)
    run.rss_kib = max(rss, rss_kib(server.pid))
    return run


class IdleClients:
    """Connections that asked once and then say nothing."""

    def __init__(self, server, count):
        self._connections = []
        try:
            for _ in range(count):
                connection = connect(server)
                self._connections.append(connection)
                connection.sendall(b"*2\r\n$3\r\nGET\r\n$4\r\nidle\r\n")
                if not connection.recv(64).startswith(b"$"):
                    raise BenchError(f"client {len(self._connections)} on port {server.port} got no answer")
        except OSError as error:
            self.close()
            raise BenchError(f"client {len(self._connections) + 1} on port {server.port}: {error}") from None

    def close(self):
        for connection in self._connections:
            connection.close()


class Subscribers(threading.Thread):
    """Clients of one channel, which count the bytes that arrive. They look every 2 ms, so that a message to each costs
    the machine little beside what is measured."""

    LOOK_SECONDS = 0.002

    def __init__(self, server, count, channel):
        super().__init__(daemon=True)
        self._connections = [connect(server) for _ in range(count)]
        self._left = threading.Event()
        self.bytes = [0] * count
        word = channel.encode()
        for connection in self._connections:
            connection.sendall(b"*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%b\r\n" % (len(word), word))
            expected, got = b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(word), word), b""
            while len(got) < len(expected):
                part = connection.recv(4096)
                got += part
                if not part or not expected.startswith(got):
                    raise BenchError(f"port {server.port} answered SUBSCRIBE with {got!r}")
            connection.setblocking(False)
        self.start()

    def run(self):
        buffer = bytearray(1 << 20)
        while not self._left.is_set():
            for i, connection in enumerate(self._connections):
                try:
                    self.bytes[i] += connection.recv_into(buffer)
                except OSError:  # Nothing there yet; a closed connection shows in the count.
                    pass
            time.sleep(self.LOOK_SECONDS)

    def wait_for(self, bytes_each):
        """The share of the bytes that came, once all did or nothing more will."""
        end = time.monotonic() + DRAIN_SECONDS
        while min(self.bytes) < bytes_each and time.monotonic() < end:
            time.sleep(self.LOOK_SECONDS)
        return sum(self.bytes) / (bytes_each * len(self.bytes))

    def close(self):
        self._left.set()
        self.join()
        for connection in self._connections:
            connection.close()


def message_bytes(channel, payload):
    """Of one message as a RESP2 subscriber receives it."""
    return sum(len(f"${len(text)}\r\n{text}\r\n") for text in ("message", channel, payload)) + len("*3\r\n")
