"""Whoever is told to end while the registry is down does so at once: nobody waits there for what cannot be said."""
import os
import signal
import time

import pytest

from harness.process import free_port, wait_until
from harness.registries import ZooKeeper
from test_49_agents import Agents

PROMPT_SECONDS = 2.0


@pytest.fixture
def on_zookeeper(make_cluster, tmp_path):
    """A member, its agent, a controller and a proxy, on a ZooKeeper that is about to be lost."""
    ensemble = ZooKeeper(tmp_path)
    cluster = make_cluster(members=1, proxies=1)
    absent = "".join(f",127.0.0.1:{free_port()}" for _ in range(2))  # Of several servers each is asked again and again.
    cluster.registry_url = f"zk://{ensemble.hosts}{absent}/endings"
    cluster.spec = cluster.write_spec()
    cluster.start_controller()
    cluster.apply(cluster.spec)
    cluster.add_proxy()
    cluster.agent = Agents(cluster).start(None, instance="cache-2", address=cluster.add_member().address)
    wait_until("registered", lambda: "registered as" in cluster.agent.errors())
    yield cluster, ensemble
    ensemble.stop()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "hanging"])
def test_nobody_waits_for_a_zookeeper_that_is_down(on_zookeeper, how):
    cluster, ensemble = on_zookeeper
    for server in ensemble.servers:
        os.kill(server.pid, how)
    # Long enough that each of them has noticed.
    wait_until("the agent notices", lambda: "trying again, for ever" in cluster.agent.errors(), 40)
    wait_until("the router notices", lambda: "registry unreachable" in cluster.proxies[0].errors(), 40)
    took = {}
    for process in (cluster.agent, cluster.proxies[0], cluster.controller):
        process.expected_dead = True
        begin = time.monotonic()
        process.send(signal.SIGTERM)
        assert process.popen.wait(40) == 0, process.tail()
        took[process.name] = round(time.monotonic() - begin, 2)
    # The agent looks twice whether its server is at rest, half a second apart at most.
    assert all(seconds < PROMPT_SECONDS for seconds in took.values()), took
