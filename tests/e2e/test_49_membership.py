"""The membership policy, with agents: members join and leave by themselves, or by an operator's word."""
import json
import time

import pytest
import redis

from harness.cluster import FAILED
from harness.process import wait_until
from test_49_agents import Agents

DISCOVERY = {"source": {"kind": "registry"}, "admit": "auto",
             "match": {"ids": ["cache-*"], "addresses": ["127.0.0.0/8"]},
             "assign": [{"ids": "*", "zone": "a"}], "cooldown": "1s",
             "remove": {"after": "3s", "at_most": 1, "floor": 4}}


def topology(cluster):
    """A registry on a busy machine may be late once."""
    done = wait_until("the registry answers", lambda: (got := cluster.cli("topology", "get", "--json")).returncode == 0
                      and got, timeout=60)
    return json.loads(done.stdout)["topology"]["spec"]["members"]


def members(cluster):
    return [m["id"] for m in topology(cluster)]


@pytest.fixture
def joined(make_cluster):
    """Four members with agents, and a policy."""
    cluster = make_cluster(members=4, proxies=1)
    cluster.spec = cluster.write_spec(discovery=DISCOVERY)
    cluster.start(cluster.spec)
    cluster.agents = Agents(cluster)
    for member in cluster.members:
        member.hang_up()
        member.agent = cluster.agents.start(member, wait=False)
    cluster.written = cluster.fill(1500)
    return cluster


def test_a_fifth_joins_by_itself_and_leaves_when_it_is_gone(joined):
    fifth = joined.add_member()
    fifth.hang_up()
    intruder = joined.agents.start(fifth, instance="intruder", address=f"127.0.0.2:{fifth.port}", wait=False)
    fifth.agent = joined.agents.start(fifth)
    wait_until(lambda: f"it joins: {joined.cli('member', 'candidates').stdout}", lambda: "cache-5" in members(joined),
               timeout=60, interval=0.3)
    joined.wait_resized()
    joined.assert_placed(joined.write_spec())
    joined.assert_filled(joined.written)

    def alone():  # What is told is some seconds old.
        found = json.loads(joined.cli("member", "candidates", "--json").stdout or '{"candidates": []}')["candidates"]
        return [c["id"] for c in found] == ["intruder"] and "match.ids" in found[0]["why_not"]
    wait_until(lambda: f"the intruder is told: {joined.cli('member', 'candidates').stdout}", alone, interval=0.3)
    found = topology(joined)[-1]
    assert (found["id"], found["zone"], found["weight"]) == ("cache-5", "a", 1.0)
    # It dies with its server: its keys are lost, the others' are not.
    fifth.agent.kill()
    fifth.process.kill()
    wait_until(lambda: f"it leaves: {joined.cli('member', 'candidates').stdout}",
               lambda: "cache-5" not in members(joined), timeout=90, interval=0.3)
    joined.wait_resized()
    assert members(joined) == [f"cache-{i}" for i in range(1, 5)]
    # The floor: nobody else leaves.
    joined.members[3].agent.kill()
    wait_until("said", lambda: "remove.floor" in joined.cli("member", "candidates").stdout, timeout=60, interval=0.3)
    assert len(members(joined)) == 4
    assert intruder.alive()


@pytest.mark.parametrize("consistency", ["cache", "none"])
def test_the_next_members_take_the_keys_of_one_that_is_gone(make_cluster, consistency):
    cluster = make_cluster(members=4, proxies=2)
    discovery = {**DISCOVERY, "remove": {"after": "0", "floor": 2}}
    discovery |= {"eject": True} if consistency == "cache" else {}  # With none it is so unless it is said.
    spec = cluster.write_spec(consistency=consistency, discovery=discovery)
    cluster.start(spec)
    beside = Agents(cluster)
    gone = cluster.members[2]
    for member in cluster.members:
        beside.start(member)
    client, other = cluster.client(0), cluster.client(1)

    def seen():
        return json.loads(cluster.cli("member", "candidates", "--json").stdout or "{}").get("seen", [])
    wait_until(lambda: f"all were seen once: {seen()}", lambda: len(seen()) == 4, 60)

    def factors():
        return cluster.cli_json("topology", "get")["topology"].get("factors", {})

    def all_written():
        try:
            return all(client.set(f"k{n}", n) for n in range(200))
        except redis.RedisError:
            return False
    assert all_written()
    gone.process.kill()
    wait_until(lambda: f"ejected: {cluster.cli('member', 'candidates').stdout}", lambda: factors() == {"cache-3": 0}, 60)
    wait_until("each key has a member", all_written, 30)
    assert all(other.get(f"k{n}") == b"%d" % n for n in range(200)), "the other router agrees"
    assert "the next members take its keys" in cluster.cli("member", "candidates", check=0).stdout
    assert members(cluster) == [m.id for m in cluster.members], "it stays a member"
    gone.process.start()
    wait_until(lambda: f"back: {cluster.cli('member', 'candidates').stdout}", lambda: factors() == {}, 60)
    wait_until("all written", all_written, 30)
    wait_until("it takes its keys again", lambda: gone.client.dbsize() > 0, 30)
    # By an operator's word: with strict nobody is ejected.
    refused = cluster.cli("member", "policy", cluster.write_spec(discovery={**discovery, "eject": True}), check=FAILED)
    assert "consistency strict ejects nobody" in refused.stderr


def test_an_operator_confirms_what_is_held(make_cluster, tmp_path):
    cluster = make_cluster(members=3, proxies=0)
    listed = tmp_path / "instances.json"

    def write(count):
        new = tmp_path / "new"
        new.write_text(json.dumps([{"id": m.id, "address": m.address} for m in cluster.members[:count]]))
        new.rename(listed)
    write(3)
    cluster.start(cluster.write_spec(discovery={"source": {"kind": "file", "path": str(listed)}}))

    def report():
        return json.loads(cluster.cli("member", "candidates", "--json").stdout or "{}")
    wait_until(lambda: f"well: {report()}", lambda: report().get("trouble") == "" and not report()["held"], 30)
    refused = cluster.cli("member", "confirm", check=FAILED)
    assert "is not held" in refused.stderr
    write(1)  # Two of three are gone at once.
    wait_until(lambda: f"held: {report()}", lambda: report().get("held"), 30)
    assert not report()["gone"], "what is held counts for nothing"
    started = time.monotonic()
    cluster.cli("member", "confirm", check=0)
    wait_until(lambda: f"believed: {report()}", lambda: len(report()["gone"]) == 2 and not report()["held"], 20)
    assert time.monotonic() - started < 25, "it did not just outlast the guard"
    assert len(members(cluster)) == 3, "who leaves, and when, is the policy's"


def test_manual_shows_and_an_operator_admits(joined):
    manual = joined.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"],
                               discovery={**DISCOVERY, "admit": "manual"})
    joined.cli("member", "policy", manual, check=0)
    assert '"manual"' in joined.cli("member", "policy", check=0).stdout
    fifth = joined.add_member()
    fifth.hang_up()
    fifth.agent = joined.agents.start(fifth)
    wait_until("shown", lambda: "an operator admits it" in joined.cli("member", "candidates").stdout, timeout=60,
               interval=0.3)
    assert "\nmembership: 1 candidate\n" in joined.cli("top", "--once", check=0).stdout
    assert joined.cli("member", "admit", "cache-9", "--yes").returncode == FAILED
    joined.cli("member", "admit", "cache-5", "--yes", "--wait", check=0, timeout=90)
    assert "cache-5" in members(joined)
    joined.assert_filled(joined.written)
    # Drained, it is no candidate for any policy, until somebody admits it again.
    joined.cli("member", "policy", joined.spec, check=0)  # Automatic.
    joined.cli("member", "drain", "cache-5", "--yes", "--wait", check=0, timeout=90)
    joined.agents.wait_state("cache-5", "draining")
    wait_until("said", lambda: "drained" in joined.cli("member", "candidates").stdout, timeout=60, interval=0.3)
    time.sleep(3)
    assert "cache-5" not in members(joined)
    joined.cli("member", "policy", "none", check=0)
    assert joined.cli("member", "candidates").returncode == FAILED
