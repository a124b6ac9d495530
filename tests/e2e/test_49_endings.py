"""Whoever is told to end while the registry is down does so at once: nobody waits there for what cannot be said."""
import os
import signal
import time

import pytest

from harness.process import free_port, wait_until
from harness.registries import ZooKeeper
from test_49_agents import Agents

PROMPT_SECONDS = 3.0  # 1.5 on an idle machine; without a word to hurry the last of them took 12.


def start_all(cluster):
    """A member, its agent, a controller and a proxy, on a registry that is about to be lost."""
    cluster.spec = cluster.write_spec()
    cluster.start_controller()
    cluster.apply(cluster.spec)
    cluster.add_proxy()
    cluster.agent = Agents(cluster).start(None, instance="cache-2", address=cluster.add_member().address)
    wait_until("registered", lambda: "registered as" in cluster.agent.errors())


def lose(cluster, processes, how):
    """Long enough that each of them has noticed."""
    for process in processes:
        os.kill(process.pid, how)
    wait_until("the agent notices", lambda: "trying again, for ever" in cluster.agent.errors(), 40)
    wait_until("the router notices", lambda: "registry unreachable" in cluster.proxies[0].errors(), 40)


def assert_they_end(cluster, within=PROMPT_SECONDS):
    took = {}
    for process in (cluster.agent, cluster.proxies[0], cluster.controller):
        process.expected_dead = True
        begin = time.monotonic()
        process.send(signal.SIGTERM)
        assert process.popen.wait(40) == 0, process.tail()
        took[process.name] = round(time.monotonic() - begin, 2)
    # The agent looks twice whether its server is at rest, half a second apart at most.
    assert all(seconds < within for seconds in took.values()), took


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "hanging"])
def test_nobody_waits_for_a_zookeeper_that_is_down(make_cluster, tmp_path, how):
    ensemble = ZooKeeper(tmp_path)
    try:
        cluster = make_cluster(members=1, proxies=1)
        absent = "".join(f",127.0.0.1:{free_port()}" for _ in range(2))  # Of several each is asked again and again.
        cluster.registry_url = f"zk://{ensemble.hosts}{absent}/endings"
        start_all(cluster)
        lose(cluster, ensemble.servers, how)
        assert_they_end(cluster)
    finally:
        ensemble.stop()


def test_nobody_waits_for_a_registry_that_hangs(make_cluster):
    cluster = make_cluster(members=1, proxies=1)
    cluster.start_registry()
    start_all(cluster)
    lose(cluster, [cluster.registry.popen], signal.SIGSTOP)
    try:
        assert_they_end(cluster, PROMPT_SECONDS + 3)  # A request that is under way is waited for: 3 s at most.
    finally:
        os.kill(cluster.registry.popen.pid, signal.SIGCONT)
