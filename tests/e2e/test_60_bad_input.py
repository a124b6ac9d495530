"""What people and machines get wrong: each answer is an error that names the value, the place and the fix, with the
right exit status; nothing is lost, and what should live, lives."""
import json
import os
import re
import resource
import socket
import sqlite3
import subprocess
import time

import pytest
import redis

from harness.cluster import FAILED, RINGSHIFT, run
from harness.process import Process, die_with_parent, free_port, wait_until

# Specs.

GOOD = {"cluster": "cache", "placement": {"algorithm": "ring", "hash": "xxh3", "points": 256},
        "members": [{"id": "cache-1", "address": "127.0.0.1:7001"}, {"id": "cache-2", "address": "127.0.0.1:7002"}]}


def broken_spec(change):
    spec = json.loads(json.dumps(GOOD))
    change(spec)
    return json.dumps(spec)


# What is wrong, the spec, words that the error must have.
BAD_SPECS = [
    ("duplicate id", broken_spec(lambda s: s["members"][1].update(id="cache-1")), ["cache-1"]),
    ("duplicate address", broken_spec(lambda s: s["members"][1].update(address="127.0.0.1:7001")), ["127.0.0.1:7001"]),
    ("negative weight", broken_spec(lambda s: s["members"][0].update(weight=-1)), ["weight", "-1"]),
    ("zero weight", broken_spec(lambda s: s["members"][0].update(weight=0)), ["weight"]),
    ("absurd weight", broken_spec(lambda s: s["members"][0].update(weight=1e30)), ["weight"]),
    ("weight not a number", broken_spec(lambda s: s["members"][0].update(weight="heavy")), ["weight", "heavy"]),
    ("unknown algorithm", broken_spec(lambda s: s["placement"].update(algorithm="roulette")), ["roulette", "ring"]),
    ("unknown hash", broken_spec(lambda s: s["placement"].update(hash="sha0")), ["sha0", "xxh3"]),
    ("huge points", broken_spec(lambda s: s["placement"].update(points=10**12)), ["points", "1000000000000"]),
    ("many points", broken_spec(lambda s: s["placement"].update(points=4 * 10**9)), ["points", "4000000000"]),
    ("no points", broken_spec(lambda s: s["placement"].update(points=0)), ["points"]),
    ("unknown field", broken_spec(lambda s: s.update(membres=[])), ["membres"]),
    ("no members", broken_spec(lambda s: s.update(members=[])), ["members"]),
    ("no cluster", broken_spec(lambda s: s.pop("cluster")), ["cluster"]),
    ("address without port", broken_spec(lambda s: s["members"][0].update(address="localhost")), ["localhost"]),
    ("port out of range", broken_spec(lambda s: s["members"][0].update(address="127.0.0.1:70000")), ["70000"]),
    ("retired id", broken_spec(lambda s: s.update(retired=["cache-2"])), ["cache-2", "retired"]),
    ("not YAML", "members: [", []),
    ("empty", "", []),
    ("a list", "- a\n- b\n", []),
    ("binary", "\x01\x02\x03", []),
]


@pytest.mark.parametrize("text,words", [case[1:] for case in BAD_SPECS], ids=[case[0] for case in BAD_SPECS])
def test_bad_spec(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    began = time.monotonic()
    for command in (["topology", "validate", path], ["proxy", "--spec", path, "--listen", "127.0.0.1:0"]):
        done = run(*command, check=FAILED, timeout=20)
        for word in ["bad.yaml", *words]:
            assert word in done.stderr, f"'{word}' is not in: {done.stderr}"
        assert len(done.stderr) < 2000
    assert time.monotonic() - began < 5


def test_missing_spec(tmp_path):
    done = run("topology", "validate", tmp_path / "none.yaml", check=FAILED)
    assert "none.yaml" in done.stderr and "No such file" in done.stderr


# What arrives at a proxy's socket.


@pytest.fixture
def one(make_cluster):
    return make_cluster(members=2, proxies=1).start_static()


def talk(port, data, timeout=5, half_close=False):
    """Sends bytes; everything that comes back until the proxy closes or falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        s.sendall(data)
        if half_close:
            s.shutdown(socket.SHUT_WR)
        answer = b""
        s.settimeout(timeout)
        try:
            while part := s.recv(65536):
                answer += part
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


def assert_lives(cluster):
    proxy = cluster.proxies[0]
    assert proxy.alive(), proxy.tail()
    assert cluster.client().set("alive", "yes") and cluster.client().get("alive") == b"yes"


GARBAGE = {
    "negative array": b"*-5\r\n",
    "huge array": b"*2000000000\r\n",
    "array count that overflows": b"*99999999999999999999999\r\n",
    "600 MB bulk": b"*2\r\n$3\r\nGET\r\n$629145600\r\n",
    "negative bulk": b"*2\r\n$3\r\nGET\r\n$-7\r\n",
    "bulk without its end": b"*2\r\n$3\r\nGET\r\n$1\r\nabcdef\r\n",
    "not a number": b"*x\r\n",
    "binary": bytes(range(256)) * 50,
    "TLS hello": bytes.fromhex("16030100c8010000c40303") + b"\x00" * 190 + b"\r\n",
    "HTTP": b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    "endless line": b"*" + b"1" * 200_000,
    "nested arrays": b"*1\r\n" * 1000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_at_the_proxy(one, name):
    answer = talk(one.proxies[0].port, GARBAGE[name], timeout=1.5)
    # Either an error, or a wait for more; never a value. (Like redis-server itself, the proxy may take the two
    # bytes after a bulk for its end, whatever they are, and the rest for an inline command.)
    assert answer == b"" or answer.split(b"\r\n")[-2].startswith(b"-"), answer[:200]
    assert_lives(one)


def test_a_protocol_error_says_so(one):
    for data in (GARBAGE["600 MB bulk"], GARBAGE["not a number"], GARBAGE["negative bulk"]):
        answer = talk(one.proxies[0].port, data, timeout=3)
        assert answer.startswith(b"-ERR") and answer.endswith(b"\r\n"), answer
        assert re.search(rb"protocol|bulk|length|invalid", answer, re.IGNORECASE), answer


def test_answers_before_the_garbage_arrive_first(one):
    answer = talk(one.proxies[0].port, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*x\r\n")
    assert answer.startswith(b"+OK\r\n$1\r\nb\r\n-"), answer


def test_random_bytes(one):
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    import random
    dice = random.Random(seed)
    for _ in range(60):
        data = dice.choice([b"", b"*3\r\n$3\r\nSET\r\n", b"*2\r\n$4\r\nMGET\r\n$"]) + dice.randbytes(dice.randrange(2000))
        talk(one.proxies[0].port, data, timeout=0.02)
    assert_lives(one)


def test_half_closed_socket_gets_its_answers(one):
    """`printf ... | nc` closes its side at once and still wants to read."""
    command = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nvalue\r\n" + b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n" * 100
    answer = talk(one.proxies[0].port, command, half_close=True)
    assert answer == b"+OK\r\n" + b"$5\r\nvalue\r\n" * 100


def test_half_a_command_and_then_nothing(one):
    sockets = [socket.create_connection(("127.0.0.1", one.proxies[0].port)) for _ in range(50)]
    for s in sockets:
        s.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100\r\nonly a part")
    assert_lives(one)
    for s in sockets:
        s.close()
    assert_lives(one)
    assert one.client().get("a") is None, "half a command is not executed"


def rss_mib(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20


def test_a_client_that_does_not_read_stops_being_read(one):
    """It asks for much more than fits any buffer; the proxy's memory stays bounded and others are served."""
    one.client().set("big", b"x" * (1 << 18))
    greedy = socket.create_connection(("127.0.0.1", one.proxies[0].port))
    greedy.settimeout(0.5)
    asked = 0
    try:
        for _ in range(8000):
            greedy.sendall(b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n")
            asked += 1
    except TimeoutError:
        pass
    time.sleep(1)
    used = rss_mib(one.proxies[0].pid)
    # 1024 commands in flight (in_flight) are a quarter GiB, and a buffer that grows is twice what it holds.
    assert used < 640, f"{used} MiB for {asked} unread answers of a quarter MiB"

    # What it asked for comes through the connection that others use too, so they may have to wait a little.
    def others_are_served():
        try:
            return one.client().set("alive", "yes")
        except redis.ResponseError:
            return False
    wait_until("others are served", others_are_served, timeout=10)
    greedy.close()
    assert_lives(one)


def test_many_connections_come_and_go(one):
    for _ in range(5):
        sockets = [socket.create_connection(("127.0.0.1", one.proxies[0].port)) for _ in range(300)]
        for s in sockets:
            s.sendall(b"PING\r\n")
        for s in sockets:
            s.close()
    assert_lives(one)


# Ports, addresses, registry.


@pytest.mark.parametrize("server", ["proxy", "registry"])
def test_port_in_use(tmp_path, server):
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(GOOD))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        source = ["--spec", spec] if server == "proxy" else ["--data", tmp_path / "r.db"]
        done = run(server, "--listen", f"127.0.0.1:{port}", *source, check=FAILED, timeout=20)
    assert str(port) in done.stderr and "in use" in done.stderr.lower()


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:99999", "300.1.1.1:80", ""])
def test_bad_listen_address(tmp_path, listen):
    done = run("registry", "--listen", listen, "--data", tmp_path / "r.db", timeout=20)
    assert done.returncode in (1, 2) and done.stderr.strip()


def test_no_registry_there(tmp_path):
    done = run("topology", "get", "--registry", f"http://127.0.0.1:{free_port()}", "--cluster", "cache", check=FAILED,
               timeout=30)
    assert "127.0.0.1" in done.stderr


def test_no_such_cluster(cluster):
    done = run("topology", "get", "--registry", cluster.registry_url, "--cluster", "nosuch", check=FAILED)
    assert "nosuch" in done.stderr


def start_registry(directory, data):
    return Process("registry", [RINGSHIFT, "registry", "--listen", "127.0.0.1:0", "--data", data], directory).start()


def test_corrupt_registry_database(tmp_path):
    data = tmp_path / "registry.db"
    data.write_bytes(b"SQLite format 3\x00" + os.urandom(20000))
    before = data.read_bytes()
    done = run("registry", "--listen", "127.0.0.1:0", "--data", data, check=FAILED, timeout=20)
    assert "registry.db" in done.stderr
    assert data.read_bytes() == before, "what may still be rescued is not touched"


def test_a_file_that_is_no_database(tmp_path):
    data = tmp_path / "notes.txt"
    data.write_text("my notes, not a database\n" * 100)
    done = run("registry", "--listen", "127.0.0.1:0", "--data", data, check=FAILED, timeout=20)
    assert "notes.txt" in done.stderr and data.read_text().startswith("my notes")


def test_another_programs_database(tmp_path):
    data = tmp_path / "other.db"
    with sqlite3.connect(data) as other:
        other.execute("create table theirs(x)")
        other.execute("insert into theirs values (1)")
    done = run("registry", "--listen", "127.0.0.1:0", "--data", data, check=FAILED, timeout=20)
    assert "other.db" in done.stderr
    with sqlite3.connect(data) as other:
        assert other.execute("select x from theirs").fetchall() == [(1,)]


def as_nobody():
    """For preexec_fn: root ignores file modes."""
    die_with_parent()
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def test_read_only_registry_database(tmp_path):
    directory = tmp_path / "ro"
    directory.mkdir()
    data = directory / "registry.db"
    first = start_registry(tmp_path, data)
    first.wait_ready()
    assert first.end() == 0
    for path in directory.iterdir():
        path.chmod(0o444)
    directory.chmod(0o555)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and str(parent) not in ("/", "/tmp"):
            parent.chmod(parent.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    try:
        if not os.access(RINGSHIFT, os.X_OK) or subprocess.run([RINGSHIFT, "--version"], preexec_fn=as_nobody,
                                                               capture_output=True).returncode != 0:
            pytest.skip("the program cannot be run by an unprivileged user from here")
        done = subprocess.run([RINGSHIFT, "registry", "--listen", "127.0.0.1:0", "--data", data], text=True,
                              capture_output=True, timeout=20, preexec_fn=as_nobody)
        assert done.returncode == FAILED and "registry.db" in done.stderr, done
        assert re.search("read-?only|permission|write|open", done.stderr, re.IGNORECASE), done.stderr
    finally:
        directory.chmod(0o755)


def fill(path):
    """Writes until nothing more fits on the disk."""
    try:
        with open(path, "wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    pass
    except OSError:
        pass


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")
def test_full_disk(tmp_path, make_cluster):
    """A put that does not fit is refused; what was there stays; with room again it goes on."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", small], capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        cluster = make_cluster(members=2, proxies=1)
        cluster.start_registry(small / "registry.db")
        cluster.start_controller()
        cluster.apply(cluster.write_spec())
        filler = small / "filler"
        fill(filler)
        refused = None
        retired = [f"gone-{n}" for n in range(2000)]  # Some 25 KB, so that what SQLite has in reserve is soon gone.
        for i in range(300):
            spec = cluster.write_spec(limits={"move_keys_per_second": 1000 + i}, retired=retired)
            done = cluster.apply(spec, check=None)
            if done.returncode != 0:
                refused = done
                break
        assert refused, "a full disk went unnoticed"
        assert re.search("full|space|disk", refused.stderr, re.IGNORECASE), refused.stderr
        assert cluster.registry.alive(), cluster.registry.tail()
        assert "cache-2" in cluster.cli("topology", "get", check=0).stdout, "reads go on"
        filler.unlink()
        cluster.apply(cluster.write_spec(limits={"move_keys_per_second": 4321}))
        assert cluster.registry.end() == 0
        cluster.registry.start()
        cluster.registry.wait_ready()
        assert "4321" in cluster.cli("topology", "get", "--json", check=0).stdout
        for server in (cluster.controller, cluster.registry):
            server.end()
            server.expected_dead = True
    finally:
        subprocess.run(["umount", "-l", small], check=True)
