"""The proxy over a spec file: other people's clients do their everyday work through it."""
import json
import random
import subprocess

import pytest
import redis

from harness.process import wait_until


def test_redis_py_everyday_commands(static):
    r = static.client()
    assert r.ping()
    assert r.set("a", "1") and r.get("a") == b"1"
    assert r.get("none") is None
    assert r.incr("n") == 1 and r.incrby("n", 41) == 42
    assert r.set("t", "x", px=60000) and 59000 < r.pttl("t") <= 60000
    assert r.hset("h", mapping={"f": "1", "g": "2"}) == 2 and r.hgetall("h") == {b"f": b"1", b"g": b"2"}
    assert r.rpush("l", "a", "b", "c") == 3 and r.lrange("l", 0, -1) == [b"a", b"b", b"c"]
    assert r.sadd("s", "x", "y") == 2 and r.smembers("s") == {b"x", b"y"}
    assert r.zadd("z", {"m": 1.5}) == 1 and r.zscore("z", "m") == 1.5
    assert r.append("a", "23") == 3 and r.strlen("a") == 3
    assert r.setnx("a", "no") is False and r.getset("a", "4") == b"123"
    assert r.expire("a", 100) and r.persist("a") and r.ttl("a") == -1
    assert r.type("z") == b"zset"
    assert r.delete("a") == 1 and r.exists("a") == 0
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        r.get("h")
    assert r.get("n") == b"42", "an error answer leaves the connection usable"


def test_any_bytes(static):
    r = static.client()
    every = bytes(range(256))
    for key in (b"", b"\r\n", every, b"{tag}x", b"x" * 10000):
        for value in (b"", b"\r\n$-1\r\n", every * 40):
            assert r.set(key, value) and r.get(key) == value
    big = random.Random(1).randbytes(5 << 20)
    assert r.set("big", big) and r.get("big") == big


def test_multi_key_commands_keep_their_order(static):
    r = static.client()
    keys = [f"m{i}" for i in range(300)]
    assert r.mset({key: f"v-{key}" for key in keys})
    asked = keys + ["none"] + keys[:10]  # Some twice, one absent.
    assert r.mget(asked) == [f"v-{key}".encode() if key != "none" else None for key in asked]
    assert r.exists(*asked) == 310
    assert r.touch(*keys) == 300
    assert r.delete(*keys[:100], "none") == 100
    assert r.unlink(*keys[50:200]) == 100
    assert r.exists(*keys) == 100


def test_pipeline_answers_come_in_order(static):
    r = static.client()
    pipeline = r.pipeline(transaction=False)
    expected = []
    for i in range(2000):
        pipeline.set(f"p{i % 97}", i)
        pipeline.get(f"p{i % 97}")
        expected += [True, str(i).encode()]
        if i % 10 == 0:
            pipeline.mget(f"p{i % 97}", "none")
            expected.append([str(i).encode(), None])
    assert pipeline.execute() == expected


def test_an_error_within_a_pipeline_hurts_nobody_else(static):
    r = static.client()
    pipeline = r.pipeline(transaction=False)
    pipeline.set("a", "text").incr("a").execute_command("NOSUCH", "x").get("a")
    ok, not_integer, unknown, value = pipeline.execute(raise_on_error=False)
    assert ok is True and value == b"text"
    assert "integer" in str(not_integer) and "unknown command" in str(unknown)


def test_keys_are_where_route_says(static):
    written = static.fill(4000)
    static.assert_placed(static.spec)
    for member, keys in static.census().items():
        assert 0.17 < len(keys) / 4000 < 0.33, f"{member} has {len(keys)} of 4000"
    # The other proxy reads what this one wrote.
    static.assert_filled(written)


@pytest.mark.parametrize("command", [
    ["NOSUCHCOMMAND", "a"], ["FLUSHALL"], ["SHUTDOWN"], ["CONFIG", "SET", "maxmemory", "1"], ["DEBUG", "SLEEP", "9"],
    ["MONITOR"], ["SELECT", "1"], ["SORT", "k", "BY", "w_*"], ["GET"], ["GET", "a", "b"],
    ["CLUSTER", "SLOTS"], ["REPLICAOF", "NO", "ONE"], ["MIGRATE", "h", "1", "k", "0", "1"],
])
def test_what_is_not_supported_answers_an_error_and_the_connection_lives(static, command):
    connection = redis.Connection(port=static.proxies[0].port, socket_timeout=5)
    connection.connect()
    connection.send_command(*command)
    with pytest.raises(redis.ResponseError):
        raise connection.read_response()  # redis-py hands over an error answer as a value or raises it.
    connection.send_command("SET", "alive", "yes")
    assert connection.read_response() == b"OK"
    connection.disconnect()
    assert all(member.process.alive() for member in static.members)


@pytest.mark.parametrize("command", [["SET", "rs:stamp", "x"], ["GET", "rs:stamp"], ["DEL", "a", "rs:claim:{a}"],
                                     ["MSET", "a", "1", "rs:x", "2"]])
def test_reserved_keys_are_refused(static, command):
    with pytest.raises(redis.ResponseError, match="reserved by ringshift"):
        static.client().execute_command(*command)
    assert static.client().exists("a") == 0, "nothing of the command was done"


def test_redis_cli_speaks_resp3(static):
    static.client().hset("h", "field", "value")
    done = subprocess.run(["redis-cli", "-3", "--no-raw", "-p", str(static.proxies[0].port)], text=True, timeout=20,
                          input="HELLO 3\nHGETALL h\nGET none\nPING\nNOSUCH\nECHO still-here\n", capture_output=True)
    assert '1# "field" => "value"' in done.stdout, done.stdout + done.stderr  # A map, and not an array.
    assert '"proto" => (integer) 3' in done.stdout
    assert "(nil)" in done.stdout and "PONG" in done.stdout and "still-here" in done.stdout
    assert "unknown command" in done.stdout


def test_a_dead_member_errors_its_own_keys_only(make_cluster):
    cluster = make_cluster(members=3, proxies=1).start_static(options=["--request-timeout-ms", "500"])
    written = cluster.fill(300)
    owners = cluster.owners(written, cluster.spec)
    cluster.members[1].process.kill()
    r = cluster.client()
    for key, value in written.items():
        if owners[key] == "cache-2":
            with pytest.raises(redis.ResponseError, match="cache-2"):
                r.get(key)  # An error, never a nil.
        else:
            assert r.get(key) == value
    with pytest.raises(redis.ResponseError, match="cache-2"):
        r.mget(list(written))
    cluster.members[1].start()
    lost = next(key for key in written if owners[key] == "cache-2")

    def back():
        try:
            return r.set(lost, b"again")
        except redis.ResponseError:
            return False
    wait_until("the proxy finds the member again", back)
    assert r.get(lost) == b"again"


def test_a_hung_member_delays_nobody_else(make_cluster):
    cluster = make_cluster(members=3, proxies=1).start_static(options=["--request-timeout-ms", "400"])
    written = cluster.fill(300)
    owners = cluster.owners(written, cluster.spec)
    cluster.members[0].process.pause()
    try:
        for key, value in [item for item in written.items() if owners[item[0]] != "cache-1"][:50]:
            assert cluster.client(socket_timeout=0.3).get(key) == value
        with pytest.raises(redis.ResponseError, match="TIMEOUT|TRYAGAIN"):
            cluster.client().get(next(key for key in written if owners[key] == "cache-1"))
    finally:
        cluster.members[0].process.resume()


def run_node(directory, script, port):
    done = subprocess.run(["node", script, str(port)], cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_ioredis(static, node_clients):
    out = run_node(node_clients, "ioredis.mjs", static.proxies[0].port)
    values = [f"v{i}" for i in range(100)] + [None]
    assert "unknown command" in out.pop("unknown")
    assert out == {"ping": "PONG", "set": "OK", "get": "1", "missing": None, "incr": 1, "hgetall": {"f": "x", "g": "y"},
                   "mset": "OK", "mget": values, "del": 50, "pipeline": 1000, "binary": True, "alive": "1",
                   "parallel": 2000}


def test_node_redis(static, node_clients):
    out = run_node(node_clients, "node_redis.mjs", static.proxies[1].port)
    values = [f"v{i}" for i in range(100)] + [None]
    assert "unknown command" in out.pop("unknown")
    assert out == {"ping": "PONG", "set": "OK", "get": "1", "ttl": True, "missing": None, "incr": 5,
                   "hgetall": {"f": "x", "g": "y"}, "list": ["a", "b", "c"], "zscore": 1.5, "mset": "OK",
                   "mget": values, "del": 50, "parallel": 2000, "last": "1999"}


def test_history_through_two_proxies_is_clean(static):
    with static.history(rate=6000, settle=2) as load:
        pass
    j = load.assert_clean(least=5000)
    assert j["unknown"] == 0 and j["not_executed"] == 0


def test_history_stays_clean_when_a_proxy_is_killed(make_cluster):
    cluster = make_cluster(members=3, proxies=3).start_static()
    with cluster.history(settle=1) as load:
        cluster.proxies[0].kill()
    j = load.assert_clean()
    assert j["reconnects"] > 0
