"""Specs on the command line: what is valid, what moves, who owns a key; and what the registry keeps of it."""
import json

import pytest

from harness.cluster import BAD_USAGE, FAILED, run, run_json

MEMBERS = [{"id": f"cache-{i}", "address": f"127.0.0.1:{7000 + i}"} for i in range(1, 6)]


def write(path, members, **placement):
    path.write_text(json.dumps({"cluster": "cache", "members": members,
                                "placement": {"algorithm": "ring", "hash": "xxh3", "points": 256, **placement}}))
    return path


@pytest.fixture
def four(tmp_path):
    return write(tmp_path / "four.yaml", MEMBERS[:4])


@pytest.fixture
def five(tmp_path):
    return write(tmp_path / "five.yaml", MEMBERS)


def test_help_has_examples():
    for command in (["topology", "diff"], ["topology", "apply"], ["route"], ["proxy"], ["registry"], ["controller"],
                    ["resize", "start"]):
        done = run(*command, "--help", check=0)
        assert "Examples:" in done.stdout, command


@pytest.mark.parametrize("arguments", [["nosuch"], ["route", "--nosuch"], ["topology", "diff", "one.yaml"], []])
def test_bad_usage(arguments):
    done = run(*arguments, check=BAD_USAGE)
    assert done.stderr.strip()


def test_validate(four, five):
    run("topology", "validate", four, five, check=0)


def test_yaml_as_the_documents_show_it(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text("""
cluster: cache
protocol: redis
placement: {algorithm: ring, hash: xxh3, points: 256, hash_tag: "{}"}
consistency: strict
members:
  - {id: cache-1, address: 127.0.0.1:6379, weight: 1.0, zone: a, host: rack7-3}
  - {id: cache-2, address: 127.0.0.1:6380, weight: 2.0, zone: b, label: "srv2"}
retired: [cache-0]
limits: {move_keys_per_second: 5000, move_bytes_per_second: 50MiB, move_batch_keys: 10}
""")
    run("topology", "validate", spec, check=0)
    owners = {json.loads(line)["member"] for line in
              run("route", "{a}1", "{a}2", "{a}3", "--spec", spec, "--json", check=0).stdout.splitlines()}
    assert len(owners) == 1, "keys of one tag are together"


def test_diff_of_growth(four, five):
    diff = run_json("topology", "diff", four, five)
    assert diff["exact"] is True
    assert abs(diff["moved_share"] - 0.20) < 0.02
    assert abs(diff["minimum_share"] - 0.20) < 1e-9
    assert {pair["to"] for pair in diff["pairs"]} == {"cache-5"}, "keys move only to the new member"
    assert abs(sum(pair["share"] for pair in diff["pairs"]) - diff["moved_share"]) < 1e-9


def test_diff_of_nothing(four):
    assert run_json("topology", "diff", four, four)["moved_share"] == 0


def test_diff_agrees_with_keys_counted_on_real_nodes(make_cluster):
    count = 20000
    cluster = make_cluster(members=5, proxies=0)
    four = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"])
    five = cluster.write_spec()
    placed = []
    for spec in (four, five):
        cluster.proxies.clear()
        proxy = cluster.add_proxy(spec=spec)
        cluster.fill(count)
        placed.append({key: member for member, keys in cluster.census().items() for key in keys})
        assert len(placed[-1]) == count
        assert proxy.end() == 0
        for member in cluster.members:
            member.client.flushall()
    cluster.proxies.clear()
    diff = run_json("topology", "diff", four, five)
    counted = {}
    for key, before in placed[0].items():
        after = placed[1][key]
        if before != after:
            counted[before, after] = counted.get((before, after), 0) + 1
    assert set(counted) == {(pair["from"], pair["to"]) for pair in diff["pairs"]}
    for pair in diff["pairs"]:
        share = pair["share"]
        error = 4 * (share * (1 - share) / count) ** 0.5  # Four standard errors of the sample.
        assert abs(counted[pair["from"], pair["to"]] / count - share) < error, pair


def test_route(four):
    one = run_json("route", "user:42", "--spec", four)
    assert one["key"] == "user:42" and one["member"].startswith("cache-") and 0 <= one["slice"] < 1024
    assert one["state"] == "settled" and one["version"]
    assert run_json("route", b"user:42".hex(), "--hex", "--spec", four)["member"] == one["member"]
    explained = run("route", "user:42", "--explain", "--spec", four, check=0).stdout
    assert one["member"] in explained and "hash" in explained
    lines = run("route", "--json", "--spec", four, stdin="user:42\nuser:43\n", check=0).stdout.splitlines()
    assert len(lines) == 2 and json.loads(lines[0]) == one


def test_apply_get_history(cluster):
    got = cluster.cli_json("topology", "get")
    assert {m["id"] for m in (got.get("spec") or got["topology"]["spec"])["members"]} == {m.id for m in cluster.members}
    before = cluster.cli("topology", "history", check=0).stdout
    assert before.strip()
    # New limits change no key's owner: they apply at once.
    cluster.apply(cluster.write_spec(limits={"move_keys_per_second": 1234}))
    assert "1234" in cluster.cli("topology", "get", "--json", check=0).stdout
    assert len(cluster.cli("topology", "history", check=0).stdout) > len(before)
    # The registry answers what a spec file answers.
    keys = ["a", "b", "c", "user:42"]
    by_spec = [json.loads(line)["member"] for line in
               run("route", *keys, "--json", "--spec", cluster.spec, check=0).stdout.splitlines()]
    by_registry = [json.loads(line)["member"] for line in
                   cluster.cli("route", *keys, "--json", check=0).stdout.splitlines()]
    assert by_spec == by_registry


def test_apply_refuses_what_moves_keys(cluster):
    three = cluster.write_spec(members=["cache-1", "cache-2", "cache-3"])
    done = cluster.apply(three, check=FAILED)
    assert "resize start" in done.stderr
    got = cluster.cli("topology", "get", check=0).stdout
    assert "cache-4" in got, "nothing was changed"
