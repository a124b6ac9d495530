"""Real clients, unchanged: what each sees through the proxy over five members is what it sees at a plain redis-server.

What this build does not serve is in NOT_YET_FEATURES: those parts are skipped as long as the proxy indeed refuses them
(RINGSHIFT_DIFF_STRICT=1: a feature that is served must not be listed)."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
import redis

from differential.bench import Bench
from differential.known import refused
from differential.resp import Connection, encode
from harness.cluster import Cluster
from harness.process import die_with_parent

# A feature, and what a proxy without it refuses.
FEATURES = {"transactions": ["MULTI"], "scripts": ["SCRIPT", "LOAD", "return 1"], "pubsub": ["PUBLISH", "c", "m"],
            "scan": ["SCAN", "0"], "blocking": ["BLPOP", "none", "0.01"]}
NOT_YET_FEATURES = {"transactions", "scripts", "scan", "blocking"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A proxy over five members and the plain server; emptied for each test by `both`."""
    cluster = Cluster(tmp_path_factory.mktemp("clients"), members=6, proxies=1)
    bench = Bench.of_six(cluster)
    yield bench
    bench.close()
    assert cluster.stop() == []


@pytest.fixture
def both(pair):
    """Their ports: the plain server's, the proxy's."""
    pair.flush()
    yield pair.plain_port, pair.proxy_port
    assert pair.cluster.proxies[0].alive()


def needs(pair, feature):
    connection = Connection(pair.proxy_port)
    missing = refused(connection.ask(*FEATURES[feature]))
    connection.close()
    if feature in NOT_YET_FEATURES:
        if missing:
            pytest.skip(f"{feature}: not served yet")
        assert os.environ.get("RINGSHIFT_DIFF_STRICT") != "1", f"{feature} is served: take it out of NOT_YET_FEATURES"


def run(*command, stdin=None, timeout=30):
    return subprocess.run([str(part) for part in command], input=stdin, capture_output=True, timeout=timeout,
                          preexec_fn=die_with_parent)


def same(both, *command, stdin=None):
    """The output of a program run against each server, PORT in its arguments being the server's; it is the same."""
    done = [run(*(str(port) if part == "PORT" else part for part in command), stdin=stdin) for port in both]
    plain, proxy = ((one.returncode, one.stdout.decode(errors="replace").replace(str(port), "PORT"),
                     one.stderr.decode(errors="replace").replace(str(port), "PORT")) for one, port in zip(done, both))
    assert proxy == plain
    return proxy[1]


# redis-cli.


@pytest.mark.parametrize("options", [[], ["-3"], ["--no-raw"], ["-3", "--no-raw"], ["--csv"], ["-3", "--json"],
                                     ["-d", "|"]], ids=" ".join)
def test_redis_cli_lines(both, options):
    lines = b"""SET a 1
GET a
get none
HSET h f v g w
HGETALL h
LPUSH l a b c
LRANGE l 0 -1
ZADD z 1.5 m 2 n
ZRANGE z 0 -1 WITHSCORES
ZSCORE z m
SADD s 1 2 3
SMISMEMBER s 1 9
XADD x 1-1 f v
XRANGE x - +
MSET k1 a k2 b k3 c
MGET k1 none k2 k3
DEL k1 k2 k3
GEOADD g 13.361389 38.115556 p
GEOPOS g p none
INCR h
NOSUCH a b
SET a
SET "two words" "\\x00\\r\\n"
GET "two words"
CLIENT SETNAME cli
CLIENT GETNAME
OBJECT ENCODING s
PING
ECHO "the end"
"""
    assert "the end" in same(both, "redis-cli", "-p", "PORT", *options, stdin=lines)


def test_redis_cli_single_commands(both):
    same(both, "redis-cli", "-p", "PORT", "SET", "a", "1")
    assert same(both, "redis-cli", "-p", "PORT", "-x", "SET", "from-stdin", stdin=b"bytes\x00\xff") == "OK\n"
    assert same(both, "redis-cli", "-p", "PORT", "-n", "0", "-r", "5", "INCR", "a").split() == ["2", "3", "4", "5", "6"]
    assert same(both, "redis-cli", "-u", "redis://127.0.0.1:PORT".replace("PORT", str(both[1])), "GET", "a") == "6\n"
    same(both, "redis-cli", "-p", "PORT", "-e", "NOSUCH")
    same(both, "redis-cli", "-p", "PORT", "-e", "-3", "LPUSH", "a", "x")


def type_into(port, *options, keys):
    """What redis-cli on a terminal shows when this is typed; each line waits for the prompt."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    process = subprocess.Popen(["redis-cli", "-p", str(port), *options], stdin=slave, stdout=slave, stderr=slave,
                               env={**os.environ, "TERM": "xterm", "HOME": "/nonexistent",
                                    "REDISCLI_HISTFILE": "/dev/null"},
                               preexec_fn=die_with_parent)
    os.close(slave)
    shown, end = b"", time.monotonic() + 15

    def until(pattern, after):
        nonlocal shown
        while not re.search(pattern, shown[after:]):
            assert time.monotonic() < end, f"waited for {pattern!r}, shown: {shown[-500:]!r}"
            if select.select([master], [], [], 0.2)[0]:
                shown += os.read(master, 65536)
    try:
        after = 0
        for line in keys:
            until(rb"(?:PORT|\d+)(?:\(TX\))?>[^\r\n]*$", after)
            after = len(shown)
            os.write(master, line.encode() + b"\r")
            until(rb"\r?\n", after)
            after = len(shown) if line in ("exit", "quit") else shown.index(b"\n", after)
        assert process.wait(10) == 0
        try:
            while select.select([master], [], [], 0.1)[0]:
                shown += os.read(master, 65536)
        except OSError:
            pass  # The terminal is gone with its last program.
    finally:
        process.kill()
        process.wait()
        os.close(master)
    # Only what was answered: escape sequences and the line being edited depend on timing.
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).replace(b"\r", b"\n").replace(str(port).encode(), b"PORT")
    return [line for line in text.decode(errors="replace").split("\n") if line.strip() and "PORT" not in line]


INTERACTIVE = ["SET a 1", "GET a", "get none", "HSET h f v", "HGETALL h", "LPUSH a x", "NOSUCH", "MGET a none", "SET a",
               "ECHO 'two words'", "3 INCR a", "HELLO 3", "HGETALL h", "SMISMEMBER s x"]


@pytest.mark.parametrize("options", [[], ["-3"]], ids=["RESP2", "RESP3"])
def test_redis_cli_on_a_terminal(both, options):
    keys = [line for line in INTERACTIVE if line != "HELLO 3"] + ["exit"]
    plain, proxy = (type_into(port, *options, keys=keys) for port in both)
    assert proxy == plain and '"two words"' in "\n".join(proxy)


def test_redis_cli_transaction_on_a_terminal(pair, both):
    needs(pair, "transactions")
    keys = ["MULTI", "SET {t}a 1", "INCR {t}a", "EXEC", "MULTI", "DISCARD", "GET {t}a", "quit"]
    plain, proxy = (type_into(port, keys=keys) for port in both)
    assert proxy == plain and "QUEUED" in proxy


def test_redis_cli_pipe(pair, both):
    """Mass insertion: in the protocol and inline, errors counted, nothing lost."""
    data = b"".join(encode(["SET", f"pipe:{i}", f"value {i}"]) for i in range(3000)) + \
        b"".join(b"RPUSH list:%d x\r\n" % (i % 7) for i in range(700)) + encode(["LPUSH", "pipe:1", "x"])
    shown = same(both, "redis-cli", "-p", "PORT", "--pipe", stdin=data)
    assert "errors: 1, replies: 3701" in shown
    assert pair.states_differ() is None


def test_redis_cli_scan_and_bigkeys(pair, both):
    needs(pair, "scan")
    data = b"".join(encode(["SET", f"key:{i}", "v" * (1 + (i == 77) * 5000)]) for i in range(500)) + \
        encode(["RPUSH", "long", *range(300)]) + encode(["HSET", "wide", *range(40)]) + encode(["ZADD", "z", 1, "a"])
    same(both, "redis-cli", "-p", "PORT", "--pipe", stdin=data)
    for options in (["--scan"], ["--scan", "--pattern", "key:1*"]):
        plain, proxy = (sorted(run("redis-cli", "-p", port, *options).stdout.split()) for port in both)
        assert proxy == plain and len(proxy) == len(set(proxy)) > 100, options
    for option in ("--bigkeys", "--memkeys"):
        done = run("redis-cli", "-p", both[1], option)
        assert done.returncode == 0, done.stdout + done.stderr
        assert b"Sampled 503 keys" in done.stdout, done.stdout
        assert re.search(rb'Biggest list +found .*"?long"?', done.stdout), done.stdout


def test_redis_cli_eval_file(pair, both, tmp_path):
    needs(pair, "scripts")
    script = tmp_path / "script.lua"
    script.write_text("redis.call('SET', KEYS[1], ARGV[1]); return {KEYS[1], redis.call('GET', KEYS[1])}")
    same(both, "redis-cli", "-p", "PORT", "--eval", script, "{k}a", ",", "v")


# redis-benchmark.


@pytest.mark.parametrize("options", [[], ["-P", "16", "-r", "1000"], ["-3", "-d", "100"]], ids=" ".join)
def test_redis_benchmark(both, options):
    """All its tests, to the end and without an error answer."""
    done = run("redis-benchmark", "-p", both[1], "-n", "2000", "-c", "10", "-q", *options)
    shown = done.stdout.decode().replace("\r", "\n")
    assert done.returncode == 0 and "rror" not in shown, shown[-1500:] + done.stderr.decode()
    finished = {line.split(":")[0] for line in shown.splitlines() if "requests per second" in line}
    expected = {"PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET",
                "SPOP", "ZADD", "ZPOPMIN", "LPUSH (needed to benchmark LRANGE)", "LRANGE_100 (first 100 elements)",
                "LRANGE_300 (first 300 elements)", "LRANGE_500 (first 500 elements)", "LRANGE_600 (first 600 elements)",
                "MSET (10 keys)"}
    assert finished == expected


def test_redis_benchmark_of_a_command(both):
    done = run("redis-benchmark", "-p", both[1], "-n", "5000", "-c", "20", "-P", "10", "-r", "100", "-q", "--threads",
               "2", "MGET", "k:__rand_int__", "k:__rand_int__", "k:__rand_int__")
    assert done.returncode == 0 and b"requests per second" in done.stdout and b"rror" not in done.stdout, done.stdout


# Libraries.


def test_hiredis(both, tmp_path):
    if not any(Path(root, "hiredis/hiredis.h").exists() for root in ("/usr/include", "/usr/local/include")):
        pytest.skip("no hiredis to compile against (Debian: libhiredis-dev)")
    program = tmp_path / "hiredis_client"
    built = run("cc", "-O1", "-o", program, Path(__file__).parent / "clients/hiredis_client.c", "-lhiredis", timeout=60)
    assert built.returncode == 0, built.stderr.decode()
    shown = same(both, program, "PORT")
    assert "5000 of 5000 right" in shown and "the same" in shown


def python_everyday(r):
    out = [r.set("{f}s", "v", ex=1000, nx=True), r.set("{f}s", "w", nx=True), r.get("{f}s"), r.append("{f}s", "x"),
           r.zadd("{f}z", {"a": 1, "b": 2.5}), r.zrange("{f}z", 0, -1, withscores=True), r.zpopmin("{f}z"),
           r.xadd("{f}x", {"k": "v"}, id="1-1"), r.xrange("{f}x"), r.hset("{f}h", mapping={"a": 1, "b": 2}),
           r.hmget("{f}h", ["a", "none"]), r.geoadd("{f}g", [13.36, 38.11, "p"]), r.geopos("{f}g", "p", "q"),
           r.setbit("{f}b", 7, 1), r.bitfield("{f}b").incrby("u8", 0, 5).get("u4", 0).execute(), r.pfadd("{f}p", "x"),
           r.mset({f"m{i}": i for i in range(50)}), r.mget([f"m{i}" for i in range(52)]), r.delete("m1", "m2", "none"),
           r.expire("{f}s", 100), 0 < r.ttl("{f}s") <= 100, r.persist("{f}s"), r.type("{f}z"),
           r.object("encoding", "{f}h")]
    pipe = r.pipeline(transaction=False)
    for i in range(200):
        pipe.set(f"p{i}", i).incrby(f"p{i}", 10).get(f"p{i}")
    return out + [pipe.execute()]


def python_transactions(r):
    pipe = r.pipeline()
    out = [pipe.set("{f}k", 1).incr("{f}k").get("{f}k").execute()]
    out.append([str(x) for x in r.pipeline().set("{f}k", "x").incr("{f}k").execute(raise_on_error=False)])
    pipe.watch("{f}k")
    r.set("{f}k", "changed")
    pipe.multi()
    pipe.set("{f}k", "mine")
    try:
        out.append(pipe.execute())
    except redis.WatchError as error:
        out.append(str(error))
    r.set("{f}n", 1)
    return out + [r.transaction(lambda p: (p.multi(), p.incr("{f}n")), "{f}n"), r.get("{f}k")]


def python_scripts(r):
    add = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    with r.lock("{f}lock", timeout=10) as lock:
        owned = lock.owned()
    return [add(keys=[key], args=[5]) for key in ("a", "b", "c", "a")] + [owned, r.exists("{f}lock")]


def python_pubsub(r):
    listener, heard = r.pubsub(), []
    listener.subscribe("one", "two")
    listener.psubscribe("thr*")

    def hear(count):
        while len(heard) < count:
            message = listener.get_message(timeout=3)
            assert message is not None, heard
            heard.append(message)
    hear(3)
    counts = []
    for number, channel in enumerate(("one", "two", "three", "four")):
        counts.append(r.publish(channel, number))
        hear(3 + min(number + 1, 3))
    listener.unsubscribe("one")
    hear(7)
    counts.append(r.publish("one", "x"))
    listener.close()
    return counts, heard


def python_scan(r):
    r.mset({f"scan:{i}": i for i in range(300)})
    r.sadd("{f}set", *range(600))
    keys = list(r.scan_iter("scan:*", count=20))
    return len(keys), sorted(keys), sorted(r.sscan_iter("{f}set")), r.dbsize()


def python_blocking(r):
    r.rpush("{f}l", "a", "b")
    return [r.blpop("{f}l", 1), r.brpop(["{f}none", "{f}l"], 1), r.blpop("{f}l", 0.05), r.bzpopmin("{f}z", 0.05)]


PYTHON = {"everyday": python_everyday, "transactions": python_transactions, "scripts": python_scripts,
          "pubsub": python_pubsub, "scan": python_scan, "blocking": python_blocking}


@pytest.mark.parametrize("feature", PYTHON)
@pytest.mark.parametrize("options", [{}, {"decode_responses": True, "client_name": "app", "health_check_interval": 1}],
                         ids=["bytes", "text"])
def test_redis_py(pair, both, feature, options):
    if feature in FEATURES:
        needs(pair, feature)
    plain, proxy = (PYTHON[feature](redis.Redis(port=port, socket_timeout=5, **options)) for port in both)
    assert proxy == plain


@pytest.mark.parametrize("client", ["ioredis_features.mjs", "node_redis_features.mjs"])
def test_node_clients(pair, both, node_clients, client):
    wanted = ["everyday"]
    for feature in FEATURES:
        try:
            needs(pair, feature)
            wanted.append(feature)
        except pytest.skip.Exception:
            pass
    seen = []
    for port in both:
        done = subprocess.run(["node", client, str(port), *wanted], cwd=node_clients, capture_output=True, text=True,
                              timeout=60, preexec_fn=die_with_parent)
        assert done.returncode == 0, done.stdout + done.stderr
        seen.append(json.loads(done.stdout))
    assert list(seen[0]) == wanted and not any(str(part).startswith("failed:") for part in seen[0].values()), seen[0]
    assert seen[1] == seen[0]
