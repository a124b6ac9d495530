"""What must not fool the membership policy, or stand in its way: a leader that begins to look in a bad moment, another
source, a candidate that is refused for ever, clusters without data, files and names that are not meant."""
import json
import time

import pytest

from harness.cluster import FAILED, run
from harness.process import wait_until
from test_49_membership import members, topology

QUICK = {"admit": "auto", "cooldown": "1s", "remove": {"after": "2s", "at_most": 9, "floor": 1}}


class Listed:
    """Instances in a file, a cluster's only source."""

    def __init__(self, cluster, name="instances.json"):
        self.cluster = cluster
        self.path = cluster.directory / name
        self.source = {"kind": "file", "path": str(self.path)}

    def write(self, *ids, **also):
        all_of = {m.id: m.address for m in self.cluster.members} | also
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([{"id": i, "address": all_of[i]} for i in [*ids, *also]]))
        new.rename(self.path)


def report(cluster):
    return json.loads(cluster.cli("member", "candidates", "--json").stdout or "{}")


@pytest.fixture
def listed(make_cluster):
    cluster = make_cluster(members=4, proxies=0)
    cluster.listed = Listed(cluster)
    cluster.listed.write("cache-1", "cache-2", "cache-3", "cache-4")
    cluster.start(cluster.write_spec(discovery={"source": cluster.listed.source, **QUICK}))
    for member in cluster.members:
        member.hang_up()
    wait_until(lambda: f"all are seen: {report(cluster)}", lambda: len(report(cluster).get("seen", [])) == 4, 30)
    return cluster


def test_a_new_leader_does_not_believe_half_a_list(listed):
    listed.controller.kill()
    listed.listed.write("cache-4")
    listed.start_controller()
    wait_until(lambda: f"held: {report(listed)}", lambda: report(listed)["held"], 30)
    assert "without 3 of the 4 before (cache-1, cache-2, cache-3)" in report(listed)["trouble"]
    time.sleep(5)  # More than `after` and the cool-down.
    assert len(members(listed)) == 4 and not report(listed)["gone"]
    # An operator's word is about the list that he was shown: not another one with as many instances.
    shown = report(listed)["trouble"]
    listed.listed.write("cache-3")
    wait_until("another one", lambda: report(listed)["trouble"] not in ("", shown), 30)
    listed.listed.write("cache-1", "cache-2", "cache-3", "cache-4")
    wait_until("well again", lambda: not report(listed)["held"], 30)


def test_who_was_never_seen_by_another_source_is_not_gone(listed):
    other = Listed(listed, "others.json")
    other.write("cache-1", "cache-2", "cache-3")
    said = listed.cli("member", "policy", listed.write_spec(discovery={"source": other.source, **QUICK}), check=0)
    assert "source file, admission auto" in said.stdout
    wait_until(lambda: f"looked at: {report(listed)}", lambda: other.source["path"] in report(listed)["source"], 30)
    time.sleep(5)
    assert len(members(listed)) == 4 and not report(listed)["gone"]


def test_a_refused_candidate_does_not_stand_in_the_way(listed):
    fifth = listed.add_member()
    fifth.hang_up()
    # One server under a second name is refused at each start, and is the first by id.
    listed.listed.write("cache-1", "cache-2", "cache-3", "cache-4", "cache-5",
                        alias=f"localhost:{listed.members[0].port}")
    wait_until(lambda: f"the fifth joins: {listed.cli('member', 'candidates').stdout}",
               lambda: "cache-5" in members(listed), timeout=60, interval=0.3)
    listed.wait_resized()
    wait_until("the other is refused", lambda: "one server" in listed.cli("member", "candidates").stdout, 60, 0.3)
    assert "alias" not in members(listed)


def test_an_instance_that_serves_another_cluster_is_not_taken(listed, make_cluster):
    written = listed.add_proxy() and listed.fill(300)
    for member in listed.members:
        member.hang_up()
    other = make_cluster(members=1, proxies=1, name="bee")
    other.registry_url = listed.registry_url
    spec = other.directory / "spec.yaml"
    spec.write_text(json.dumps({**other.spec_document(discovery={"source": listed.listed.source, **QUICK}), "members": [
        {"id": "bee-1", "address": other.members[0].address}]}))
    other.start_controller()
    other.apply(spec)
    other.add_proxy()
    other.members[0].hang_up()
    wait_until(lambda: f"refused: {other.cli('member', 'candidates').stdout}",
               lambda: "a router of another cluster" in other.cli("member", "candidates").stdout, 60, 0.3)
    time.sleep(3)
    assert members(other) == ["bee-1"]
    listed.assert_filled(written)


def test_without_data_the_spec_is_what_changes(make_cluster):
    cluster = make_cluster(members=2, proxies=1)
    cluster.listed = Listed(cluster)
    cluster.listed.write("cache-1", "cache-2")
    cluster.start(cluster.write_spec(consistency="none", discovery={
        "source": cluster.listed.source, "assign": [{"ids": "*", "zone": "a"}], **QUICK}))
    cluster.add_member()
    cluster.listed.write("cache-1", "cache-2", "cache-3")
    wait_until(lambda: f"it joins: {cluster.cli('member', 'candidates').stdout}",
               lambda: "cache-3" in members(cluster), timeout=60, interval=0.3)
    assert topology(cluster)[-1]["zone"] == "a"
    cluster.listed.write("cache-1", "cache-3")
    wait_until(lambda: f"it leaves: {cluster.cli('member', 'candidates').stdout}",
               lambda: members(cluster) == ["cache-1", "cache-3"], timeout=60, interval=0.3)
    assert not report(cluster)["last_error"]


def test_a_policy_is_for_the_cluster_that_is_meant(listed):
    def policy(*words, cluster="cache"):
        return run("member", "policy", *words, "--registry", listed.registry_url, "--cluster", cluster, check=FAILED).stderr

    wrong = listed.directory / "wrong.yaml"
    wrong.write_text(listed.spec.read_text().replace('"cluster": "cache"', '"cluster": "orders"'))
    assert "the spec is for cluster 'orders', but --cluster says 'cache'" in policy(wrong)
    # A source that cannot be is no policy, and the one in force stays.
    for source, why in (({"kind": "file"}, "discovery.source.path: is missing"),
                        ({"kind": "dns", "name": "x.test"}, "discovery.source.port: is missing"),
                        ({"kind": "consul", "service": "x", "url": "http://u:pa55@h:1"}, "discovery.source.url")):
        bad = listed.write_spec(discovery={"source": source})
        assert why in policy(bad) and "pa55" not in policy(bad)
        assert why in run("topology", "validate", bad, check=FAILED).stderr
        assert why in listed.apply(bad, check=FAILED).stderr
    assert "instances.json" in listed.cli("member", "policy", check=0).stdout
    for words in ((), ("none",)):
        assert "has no cluster 'cahce'" in policy(*words, cluster="cahce")
    assert "taken away" in listed.cli("member", "policy", "none", check=0).stdout
    assert "has no discovery" in policy("none")


def test_what_is_told_without_a_controller_says_so(listed):
    assert not listed.cli("member", "candidates", check=0).stderr
    listed.controller.kill()
    wait_until("said", lambda: "no controller leads" in listed.cli("member", "candidates", check=0).stderr, 60, 0.5)
    listed.cli("member", "candidates", "--json", check=0)
    listed.start_controller()
