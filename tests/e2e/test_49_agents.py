"""`ringshift agent` beside real servers: what it says, and what it does when leases are lost, the registry dies,
servers hang, somebody else has its id, and when it is told to end."""
import base64
import json
import os
import pwd
import signal
import socket
import time
import urllib.request

import pytest
import redis

from harness.cluster import BAD_USAGE, RINGSHIFT, run
from harness.process import Process, free_port, wait_until
from test_71_admin_port import PORT, ask, metrics, value

# Short, so that the tests are.
QUICK = ["--lease-seconds", 2, "--probe-interval-ms", 100, "--probe-timeout-ms", 500, "--rise", 2, "--fall", 2]


class Agents:
    """Agents of a cluster's members."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.count = 0

    def start(self, member, *options, address=None, instance=None, env=None, wait=True, drain_ms=3000):
        self.count += 1
        agent = Process(f"agent-{self.count}", [
            RINGSHIFT, "agent", "--registry", self.cluster.registry_url, "--cluster", self.cluster.name, "--id",
            instance or member.id, "--address", address or member.address, "--drain-timeout-ms", drain_ms, *QUICK,
            *options], self.cluster.directory, env)
        self.cluster.others.append(agent)
        agent.start()
        if wait:
            agent.wait_ready(30)
        return agent

    def kv(self, key, **body):
        """A key of the cluster, as the registry has it."""
        name = f"/ringshift/default/{self.cluster.name}/{key}"
        body["key"] = base64.b64encode(name.encode()).decode()
        verb = body.pop("verb", "range")
        if "value" in body:
            body["value"] = base64.b64encode(body["value"].encode()).decode()
        request = urllib.request.Request(f"{self.cluster.registry_url}/v3/kv/{verb}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            found = json.load(answer).get("kvs")
        return base64.b64decode(found[0]["value"]).decode() if found else None

    def record(self, instance):
        text = self.kv(f"instances/{instance}")
        return json.loads(text) if text else None

    def wait_state(self, instance, state, timeout=30):
        last = None

        def look():
            nonlocal last
            last = self.record(instance)
            return last and last["state"] == state and last
        return wait_until(lambda: f"{instance} is {state}: {last}", look, timeout)


@pytest.fixture
def agents(make_cluster):
    cluster = make_cluster(members=1, proxies=0)
    cluster.start_registry()
    return Agents(cluster)


def test_an_agent_tells_how_its_server_does(agents):
    member = agents.cluster.members[0]
    notify = agents.cluster.directory / "notify"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(notify))
    manager.settimeout(20)
    agent = agents.start(member, "--label", "rack=r7", "--label", "weight=100", *PORT, env={"NOTIFY_SOCKET": str(notify), "WATCHDOG_USEC": "3000000"})
    said = []
    while not any("READY=1" in line for line in said):  # The first attempt to register waits a random time.
        assert len(said) < 200, said
        said.append(manager.recv(1000).decode())
    while not any("WATCHDOG=1" in line for line in said):
        said.append(manager.recv(1000).decode())
    record = agents.wait_state("cache-1", "ready")
    assert record["address"] == member.address and record["protocol"] == "redis"
    assert record["labels"] == {"rack": "r7", "weight": "100"}
    assert set(record) == {"id", "address", "protocol", "state", "started_at", "labels"}, "no more than everybody needs"
    figures = metrics(agent.admin_url())
    assert value(figures, "ringshift_agent_server_used_memory_bytes", instance_id="cache-1") > 0
    assert value(figures, "ringshift_agent_state", state="ready") == 1
    assert ask(agent.admin_url() + "/readyz")[0] == 200
    member.process.pause()
    record = agents.wait_state("cache-1", "unhealthy")
    assert record["reason"], record
    wait_until("its figures say so", lambda: value(metrics(agent.admin_url()), "ringshift_agent_server_up") == 0)
    member.process.resume()
    agents.wait_state("cache-1", "ready")
    member.client.replicaof("127.0.0.1", free_port())
    assert "slave" in agents.wait_state("cache-1", "unhealthy")["reason"]
    member.client.replicaof("NO", "ONE")
    agents.wait_state("cache-1", "ready")
    # Nobody uses it: it is drained at once, and gone from the registry.
    agent.expected_dead = True
    assert agent.end(20) == 0
    assert agents.record("cache-1") is None
    assert "nobody uses cache-1 any more" in agent.errors()


def test_a_wrong_target_is_never_ready(agents):
    registry = agents.cluster.registry_url.removeprefix("http://")  # It answers, but is no Redis.
    agents.start(None, instance="wrong", address=registry)
    agents.start(None, instance="absent", address=f"127.0.0.1:{free_port()}")
    agents.start(None, "--protocol", "memcached", instance="mixed", address=agents.cluster.members[0].address)
    for instance in ("wrong", "absent", "mixed"):
        assert agents.wait_state(instance, "unhealthy")["reason"]
    for bad in (["--address", "h:1", "--id", "a/b"], ["--id", "a", "--address", "h"],
                ["--id", "a", "--address", "h:1", "--label", "x"],
                ["--id", "a", "--address", "h:1", "--label", "city=Zürich"],
                ["--id", "a", "--address", "h:1", "--label", "odd=\udcff"],
                ["--id", "a", "--address", "h:1", "--label", "x" * 257 + "=y"],
                ["--id", "a", "--address", "h:1", "--label", "x=1", "--label", "x=2"],
                ["--id", "a", "--address", "h:1", "--probe-address", "nonsense"],
                ["--id", "a", "--address", "0.0.0.0:6379"], ["--id", "a", "--address", "[::]:6379"]):
        refused = run("agent", "--cluster", "cache", *bad)
        assert refused.returncode == BAD_USAGE and bad[-2] in refused.stderr, refused
    for odd in (["--cluster", "cache", "--namespace", "a/b"], ["--cluster", "a/b"]):
        refused = run("member", "policy", *odd)
        assert refused.returncode == BAD_USAGE and odd[-2] in refused.stderr, refused


def test_a_lease_lost_in_a_pause_is_taken_again(agents):
    agent = agents.start(agents.cluster.members[0])
    started = agents.wait_state("cache-1", "ready")["started_at"]
    agent.pause()
    wait_until("its lease is over", lambda: agents.record("cache-1") is None, timeout=30)
    agent.resume()
    assert agents.wait_state("cache-1", "ready")["started_at"] == started
    # A registry that is killed and comes back; and one whose record somebody removed.
    agents.cluster.registry.kill()
    time.sleep(1)
    agents.cluster.registry.start()
    agents.cluster.registry.wait_ready()
    agents.wait_state("cache-1", "ready")
    agents.kv("instances/cache-1", verb="deleterange")
    agents.wait_state("cache-1", "ready")


def test_another_ones_record_is_not_overwritten(agents):
    member = agents.cluster.members[0]
    first = agents.start(member)
    agents.wait_state("cache-1", "ready")
    second = agents.start(member, address=f"127.0.0.1:{free_port()}", wait=False)
    wait_until("the second one says so", lambda: "belongs to another agent" in second.errors(), timeout=30)
    for _ in range(20):
        assert agents.record("cache-1")["address"] == member.address
        time.sleep(0.1)
    first.kill()  # Its record dies with its lease, and is the second one's then.
    wait_until("the second one has it", lambda: (agents.record("cache-1") or {}).get("address", member.address)
               != member.address, timeout=30)


def test_sigterm_waits_for_requests_to_end(agents):
    member = agents.cluster.members[0]
    agent = agents.start(member, drain_ms=20000)
    agents.wait_state("cache-1", "ready")
    with redis.Redis(port=member.port, client_name="rs:router") as router:
        router.set("a", 1)
        agent.expected_dead = True
        agent.send(signal.SIGTERM)
        agents.wait_state("cache-1", "draining")
        for _ in range(30):
            router.incr("a")
            time.sleep(0.1)
            assert agent.alive(), agent.tail()
        router.connection_pool.disconnect()
    assert agent.popen.wait(30) == 0
    assert agents.record("cache-1") is None


def test_beside_a_memcached(agents):
    port = free_port()
    command = ["memcached", "-l", "127.0.0.1", "-p", port, "-m", 16, "-t", 1]
    if os.geteuid() == 0:  # Else it does not start.
        command += ["-u", pwd.getpwuid(0).pw_name]
    server = Process("memcached", command, agents.cluster.directory)
    agents.cluster.others.append(server)
    server.start()

    def connected():
        try:
            return socket.create_connection(("127.0.0.1", port), 1)
        except OSError:
            return None
    client = wait_until(lambda: f"memcached\n{server.tail()}", connected)
    agent = agents.start(None, "--protocol", "memcached", *PORT, instance="mc-1", address=f"127.0.0.1:{port}", drain_ms=20000)
    assert agents.wait_state("mc-1", "ready")["protocol"] == "memcached"
    assert value(metrics(agent.admin_url()), "ringshift_agent_server_max_memory_bytes") == 16 << 20
    server.pause()
    assert agents.wait_state("mc-1", "unhealthy")["reason"]
    server.resume()
    agents.wait_state("mc-1", "ready")
    # It knows no names of connections: commands that are not the agent's own keep a drain waiting.
    with client, client.makefile("rb") as answers:
        agent.expected_dead = True
        agent.send(signal.SIGTERM)
        agents.wait_state("mc-1", "draining")
        for number in range(20):
            client.sendall(b"set key%d 0 0 1\r\nx\r\n" % number)
            assert answers.readline() == b"STORED\r\n"
            time.sleep(0.1)
            assert agent.alive(), agent.tail()
    assert agent.popen.wait(30) == 0
    assert agents.record("mc-1") is None and "nobody uses mc-1" in agent.errors()
    server.kill()
    server.expected_dead = True


def test_an_operators_drain_survives_restarts(agents):
    agents.kv("drained/cache-1", verb="put", value="{}")
    agent = agents.start(agents.cluster.members[0])
    agents.wait_state("cache-1", "draining")
    agent.kill()
    agents.cluster.registry.kill()
    agents.cluster.registry.start()
    agents.cluster.registry.wait_ready()
    agent.start().wait_ready(30)
    agents.wait_state("cache-1", "draining")
    agents.kv("drained/cache-1", verb="deleterange")
    agents.wait_state("cache-1", "ready")


def test_a_drain_ends_where_the_agent_may_not_list_clients(agents):
    member = agents.cluster.members[0]
    member.client.execute_command("ACL", "SETUSER", "default", "-client|list")
    agent = agents.start(member, drain_ms=20000)
    agents.wait_state("cache-1", "ready")
    member.hang_up()
    agent.expected_dead = True
    began = time.monotonic()
    agent.send(signal.SIGTERM)
    assert agent.popen.wait(30) == 0
    assert time.monotonic() - began < 10 and "nobody uses cache-1" in agent.errors(), agent.errors()


def test_a_drain_waits_for_a_server_that_does_not_answer_and_not_for_one_that_is_gone(agents):
    member = agents.cluster.members[0]
    agent = agents.start(member, drain_ms=4000)
    agents.wait_state("cache-1", "ready")
    member.process.pause()  # Who knows what its clients wait for.
    agent.expected_dead = True
    began = time.monotonic()
    agent.send(signal.SIGTERM)
    assert agent.popen.wait(30) == 0
    assert time.monotonic() - began > 3.5
    assert "nobody knows whether it is used" in agent.errors() and "nobody uses" not in agent.errors()
    member.process.resume()
    agent = agents.start(member, drain_ms=20000)
    agents.wait_state("cache-1", "ready")
    member.process.kill()
    agent.expected_dead = True
    began = time.monotonic()
    agent.send(signal.SIGTERM)
    assert agent.popen.wait(30) == 0
    assert time.monotonic() - began < 10 and "nobody uses cache-1" in agent.errors()
