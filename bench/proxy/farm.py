"""The servers and proxies of a bench: Redis members, nutcracker, `ringshift proxy`, and one Redis without a proxy.

Each is started when first asked for, on a free port of 127.0.0.1 in a temporary folder, and ended by its pid. A child
dies with us however we end, and is in a session of its own, so that Ctrl-C reaches us alone. Keys are stored before
they are read, so that every GET is a hit.
"""
import ctypes
import functools
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import time

from errors import BenchError

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
MEMBERS = 4
SMALL = ("key", 100_000, 64)  # Prefix, how many, bytes of each value.
BIG = ("big", 10_000, 4096)
SPARE_FILES = 600  # Of a process, besides its clients.
START_SECONDS = 30
# The commands we run and Debian's packages of them.
PROGRAMS = {"redis-server": "redis-server", "redis-benchmark": "redis-tools", "nutcracker": "nutcracker",
            "openssl": "openssl", "valgrind": "valgrind"}
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def find_programs(*names):
    """Fails with the packages to install unless all of them are there."""
    # A package's daemons are in /usr/sbin (nutcracker), which a user's PATH may lack.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise BenchError(f"not installed: {', '.join(missing)}; on Debian: apt-get install {packages}")


def open_files(wanted):
    """Raises the limit of open files, for us and our children, to `wanted` if that is allowed; gives the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    for new in ((wanted, max(wanted, hard)), (hard, hard)):  # The first is for root alone, if above `hard`.
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, new)
            return new[0]
        except (ValueError, OSError):
            pass
    return soft


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid):
    """What the process used so far, user and system."""
    # The scheduler's own nanoseconds where the kernel has them: the ticks of `stat` are 10 ms.
    threads = list(pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))
    nanoseconds = sum(int(path.read_text().split()[0]) for path in threads)
    if nanoseconds > 0:
        return nanoseconds / 1e9
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


class Server:
    """One process that serves the Redis protocol."""

    def __init__(self, process, port, log, ca=None):
        self.process, self.port, self.log = process, port, log
        self.ca = ca  # The file to check its certificate with; None: it speaks no TLS.

    @property
    def pid(self):
        return self.process.pid

    def check(self):
        if self.process.poll() is not None:
            raise BenchError(f"{self.process.args[0]} ended with status {self.process.returncode}:\n{self.log_end()}")

    def log_end(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


class Farm:
    def __init__(self, folder, binary):
        self.folder = pathlib.Path(folder)
        self.binary = binary
        self.servers = {}  # By name.
        self._started = []
        self._filled = set()

    def get(self, name):
        """A server by its name: the kind (ringshift, nutcracker, redis), then what is special about it: tls, 2threads,
        or anything, for a process of its own."""
        server = self.servers.get(name)
        if server is not None and server.process.poll() is not None:  # It ended under an earlier row, which said so.
            self.end(server)
            self._filled = {(where, keys) for where, keys in self._filled if where != name}
        if name not in self.servers:
            self.servers[name] = self._make(name)
        return self.servers[name]

    def _make(self, name, wrapper=()):
        kind = name.split("-")[0]
        return {"ringshift": self._ringshift, "nutcracker": self._nutcracker, "redis": self._redis}[kind](name, wrapper)

    def under(self, wrapper, kind):
        """One that runs inside of another program (valgrind); for the caller to `end`."""
        return self._make(f"{kind}-wrapped", wrapper)

    def need_keys(self, name, keys):
        """Stores the keys where the server finds them; once for a proxy's placement, which is the same in all of its
        processes."""
        where = (name if name.startswith("redis") else name.split("-")[0], keys)
        if where not in self._filled:
            fill(self.get(name), *keys)
            self._filled.add(where)

    def _ringshift(self, name, wrapper):
        port = free_port()
        if "tls" in name:
            listen = ["--tls-listen", f"127.0.0.1:{port}", "--tls-cert", self._tls("cert.pem"), "--tls-key",
                      self._tls("key.pem")]
        else:
            listen = ["--listen", f"127.0.0.1:{port}"]
        threads = 2 if "2threads" in name else 1
        return self._start(name, port, *wrapper, self.binary, "proxy", "--spec", self._spec(), *listen, "--threads",
                           threads, "--request-timeout-ms", 60000, "--max-clients", 20000)

    def _nutcracker(self, name, wrapper):
        port, path = free_port(), self.folder / f"{name}.yml"
        servers = "\n".join(f"    - 127.0.0.1:{p}:1 cache-{i}" for i, p in enumerate(self.members(), 1))
        path.write_text(f"bench:\n  listen: 127.0.0.1:{port}\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n"
                        f"  timeout: 60000\n  backlog: 4096\n  preconnect: true\n  servers:\n{servers}\n")
        return self._start(name, port, *wrapper, "nutcracker", "-c", path, "-s", free_port(), "-a", "127.0.0.1", "-o",
                           self.folder / f"{name}.own.log", "-p", self.folder / f"{name}.pid")

    def _redis(self, name, wrapper):
        port = free_port()
        words = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder,
                 "--maxclients", 20000]
        if "tls" in name:
            words += ["--port", 0, "--tls-port", port, "--tls-cert-file", self._tls("cert.pem"), "--tls-key-file",
                      self._tls("key.pem"), "--tls-auth-clients", "no"]
        else:
            words += ["--port", port]
        return self._start(name, port, *wrapper, *words)

    def members(self):
        """Their ports."""
        names = [f"member-{i}" for i in range(1, MEMBERS + 1)]
        for name in names:
            if name not in self.servers:
                self.servers[name] = self._redis(name, ())
        return [self.servers[name].port for name in names]

    def _spec(self):
        path = self.folder / "spec.yaml"
        members = "\n".join(f"  - {{id: cache-{i}, address: 127.0.0.1:{p}}}" for i, p in enumerate(self.members(), 1))
        path.write_text(f"cluster: bench\nmembers:\n{members}\n")
        return path

    def _tls(self, file):
        """A path in the folder of the certificate, which is its own CA."""
        if not (self.folder / "cert.pem").exists():
            done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                                   "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                                   "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
                                  cwd=self.folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise BenchError("openssl made no certificate:\n" + done.stderr)
        return self.folder / file

    def _start(self, name, port, *words):
        log = self.folder / f"{name}.log"
        with open(log, "wb") as out:
            server = Server(spawn(words, out), port, log, self._tls("cert.pem") if "tls" in name else None)
        self._started.append(server)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            server.check()
            if listens(port):
                return server
            time.sleep(0.02)
        raise BenchError(f"{name} does not listen on port {port} after {START_SECONDS} s:\n{server.log_end()}")

    def end(self, server):
        """Ends one; of those that `get` made, the next `get` makes another."""
        self.servers = {name: other for name, other in self.servers.items() if other is not server}
        stop([server])
        self._started.remove(server)

    def end_all(self):
        stop(self._started)
        self._started, self.servers = [], {}

    def pids(self):
        return [server.pid for server in self._started]


def spawn(words, out, **options):
    def of_the_child():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out,
                            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=of_the_child, **options)


def stop(servers):
    for server in servers:
        server.process.terminate()
    for server in servers:
        try:
            server.process.wait(10)
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def connect(server, timeout=30.0):
    """A blocking client's socket; with TLS if the server speaks that."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection if server.ca is None else tls_context(server.ca).wrap_socket(connection,
                                                                                   server_hostname="localhost")


@functools.cache
def tls_context(ca):
    return ssl.create_default_context(cafile=ca)


def fill(server, prefix, count, size):
    """SETs every key that redis-benchmark makes of `prefix:__rand_int__` with -r `count`."""
    value = b"x" * size
    with connect(server, timeout=60) as connection:
        for first in range(0, count, 500):
            keys = [f"{prefix}:{i:012d}".encode() for i in range(first, min(first + 500, count))]
            connection.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(key), key, size, value)
                                        for key in keys))
            expected, got = b"+OK\r\n" * len(keys), b""
            while len(got) < len(expected):
                part = connection.recv(65536)
                got += part
                if not part or not expected.startswith(got):
                    raise BenchError(f"port {server.port} answered a SET with {got[-200:]!r}\n{server.log_end()}")
