"""The proxy is administered with Redis' own tools."""
import subprocess

import pytest
import redis

from harness.cluster import run
from harness.process import wait_until


def tool(*words, timeout=15):
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def one(make_cluster):
    """Two members, one proxy with flags of this test's."""
    def make(*options):
        cluster = make_cluster(members=2)
        cluster.start_static(proxies=1, options=options)
        return cluster, cluster.client()
    return make


def port_of(client):
    return str(client.connection_pool.connection_kwargs["port"])


def test_redis_cli_stat_and_benchmark(one):
    _, r = one()
    r.set("k", "v")
    shown = tool("stdbuf", "-oL", "timeout", "1.5", "redis-cli", "-p", port_of(r), "-i", "0.2", "--stat")
    lines = [line.split() for line in shown.stdout.splitlines()[2:]]
    assert len(lines) >= 3, shown.stdout
    assert all(len(line) >= 6 and line[1][-1] in "KMG" and int(line[2]) >= 1 for line in lines), shown.stdout
    report = tool("redis-benchmark", "-p", port_of(r), "-t", "get", "-n", "2000", "-c", "5", "-q")
    assert "requests per second" in report.stdout and "WARNING" not in report.stdout + report.stderr, report


def test_redis_py_reads_what_the_proxy_says_of_itself(one):
    _, r = one()
    r.client_setname("me")
    info = r.info()
    assert info["redis_version"] == "7.0.15" and info["connected_clients"] >= 1 and info["used_memory"] > 0
    wait_until("both members are connected", lambda: {r.info("members")[f"cache-{n}_state"] for n in (1, 2)} ==
               {"connected"})
    assert [client["name"] for client in r.client_list() if client["cmd"] == "client|list"] == ["me"]
    assert r.config_get("max*") == {"maxclients": "10000"}
    assert r.config_set("slowlog-log-slower-than", 0)
    r.set("slow", "x" * 300)
    r.ping()
    entries = [entry["command"] for entry in r.slowlog_get(10)]
    assert any(command.startswith(b"SET slow xxx") for command in entries), entries
    assert r.slowlog_len() >= 2 and r.slowlog_reset()
    with pytest.raises(redis.ResponseError, match="Unknown option or number of arguments for CONFIG SET - 'nosuch'"):
        r.config_set("nosuch", 1)


def test_flags_are_the_settings(one):
    cluster, r = one("--timeout", "1", "--tcp-keepalive", "60", "--max-clients", "50", "--max-client-output", "32mb",
                     "--max-total-output", "1gb", "--slow-client-timeout", "9", "--slowlog-log-slower-than", "5000",
                     "--slowlog-max-len", "7")
    assert r.config_get("timeout", "tcp-keepalive", "maxclients", "client-output-buffer-limit", "ringshift-total-output",
                        "ringshift-slow-client-timeout", "slowlog*") == {
        "timeout": "1", "tcp-keepalive": "60", "maxclients": "50", "ringshift-total-output": str(1 << 30),
        "client-output-buffer-limit": "normal 33554432 0 0 slave 0 0 0 pubsub 33554432 0 0",
        "ringshift-slow-client-timeout": "9", "slowlog-log-slower-than": "5000", "slowlog-max-len": "7"}
    idle = redis.connection.Connection(port=int(port_of(r)), socket_timeout=10)
    idle.connect()
    with pytest.raises(redis.ConnectionError, match="closed"):
        idle.read_response()


@pytest.mark.parametrize("command", ["proxy", "serve"])
def test_help_names_the_flags(command):
    text = run(command, "--help").stdout
    for flag in ("--timeout", "--tcp-keepalive", "--max-clients", "--max-client-output", "--max-total-output",
                 "--slow-client-timeout", "--slowlog-log-slower-than", "--slowlog-max-len"):
        assert flag in text, text
