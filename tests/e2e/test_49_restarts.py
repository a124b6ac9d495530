"""What an operator said outlives everybody who heard it; and nobody asks what day it is."""
import json
import struct
import subprocess
import time

from harness.cluster import ROOT
from harness.process import wait_until
from test_49_agents import Agents, agents  # pylint: disable=unused-import
from test_49_membership import DISCOVERY, members
from test_60_discovery_sources import show  # pylint: disable=unused-import

DAY = 86400


def test_a_drained_member_stays_out_whatever_restarts(make_cluster):
    cluster = make_cluster(members=4, proxies=1)
    cluster.spec = cluster.write_spec(discovery={**DISCOVERY, "remove": {**DISCOVERY["remove"], "floor": 3}})
    cluster.start(cluster.spec)
    beside = Agents(cluster)
    made = [beside.start(member, wait=False) for member in cluster.members]
    for member in cluster.members:
        member.hang_up()
    for member in cluster.members:
        beside.wait_state(member.id, "ready")
    written = cluster.fill(1000)
    cluster.cli("member", "drain", "cache-4", "--yes", "--wait", check=0, timeout=90)
    three = ["cache-1", "cache-2", "cache-3"]
    assert members(cluster) == three
    for process in (*made, cluster.controller, *cluster.proxies, cluster.registry):
        process.kill()
    for process in (cluster.registry, cluster.controller, *cluster.proxies, *made):
        process.start()
        if process not in made:
            process.wait_ready(30)
    beside.wait_state("cache-4", "draining")
    for member in three:
        beside.wait_state(member, "ready")

    def shown():
        return cluster.cli("member", "candidates").stdout
    wait_until(lambda: f"the policy says why not: {shown()}", lambda: "an operator drained it" in shown(), 60, 0.3)
    assert members(cluster) == three
    cluster.assert_filled(written)
    # It was the mark that held it.
    cluster.cli("member", "admit", "cache-4", "--yes", "--wait", check=0, timeout=90)
    assert members(cluster) == [*three, "cache-4"]
    cluster.assert_filled(written)


def test_the_clock_of_the_day_may_jump(make_cluster, show, tmp_path):
    """By a day, to and fro, of registry, agent and router: leases run by another clock, and versions by none."""
    library, jump = tmp_path / "clock.so", tmp_path / "jump"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "e2e" / "harness" / "clock.c"], check=True)
    jump.write_bytes(struct.pack("q", 0))
    jumping = {"LD_PRELOAD": str(library), "RS_CLOCK": str(jump)}
    cluster = make_cluster(members=2, proxies=1, env=jumping)  # Not the members: their times to live go by that clock.
    cluster.start()
    agent = Agents(cluster).start(cluster.members[0], env=jumping)
    shown = show("--source", "registry", "--registry", cluster.registry_url, "--cluster", "cache")
    shown.wait_state("cache-1", "ready")
    written = cluster.fill(500)
    before = json.loads(cluster.cli("topology", "get", "--json", check=0).stdout)["topology"]
    said = {process: len(process.errors()) for process in (agent, cluster.registry, cluster.controller, *cluster.proxies)}
    lists = len(shown.lists())

    def day_of_the_log(process):
        return process.errors().splitlines()[-1][:10]
    for days in (1, -1, 1, 0):
        with open(jump, "r+b") as file:
            file.write(struct.pack("q", days * DAY))
        time.sleep(2.5)  # More than the lease: two beats, and its end if anybody believed the clock.
        assert all(set(one) == {"cache-1"} for one in shown.lists()[lists:]), shown.said()  # Never gone.
        assert not shown.troubles()
        cluster.assert_filled(written)
    after = json.loads(cluster.cli("topology", "get", "--json", check=0).stdout)["topology"]
    assert after == before
    for process, at in said.items():
        new = process.errors()[at:]
        assert "lost" not in new and "leading" not in new and "registry" not in new, (process.name, new)
    # The clock had jumped: what is written down with a date has that one.
    with open(jump, "r+b") as file:
        file.write(struct.pack("q", 2 * DAY))
    cluster.members[0].process.pause()
    shown.wait_state("cache-1", "unhealthy")
    cluster.members[0].process.resume()
    assert day_of_the_log(agent) == time.strftime("%Y-%m-%d", time.gmtime(time.time() + 2 * DAY))
