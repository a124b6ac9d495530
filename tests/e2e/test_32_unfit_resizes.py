"""Resizes that began badly once: members that are full, that are one server, that an earlier registry marked; keys
whose names are no text. Each is refused with nothing changed, or works."""
import json
import os

import pytest

from harness.cluster import FAILED, run


def test_a_full_cluster_grows(cluster):
    written = cluster.fill(3000, size=500)
    for member in cluster.members:
        member.client.config_set("maxmemory", "1mb")  # Less than it uses: it refuses writes.
    cluster.add_member()
    five = cluster.write_spec()
    cluster.resize_start(five)
    cluster.assert_placed(five)
    cluster.assert_filled(written)


def test_a_resize_that_filled_its_new_member_is_rolled_back(cluster):
    written = cluster.fill(3000, size=500)
    four = cluster.write_spec()
    new = cluster.add_member()
    cluster.resize_start(cluster.write_spec(limits={"move_keys_per_second": 200}), wait=False)
    cluster.wait_status("keys are moving", lambda s: s["keys_moved"] > 50)
    new.client.config_set("maxmemory", "1mb")
    cluster.wait_status("paused", lambda s: s["state"] == "paused")
    cluster.rollback()
    done = cluster.wait_resized()
    assert done["rolled_back"], done
    cluster.assert_placed(four)
    cluster.assert_filled(written)


@pytest.mark.parametrize("how", ["another id", "an alias"])
def test_one_server_as_two_members_is_refused_and_changes_nothing(cluster, how):
    written = cluster.fill(500)
    spec = cluster.spec_document()
    if how == "another id":
        spec["members"][2]["id"] = "renamed-3"
    else:
        port = spec["members"][2]["address"].rpartition(":")[2]
        spec["members"].append({"id": "cache-9", "address": f"localhost:{port}"})
    path = cluster.write_spec()
    path.write_text(json.dumps(spec))
    refused = cluster.resize_start(path, check=FAILED)
    assert "cache-3" in refused.stderr, refused
    assert cluster.status()["state"] == "idle"
    cluster.assert_filled(written)


def test_members_that_a_lost_registry_marked(cluster, make_cluster):
    written = cluster.fill(500)
    cluster.resize_start(cluster.write_spec(weights={"cache-1": 2.0}))
    heir = make_cluster(members=0, proxies=1)
    heir.members = cluster.members
    heir.start(heir.write_spec(weights={"cache-1": 2.0}))
    equal = heir.write_spec()
    for proxy in cluster.proxies:
        proxy.end()
        proxy.expected_dead = True
    refused = heir.resize_start(equal, check=FAILED)
    assert "registry was lost" in refused.stderr, refused
    for member in heir.members:
        member.hang_up()
    heir.cli("resize", "start", "--spec", equal, "--force", "--yes", "--wait", check=0, timeout=60)
    heir.assert_placed(equal)
    heir.assert_filled(written)


def test_a_big_key_with_a_name_that_is_no_text(cluster):
    r = cluster.client()
    for i in range(12):
        r.set(b"\xff\xfe big %d" % i, os.urandom(2 << 20))
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    assert all(r.strlen(b"\xff\xfe big %d" % i) == 2 << 20 for i in range(12))
    assert cluster.status()["state"] == "finished"


def test_retired_ids_stay_retired(make_cluster):
    cluster = make_cluster(members=5, proxies=1).start()
    cluster.fill(200)
    four = cluster.write_spec(members=[f"cache-{i}" for i in range(1, 5)], retired=["cache-5"])
    cluster.resize_start(four)
    refused = cluster.resize_start(cluster.write_spec(), check=FAILED)
    assert "retired" in refused.stderr, refused


@pytest.mark.parametrize("command", [["resize", "status"], ["resize", "pause"], ["topology", "get"], ["topology", "history"]])
def test_a_flag_beats_its_variable(cluster, command):
    """Else somebody steers the cluster of the variable, and not the one that was named."""
    wrong = {"RINGSHIFT_REGISTRY": "http://127.0.0.1:1", "RINGSHIFT_CLUSTER": "another"}
    right = ["--registry", cluster.registry_url, "--cluster", cluster.name]
    cluster.resize_start(cluster.write_spec(weights={"cache-1": 2.0}))
    done = run(*command, *right, env={**os.environ, **wrong})
    assert done.returncode == 0 or "no resize is running" in done.stderr, done
    missed = run(*command, "--registry", "http://127.0.0.1:1", "--cluster", cluster.name,
                 env={**os.environ, "RINGSHIFT_REGISTRY": cluster.registry_url})
    assert missed.returncode == FAILED and "not reachable" in missed.stderr, missed
