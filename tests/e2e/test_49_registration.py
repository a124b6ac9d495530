"""`ringshift agent --register`: a real Redis made known in Consul and Nacos (simulators of their APIs, tests/e2e/sim), and
found there again by the sources that read them."""
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis

from harness.cluster import BAD_USAGE, RINGSHIFT, run
from harness.process import Process, wait_until
from sim.consul import Consul
from sim.nacos import Nacos
from test_49_agents import QUICK
from test_60_discovery_sources import secret, show, simulate  # pylint: disable=unused-import

TOKEN, PASSWORD = "c0nsul-t0ken-of-the-agent", "pa:ss&word"


@pytest.fixture
def beside(make_cluster):
    """An agent beside a Redis, without a registry of ours."""
    cluster = make_cluster(members=1, proxies=0)
    member = cluster.members[0]
    host, port = member.address.split(":")

    def start(*options):
        agent = Process("agent", [RINGSHIFT, "agent", "--registry", "none", "--cluster", "cache", "--id", "cache-1",
                                  "--address", member.address, "--label", "rack=r7", "--label", "a.b=c", *QUICK,
                                  *options], cluster.directory)
        cluster.others.append(agent)
        return agent.start()
    return SimpleNamespace(cluster=cluster, member=member, start=start, host=host, port=int(port))


def keep_busy(member, until):
    """A router's connection, whose commands a drain waits for."""
    host, port = member.address.split(":")
    client = redis.Redis(host, int(port), client_name="rs:router-9")

    def work():
        while not until.is_set():
            client.get("x")
            time.sleep(0.02)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def nothing_secret(process, server, *secrets):
    said = process.output() + process.errors() + "".join(target for _, _, target, _ in server.requests)
    said += Path(f"/proc/{process.pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    for one in secrets:
        assert one not in said


def test_consul(beside, simulate, show, tmp_path):
    server = simulate(Consul, token=TOKEN)
    token = secret(tmp_path / "token", TOKEN)
    server.faults["500"] = 2
    agent = beside.start("--register", f"consul service=cache url={server.url} token_file={token} tag=blue",
                         "--log-level", "debug")
    shown = show("--source", "consul", "--url", server.url, "--service", "cache", "--token-file", token)
    shown.wait_state("cache-1", "ready")
    agent.wait_ready(30)
    found = shown.lists()[-1]["cache-1"]
    assert found["address"] == beside.member.address and found["protocol"] == "redis"
    assert found["labels"]["rack"] == "r7" and found["labels"]["consul.tags"] == "blue"
    assert "weight" not in found["labels"] and "label 'a.b'" in agent.errors()

    beside.member.process.pause()
    shown.wait_state("cache-1", "unhealthy")
    wait_until("the note says why", lambda: server.notes["cache-1"])
    beside.member.process.resume()
    shown.wait_state("cache-1", "ready")
    server.deregister("cache-1")  # By somebody, or a restart that lost it.
    wait_until("registered again", lambda: agent.errors().count("registered in") == 2)
    shown.wait_ids("cache-1")
    shown.wait_state("cache-1", "ready")
    agent.pause()  # Longer than the time to live.
    shown.wait_state("cache-1", "unhealthy")
    agent.resume()
    shown.wait_state("cache-1", "ready")
    server.faults["hang"] = None
    time.sleep(0.5)
    beside.member.process.pause()  # A hung Consul keeps no probe from looking.
    wait_until("seen", lambda: "cache-1 is unhealthy" in agent.errors().rsplit("cache-1 is ready", 1)[-1])
    beside.member.process.resume()
    del server.faults["hang"]
    wait_until("beaten for again", lambda: server.state("cache-1") == {"service": "passing"})
    nothing_secret(agent, server, TOKEN)

    over = threading.Event()
    busy = keep_busy(beside.member, over)
    agent.expected_dead = True
    agent.send(15)
    # What the hang did to the one who looks is not our matter: the server itself says it.
    draining = {"service": "passing", "_service_maintenance": "critical"}
    wait_until(lambda: f"draining: {server.state('cache-1')}", lambda: server.state("cache-1") == draining)
    over.set()
    busy.join()
    wait_until("it ends", lambda: not agent.alive())
    assert not server.services


def test_nacos(beside, simulate, show, tmp_path):
    server = simulate(Nacos, user=("agent", PASSWORD), token_ttl=5, unhealthy_after=7, removed_after=9)
    auth = secret(tmp_path / "auth", f"user:agent:{PASSWORD}")
    words = f"nacos service=cache url={server.url} auth_file={auth} group=shop clusters=east"
    agent = beside.start("--register", words, "--log-level", "debug")
    shown = show("--source", "nacos", "--url", server.url, "--service", "cache", "--group", "shop", "--id-label", "id",
                 "--poll", "100ms", "--auth-file", auth)
    shown.wait_state("cache-1", "ready")
    agent.wait_ready(30)
    found = shown.lists()[-1]["cache-1"]
    assert found["address"] == beside.member.address and found["protocol"] == "redis"
    assert found["labels"]["rack"] == "r7" and found["labels"]["nacos.cluster"] == "east"
    (host,) = server.hosts.values()
    assert host["weight"] == 1 and host["ephemeral"]

    beside.member.process.pause()  # Its agent beats on: who asks Nacos must not be sent there, all the same.
    shown.wait_state("cache-1", "unhealthy")
    assert not list(server.hosts.values())[0]["enabled"]
    beside.member.process.resume()
    shown.wait_state("cache-1", "ready")
    server.remove(beside.host, beside.port, group="shop")
    wait_until("registered again", lambda: agent.errors().count("registered in") == 2)
    assert "has forgotten us" in agent.errors()
    shown.wait_ids("cache-1")
    server.faults["forget"] = 1
    logins = server.logins
    wait_until("logged in again", lambda: server.logins > logins + 1, 30)
    shown.wait_state("cache-1", "ready")
    nothing_secret(agent, server, PASSWORD, "pa%3Ass", "signature")

    over = threading.Event()
    busy = keep_busy(beside.member, over)
    agent.expected_dead = True
    agent.send(15)
    shown.wait_state("cache-1", "draining")
    over.set()
    busy.join()
    wait_until("it ends", lambda: not agent.alive())
    assert not server.hosts


def test_what_cannot_be_is_refused():
    for words, why in {"zk service=a": "neither consul nor nacos", "consul": "service: is missing",
                       "consul service=a poll=1s": "is for finding instances", "consul service": "write FIELD=VALUE",
                       "consul service=a group=b": "no field of kind consul",
                       "nacos service=a clusters=x,y": "in one of them",
                       "consul service=a url=http://u:p@h:1": "secrets go into a file"}.items():
        done = run("agent", "--cluster", "c", "--id", "a", "--address", "h:1", "--register", words, check=BAD_USAGE)
        assert why in done.stderr, done.stderr
        assert "u:p" not in done.stderr
    done = run("agent", "--cluster", "c", "--id", "a", "--address", "unix:/tmp/x", "--register", "consul service=a",
               check=BAD_USAGE)
    assert "HOST:PORT alone" in done.stderr
    done = run("agent", "--registry", "none", "--cluster", "c", "--id", "a", "--address", "h:1", check=BAD_USAGE)
    assert "--register" in done.stderr
