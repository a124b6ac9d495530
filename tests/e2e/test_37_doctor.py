"""`ringshift doctor`: each thing is really broken, and the doctor names it with what to do; a deployment that is well is
called well."""
import json
import os
import time

import pytest
import redis

from harness.cluster import BAD_USAGE, FAILED, run, run_json
from harness.process import free_port, wait_until
from harness.relay import Relay
from test_44_crash_points import give_up_the_lock


def examine(cluster, *arguments, check=None):
    """What the doctor found, as {(check, subject): finding} of the worst for each."""
    for member in cluster.members:
        member.hang_up()
    done = cluster.cli("doctor", "--json", *arguments, check=check)
    return judge(done)


def judge(done):
    said = json.loads(done.stdout)
    worst = {}
    rank = ["ok", "warning", "problem"]
    for one in said["checks"]:
        key = (one["check"], one["subject"])
        if key not in worst or rank.index(one["level"]) > rank.index(worst[key]["level"]):
            worst[key] = one
        assert one["level"] == "ok" or one["fix"], f"no fix is given: {one}"
    assert done.returncode == (FAILED if said["problems"] else 0), done
    return worst


def bad(found):
    return {key: one["level"] for key, one in found.items() if one["level"] != "ok"}


def settled(cluster):
    """Routers have told once what they reach."""
    def told():
        return not bad({k: v for k, v in examine(cluster).items() if k[0] in ("reports", "topology")})
    wait_until("the routers have reported", told, timeout=30)


def test_a_deployment_that_is_well(cluster):
    cluster.fill(2000)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    for member in cluster.members:
        member.hang_up()
    wait_until("nothing is wrong", lambda: not bad(examine(cluster)), timeout=30, interval=0.5)
    found = examine(cluster, "--strict", check=0)
    assert len([key for key in found if key[0] == "stamp"]) == 5
    assert len([key for key in found if key[0] == "reaches members"]) == 2
    text = cluster.cli("doctor", check=0).stdout
    lines = text.strip().splitlines()
    assert lines[-1].startswith("0 problems, 0 warnings, "), text
    assert "ok       permissions: 5 are well" in text, text
    assert [line for line in lines if line and not line.startswith(" ")][:-1] == [
        "registry", "topology", "resize", "routers", "members"], text


def test_members_that_are_broken_in_every_way(cluster):
    """At once, each in its own way: the doctor keeps them apart."""
    cluster.fill(400)
    one, two, three, four = cluster.members
    one.client.config_set("maxmemory", "1mb")
    one.client.execute_command("ACL", "SETUSER", "default", "-client|kill")
    two.client.execute_command("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
    other = redis.Redis(port=two.port, db=3)
    other.set("x", 1)
    stolen = next(key for key in three.keys())
    value = three.client.get(stolen)
    four.client.set(stolen, value)
    three.client.set("rs:stamp", "99.99.done.x")
    three.client.execute_command("REPLICAOF", "127.0.0.1", free_port())
    foreign = redis.Redis(port=four.port)
    foreign.get("x")
    found = {}
    try:
        for member in cluster.members:
            member.hang_up()
        other.connection_pool.disconnect()
        found = judge(cluster.cli("doctor", "--json"))
    finally:
        foreign.close()
    worst = bad(found)
    assert worst[("memory", "cache-1")] == "problem" and "full" in found[("memory", "cache-1")]["message"]
    assert worst[("permissions", "cache-1")] == "problem"
    assert "CLIENT KILL is refused: NOPERM" in found[("permissions", "cache-1")]["message"]
    assert worst[("memory", "cache-2")] == "warning" and "rs:stamp" in found[("memory", "cache-2")]["fix"]
    assert worst[("databases", "cache-2")] == "problem" and found[("databases", "cache-2")]["message"].endswith(": 3")
    assert worst[("role", "cache-3")] == "problem" and "replica of 127.0.0.1" in found[("role", "cache-3")]["message"]
    assert worst[("stamp", "cache-3")] == "problem" and "99.99" in found[("stamp", "cache-3")]["message"]
    assert worst[("placed keys", "cache-4")] == "warning"
    assert stolen.decode() in found[("placed keys", "cache-4")]["message"]
    assert worst[("foreign clients", "cache-4")] == "warning"
    assert "last command get" in found[("foreign clients", "cache-4")]["message"]
    for check, subject in (("memory", "cache-4"), ("permissions", "cache-2"), ("databases", "cache-1"), ("role", "cache-1")):
        assert found[(check, subject)]["level"] == "ok"


def test_what_a_router_cannot_reach(cluster):
    """Reachable from here and not from one of the proxies: it says so in its record, and in its INFO."""
    cluster.fill(100)
    member = cluster.members[0]
    # What lies between the proxies and the member breaks; the doctor goes the same way, and the other three are well.
    relay = Relay(member.port)
    document = cluster.spec_document()
    document["members"][0]["address"] = relay.address
    path = cluster.write_spec()
    path.write_text(json.dumps(document))
    cluster.apply(path)
    settled(cluster)
    assert not bad(examine(cluster)), "by way of the relay all is well"
    relay.only = b"rs:doctor."
    relay.cut()

    def noticed():
        found = examine(cluster, "--proxy", f"127.0.0.1:{cluster.proxies[0].port}")
        down = [one for one in found.values() if one["check"] == "reaches members" and one["level"] == "problem"]
        return len(down) == 3 and found  # Two records, one INFO.
    found = wait_until("both routers tell it", noticed, timeout=40)
    assert found[("reachable", "cache-1")]["level"] == "ok", "from here it is reachable"
    assert all("not cache-1: " in one["message"] for one in found.values()
               if one["check"] == "reaches members" and one["level"] == "problem")
    relay.close()


def test_registry_controller_and_routers(cluster):
    cluster.fill(100)
    settled(cluster)
    cluster.controller.kill()
    cluster.proxies[0].pause()
    four = cluster.members[3]
    four.process.kill()
    time.sleep(1.2)  # A report that was under way has arrived.
    found = examine(cluster)
    # Its lease may end just then.
    paused = [one for key, one in found.items() if key[0] in ("reports", "registered") and one["level"] != "ok"]
    assert len(paused) == 1 and paused[0]["subject"].startswith("proxy-1"), found
    assert found[("reachable", "cache-4")]["level"] == "problem"
    give_up_the_lock(cluster)
    assert examine(cluster)[("controller", "")]["level"] == "problem"
    cluster.proxies[0].resume()
    cluster.registry.kill()
    found = examine(cluster)
    assert bad(found)[("reachable", cluster.registry_url)] == "problem"
    assert "is the registry running" in found[("reachable", cluster.registry_url)]["message"]
    cluster.registry.start()
    cluster.registry.wait_ready()
    nobody = judge(run("doctor", "--registry", cluster.registry_url, "--cluster", "nobody", "--json"))
    assert nobody[("topology", "")]["level"] == "problem" and nobody[("spec", "")]["level"] == "problem"


def test_the_membership_policy(cluster):
    """Silent without one; with one: who can be no member, who is gone or elsewhere, what is not believed, what is away."""
    settled(cluster)
    assert not [key for key in examine(cluster) if key[0] in ("source", "candidates", "gone", "address")]
    found = cluster.directory / "instances.yaml"
    at = {member.id: member.address for member in cluster.members}

    def find(instances):
        fresh = found.with_suffix(".new")
        fresh.write_text(json.dumps([{"id": name, "address": address} for name, address in instances.items()]))
        fresh.rename(found)

    def waits_for(*keys):
        def told():
            worst = bad(examine(cluster))
            return worst if {key for key in worst if key[0] in ("source", "candidates", "gone", "address")} == set(keys) else None
        return wait_until(lambda: f"{keys}: {bad(examine(cluster))}", told, timeout=30, interval=0.3)
    find(at)
    rules = {"source": {"kind": "file", "path": str(found), "poll": "1s"}, "remove": {"after": "1h"}}
    cluster.cli("member", "policy", cluster.write_spec(discovery=rules), check=0)
    wait_until("all is well", lambda: ("source", f"file {found}") in examine(cluster) and not bad(examine(cluster)), timeout=30,
               interval=0.3)
    # A stranger has the address of a member that now says another one; a second member is gone.
    find({"cache-1": "127.0.0.1:1", "cache-3": at["cache-3"], "cache-4": at["cache-4"], "stranger": at["cache-1"]})
    waits_for(("candidates", "stranger"), ("gone", "cache-2"), ("address", "cache-1"))
    said = examine(cluster)
    assert "member cache-1 has its address" in said[("candidates", "stranger")]["message"]
    assert "leaves at 20" in said[("gone", "cache-2")]["message"]
    assert "gone" in cluster.cli("doctor").stdout
    find({})
    assert waits_for(("source", f"file {found}"), ("candidates", "stranger"), ("address", "cache-1"))[
        ("source", f"file {found}")] == "warning"
    found.unlink()
    wait_until("the source is away", lambda: bad(examine(cluster)).get(("source", f"file {found}")) == "problem", timeout=30,
               interval=0.3)


@pytest.mark.skipif(not os.environ.get("RINGSHIFT_LONG"), reason="long: set RINGSHIFT_LONG=1")
def test_a_resize_that_stands_still(cluster):
    cluster.fill(1000)
    new = cluster.add_member()
    five = cluster.write_spec(limits={"move_keys_per_second": 50})
    cluster.resize_start(five, wait=False)
    cluster.wait_status("keys are moving", lambda s: s["keys_moved"] > 5)
    found = examine(cluster)
    assert [one["level"] for key, one in found.items() if key[0] == "resize"] == ["ok"], found
    new.client.config_set("maxmemory", "1mb")
    cluster.wait_status("paused", lambda s: s["state"] == "paused")
    found = examine(cluster)
    stands = next(one for key, one in found.items() if key[0] == "resize")
    assert stands["level"] == "warning" and "OOM" in stands["message"] and "resume" in stands["fix"]
    assert found[("memory", "cache-5")]["level"] == "problem"
    new.client.config_set("maxmemory", "0")
    cluster.cli("resize", "set-rate", "20000", check=0)
    cluster.resume()
    cluster.wait_resized()


def test_static_clusters_and_usage(static):
    static.fill(300)
    for member in static.members:
        member.hang_up()
    proxy = f"127.0.0.1:{static.proxies[0].port}"
    done = run("doctor", "--spec", static.spec, "--proxy", proxy, "--proxy", f"127.0.0.1:{static.proxies[1].port}",
               "--json", "--strict", check=0)
    found = judge(done)
    assert found[("topology", proxy)]["level"] == "ok" and found[("placed keys", "cache-1")]["level"] == "ok"
    other = judge(run("doctor", "--spec", static.write_spec(weights={"cache-1": 2.0}), "--proxy", proxy, "--json"))
    assert other[("topology", proxy)]["level"] == "problem"
    same = static.spec_document()
    same["members"][1]["address"] = same["members"][0]["address"]
    path = static.write_spec()
    path.write_text(json.dumps(same).replace(same["members"][1]["address"], "localhost:" + str(static.members[0].port), 1))
    said = judge(run("doctor", "--spec", path, "--json"))
    assert [key for key, one in said.items() if key[0] == "one server each" and one["level"] == "problem"], said
    assert run_json("doctor", "--spec", static.spec)["problems"] == 0
    assert "--cluster" in run("doctor", check=BAD_USAGE).stderr
    assert "exclude" in run("doctor", "--spec", static.spec, "--cluster", "x", check=BAD_USAGE).stderr
    assert "/no/such" in run("doctor", "--spec", "/no/such", check=BAD_USAGE).stderr
    assert "doctor" in run("completion", "bash", check=0).stdout
