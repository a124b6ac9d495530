"""What a change will do, before it is done: by files, by verbs, by the registry, and measured at real members; and that
what was planned is what happens."""
import json
import threading
import time

import pytest

from harness.cluster import BAD_USAGE, FAILED, run, run_json

MEMBERS = [{"id": f"cache-{i}", "address": f"127.0.0.1:{7000 + i}"} for i in range(1, 6)]
TRAFFIC = ["--qps", 100000, "--hit-rate", 0.95]


def write(path, members, algorithm="ring", **more):
    path.write_text(json.dumps({"cluster": "cache", "members": members, "placement": {"algorithm": algorithm}, **more}))
    return path


@pytest.fixture
def specs(tmp_path):
    """specs(algorithm) -> the files of four members and of five."""
    def make(algorithm="ring", **more):
        return (write(tmp_path / f"four-{algorithm}.yaml", MEMBERS[:4], algorithm, **more),
                write(tmp_path / f"five-{algorithm}.yaml", MEMBERS, algorithm, **more))
    return make


# The arithmetic, as it leaves the program.

def test_a_fifth_moved_with_a_fifth_of_its_hits_is_four_times_the_load(specs):
    plan = run_json("plan", *specs("jump"), *TRAFFIC, "--cold-hit-rate", 0.2)
    assert plan["moved_share"] == 0.2
    assert plan["origin_qps"] == {"now": 5000, "cold_switch": 20000, "live_resize": 5000, "limit": None}
    assert plan["hit_rate_cold_switch"] == pytest.approx(0.8)


def test_modulo_fully_cold_is_81000(specs):
    plan = run_json("plan", *specs("modulo"), *TRAFFIC)
    assert plan["moved_share"] == 0.8
    assert plan["origin_qps"]["cold_switch"] == 81000
    assert plan["sources"]["cold_hit_rate"] == "assumed"


def test_the_json_that_must_not_drift(specs):
    plan = run_json("plan", *specs(), "--keys", 1000, "--value-bytes", "2KiB", "--rate", 10, "--rate-bytes", "1GiB")
    assert {"moved_share", "keys_to_move", "bytes_to_move", "duration_seconds", "members", "origin_qps", "verdict",
            "reason"} <= plan.keys()
    assert {"now", "cold_switch", "live_resize"} <= plan["origin_qps"].keys()
    assert [m["id"] for m in plan["members"]] == [f"cache-{i}" for i in range(1, 6)]
    for member in plan["members"]:
        assert {"share_before", "share_after"} <= member.keys()
    for side in ("share_before", "share_after"):
        assert sum(m[side] for m in plan["members"]) == pytest.approx(1)
    assert plan["verdict"] in ("safe", "caution", "unsafe")
    assert plan["reason"].endswith(".") and ". " not in plan["reason"], "one sentence"
    assert plan["keys_to_move"] == pytest.approx(1000 * plan["moved_share"], abs=1)
    assert plan["bytes_to_move"] == pytest.approx(2048 * 1000 * plan["moved_share"], abs=2048)
    assert plan["duration_seconds"] == pytest.approx(100 * plan["moved_share"], rel=1e-6)
    assert sum(pair["keys"] for pair in plan["pairs"]) == pytest.approx(plan["keys_to_move"], abs=5)
    assert sum(step["slices"] for step in plan["steps"]) == 1024
    assert all(step["live_extra_qps"] == 0 and step["cold_extra_qps"] > 0 for step in plan["steps"])


def test_plan_and_diff_agree(specs):
    for algorithm in ("ring", "rendezvous", "modulo", "maglev"):
        four, five = specs(algorithm)
        plan, diff = run_json("plan", four, five), run_json("topology", "diff", four, five)
        assert plan["moved_share"] == diff["moved_share"], algorithm
        assert plan["minimum_share"] == diff["minimum_share"]
        assert [(p["from"], p["to"], p["share"]) for p in plan["pairs"]] == \
               [(p["from"], p["to"], p["share"]) for p in diff["pairs"]]


def test_duration_by_the_slower_of_keys_and_bytes(specs):
    four, five = specs("jump")
    by_keys = run_json("plan", four, five, "--keys", 1000000, "--value-bytes", 100, "--rate", 1000)
    assert by_keys["duration_bound_by"] == "keys" and by_keys["duration_seconds"] == pytest.approx(200)
    by_bytes = run_json("plan", four, five, "--keys", 1000000, "--value-bytes", "1MiB", "--rate", 1000,
                        "--rate-bytes", "100MiB")
    assert by_bytes["duration_bound_by"] == "bytes" and by_bytes["duration_seconds"] == pytest.approx(2000)


def test_the_rate_is_the_specs_unless_given(specs):
    four, five = specs("jump", limits={"move_keys_per_second": 100})
    plan = run_json("plan", four, five, "--keys", 10000)
    assert plan["duration_seconds"] == pytest.approx(20)
    assert plan["sources"]["rate"] == "spec" and plan["sources"]["keys"] == "given"


def test_the_largest_safe_step_is_safe_and_the_next_larger_is_not(specs):
    four, five = specs("jump")
    flags = [*TRAFFIC, "--cold-hit-rate", 0.2]
    safe = run_json("plan", four, five, *flags, "--origin-limit-qps", 12500)["largest_safe_step"]
    assert safe == {"keyspace_share": 0.5, "moved_share": 0.1, "slices": 512, "steps": 2}
    percent = safe["slices"] / 1024 * 100

    def first_step(percent):
        return run_json("plan", four, five, *flags, "--origin-limit-qps", 12500, "--steps",
                        f"{percent},100")["steps"][0]
    assert first_step(percent)["within_limit"] is True
    assert first_step(percent + 0.1)["within_limit"] is False


def test_no_limit_no_safe_step(specs):
    plan = run_json("plan", *specs())
    assert plan["largest_safe_step"] is None and plan["cold_switch"]["verdict"] == "caution"
    assert "--origin-limit-qps" in plan["reason"]


def test_weighted_ketama_moves_keys_between_members_that_do_not_change(tmp_path):
    def ketama(name, weights):
        members = [{**MEMBERS[i], "weight": weight} for i, weight in enumerate(weights)]
        path = tmp_path / name
        path.write_text(json.dumps({"cluster": "cache", "members": members, "placement": {
            "algorithm": "libmemcached", "distribution": "ketama_weighted", "hash": "md5"}}))
        return path
    four, five = ketama("4.yaml", [1, 2, 3, 4]), ketama("5.yaml", [1, 2, 3, 4, 5])
    plan = run_json("plan", four, five)
    old_to_old = [p for p in plan["pairs"] if p["to"] != "cache-5"]
    assert old_to_old and all(p["between_unchanged"] for p in old_to_old)
    assert plan["between_unchanged_share"] == pytest.approx(sum(p["share"] for p in old_to_old))
    assert "between members that do not change" in run("plan", four, five, check=0).stdout


def test_warnings_are_shown(specs):
    four, five = specs("modulo")
    plan = run_json("plan", four, five)
    assert any("modulo" in warning for warning in plan["warnings"])
    assert "Warnings" in run("plan", four, five, check=0).stdout
    jump = run_json("plan", specs("jump")[0], "remove", "cache-1")
    assert any("nearly every key behind them moves" in warning for warning in jump["warnings"])


def test_for_people(specs):
    text = run("plan", *specs(), *TRAFFIC, "--keys", 20000000, "--value-bytes", "1.5KiB", "--origin-limit-qps", 9000,
               check=0).stdout
    for part in ("Figures", "Movement", "Members", "Origin", "Steps", "Verdict: SAFE.", "1.5 KiB", "20,000,000",
                 "given", "assumed", "spec", "cache-1 -> cache-5", " min "):
        assert part in text, part


# Verbs.

def test_verbs_do_what_the_files_do(specs):
    four, five = specs()
    by_files, by_verb = run_json("plan", four, five), run_json("plan", four, "add", "cache-5=127.0.0.1:7005")
    assert by_verb["pairs"] == by_files["pairs"]
    shrink = run_json("plan", five, "remove", "cache-5")
    assert shrink["pairs"] and all(pair["from"] == "cache-5" for pair in shrink["pairs"])
    heavier = run_json("plan", four, "weight", "cache-1=2")
    assert heavier["pairs"] and all(pair["to"] == "cache-1" for pair in heavier["pairs"])
    assert heavier["minimum_share"] == pytest.approx(2 / 5 - 1 / 4)
    two = run_json("plan", four, "add", "cache-5=127.0.0.1:7005,weight=2,zone=b", "cache-6=127.0.0.1:7006")
    assert {pair["to"] for pair in two["pairs"]} == {"cache-5", "cache-6"}
    assert run_json("plan", four, "weight", "cache-1=1")["moved_share"] == 0


def test_a_verb_carries_the_table_over(specs):
    for algorithm in ("partitions", "memento"):
        plan = run_json("plan", specs(algorithm)[0], "remove", "cache-2")
        assert plan["moved_share"] == pytest.approx(0.25, abs=0.01), algorithm
        assert plan["carried_over"] is True
    plain = run_json("plan", *specs("partitions"))
    assert plain["moved_share"] == pytest.approx(0.2, abs=0.01) and plain["carried_over"] is True


@pytest.mark.parametrize("change, says", [
    (["remove", "cache-9"], "its members are cache-1, cache-2, cache-3, cache-4"),
    (["weight", "cache-9=2"], "no member 'cache-9'"),
    (["add", "cache-1=127.0.0.1:9"], "'cache-1' exists already"),
    (["add", "cache-9=127.0.0.1:7001"], "127.0.0.1:7001"),
    (["add", "cache-9=nowhere"], "nowhere"),
    (["remove", "cache-1", "cache-2", "cache-3"], "--force"),
    (["remove", "cache-1", "cache-2", "cache-3", "cache-4"], "none would be left"),
    (["add", "old-1=127.0.0.1:9"], "retired"),
    (["nosuch.yaml"], "nosuch.yaml"),
])
def test_changes_that_cannot_be(specs, change, says):
    four, _ = specs(retired=["old-1"])
    done = run("plan", four, *change, check=FAILED)
    assert says in done.stderr and done.stdout == ""


def test_force_plans_what_would_be_refused(specs):
    plan = run_json("plan", specs()[0], "remove", "cache-1", "cache-2", "cache-3", "--force")
    assert plan["members"][3]["share_after"] == 1


@pytest.mark.parametrize("arguments, says", [
    ([], "no change is named"),
    (["FOUR", "remove"], "'remove' of what?"),
    (["FOUR", "adds", "x"], "'adds' is none of add, remove, weight"),
    (["FOUR", "add", "cache-9"], "'cache-9' is not ID=ADDRESS"),
    (["FOUR", "add", "cache-9=127.0.0.1:9,colour=red"], "colour=red"),
    (["FOUR", "weight", "cache-1=heavy"], "'heavy' is no number above 0"),
    (["FOUR", "weight", "cache-1=-1"], "'-1'"),
    (["FOUR", "FIVE", "--hit-rate", "95"], "is 0.95 meant?"),
    (["FOUR", "FIVE", "--hit-rate", "-0.1"], "not within 0 and 1"),
    (["FOUR", "FIVE", "--hit-rate", "nan"], "not within 0 and 1"),
    (["FOUR", "FIVE", "--cold-hit-rate", "2"], "--cold-hit-rate"),
    (["FOUR", "FIVE", "--qps", "-5"], "--qps"),
    (["FOUR", "FIVE", "--qps", "inf"], "--qps"),
    (["FOUR", "FIVE", "--keys", "-5"], "--keys: '-5' is no whole number"),
    (["FOUR", "FIVE", "--value-bytes", "-5"], "'-5' is no size"),
    (["FOUR", "FIVE", "--value-bytes", "5XB"], "'5XB' is no size"),
    (["FOUR", "FIVE", "--rate", "0"], "--rate"),
    (["FOUR", "FIVE", "--rate-bytes", "0"], "--rate-bytes"),
    (["FOUR", "FIVE", "--origin-limit-qps", "many"], "'many' is no number"),
    (["FOUR", "FIVE", "--steps", "10,5,100"], "steps: 5 must be above 10"),
    (["FOUR", "FIVE", "--steps", "10,50"], "the last one must be 100"),
    (["remove", "cache-1"], "of which cluster?"),
])
def test_bad_usage(specs, arguments, says):
    four, five = specs()
    names = {"FOUR": four, "FIVE": five}
    done = run("plan", *(names.get(argument, argument) for argument in arguments), check=BAD_USAGE)
    assert says in done.stderr, done.stderr


def test_help_and_completion():
    assert "Examples:" in run("plan", "--help", check=0).stdout
    assert "--origin-limit-qps" in run("completion", "bash", check=0).stdout


def test_check_is_for_scripts(specs):
    four, five = specs(consistency="none")  # No live resize: what counts is the cold switch.
    flags = [four, five, *TRAFFIC, "--origin-limit-qps", 6000]
    assert run_json("plan", *flags)["verdict"] == "unsafe"
    done = run("plan", *flags, "--check", check=FAILED)
    assert "Verdict: UNSAFE." in done.stdout
    run("plan", *flags[:-1], 1000000, "--check", check=0)


# At a live cluster.

def test_live_is_for_redis(specs):
    four, five = specs(protocol="memcached")
    assert "protocol of cluster 'cache' is memcached" in run("plan", four, five, "--live", check=FAILED).stderr
    plan = run_json("plan", four, five)
    assert plan["can_resize_live"] is False and plan["verdict"] == plan["cold_switch"]["verdict"]


def fill(cluster, count, size):
    pipeline = cluster.client().pipeline(transaction=False)
    for i in range(count):
        pipeline.set(f"fill:{i}", "v" * size)
        if i % 1000 == 999:
            pipeline.execute()
    pipeline.execute()


def test_live_counts_what_is_there_and_the_resize_moves_it(make_cluster):
    cluster = make_cluster(members=5, proxies=1)
    cluster.start(cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"]))
    five = cluster.write_spec()
    fill(cluster, 20000, 1000)
    by_files = json.loads(run("plan", cluster.spec, five, "--live", "--json", check=0).stdout)
    by_registry = cluster.cli_json("plan", five, "--live")
    by_verb = cluster.cli_json("plan", "add", f"cache-5={cluster.members[4].address}", "--live")
    for plan in (by_files, by_registry, by_verb):
        assert plan["inputs"]["keys"] == 20000 and plan["sources"]["keys"] == "measured"
        assert 1000 < plan["inputs"]["value_bytes"] < 1400 and plan["sources"]["value_bytes"] == "measured"
        for member in plan["members"]:
            assert member["used_memory"] > 0 and member["maxmemory"] == 0 and member["has_room"]
        assert [m["keys_before"] for m in plan["members"]][4] == 0
    cluster.resize_start(five)
    moved = cluster.status()["keys_moved"]
    assert len([key for key in cluster.members[4].keys() if not key.startswith(b"rs:")]) == moved
    assert by_registry["keys_to_move"] == pytest.approx(moved, rel=0.1), "what was planned is what happened"


def test_live_traffic(make_cluster):
    cluster = make_cluster(members=2, proxies=1).start()
    fill(cluster, 1000, 10)
    client, over = cluster.client(), threading.Event()

    lookups = 0

    def read():  # Three of four are there; some hundred a second.
        nonlocal lookups
        while not over.is_set():
            for i in range(8):
                client.get(f"fill:{i}" if i % 4 else f"none:{i}")
                lookups += 1
            time.sleep(0.01)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        time.sleep(1)
        before, started = lookups, time.monotonic()
        plan = cluster.cli_json("plan", "weight", "cache-1=2", "--live")
        rate = (lookups - before) / (time.monotonic() - started)
        given = cluster.cli_json("plan", "weight", "cache-1=2", "--live", "--hit-rate", "0.5", "--keys", "7")
    finally:
        over.set()
        reader.join()
    assert plan["sources"]["qps"] == plan["sources"]["hit_rate"] == "measured"
    assert plan["inputs"]["hit_rate"] == pytest.approx(0.75, abs=0.03)
    assert plan["inputs"]["qps"] == pytest.approx(rate, rel=0.4), "the machine may be busy, and the windows differ"
    assert plan["origin_qps"]["now"] == pytest.approx(plan["inputs"]["qps"] * (1 - plan["inputs"]["hit_rate"]), rel=1e-3)
    assert (given["inputs"]["hit_rate"], given["sources"]["hit_rate"]) == (0.5, "given")
    assert (given["inputs"]["keys"], given["sources"]["keys"]) == (7, "given")
    assert sum(m["keys_before"] for m in given["members"]) == pytest.approx(7, abs=1)


def test_live_names_a_member_without_room_as_the_resize_does(make_cluster):
    cluster = make_cluster(members=5, proxies=1)
    cluster.start(cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"]))
    five = cluster.write_spec()
    fill(cluster, 20000, 1000)
    small = cluster.members[4]
    small.client.config_set("maxmemory", "3mb")
    small.hang_up()
    plan = cluster.cli_json("plan", five, "--live")
    assert plan["verdict"] == plan["live_resize"]["verdict"] == "unsafe"
    assert "cache-5 would need" in plan["reason"] and "3.0 MiB" in plan["reason"]
    assert [m["id"] for m in plan["members"] if not m["has_room"]] == ["cache-5"]
    done = cluster.cli("plan", five, "--live", "--check", check=FAILED)
    assert "Verdict: UNSAFE." in done.stdout and " NO" in done.stdout
    refused = cluster.resize_start(five, wait=False, check=FAILED)
    assert "cache-5" in refused.stderr and "maxmemory" in refused.stderr


def test_live_names_every_member_that_does_not_answer_and_says_nothing_else(make_cluster):
    cluster = make_cluster(members=4, proxies=0)
    four = cluster.write_spec()
    for member in cluster.members[1:3]:
        member.process.kill()
    done = run("plan", four, "weight", "cache-1=2", "--live", check=FAILED)
    assert "member cache-2" in done.stderr and "member cache-3" in done.stderr
    assert "member cache-1" not in done.stderr and "member cache-4" not in done.stderr
    assert done.stdout == ""


def test_live_at_an_empty_cluster(make_cluster):
    cluster = make_cluster(members=2, proxies=1).start()
    plan = cluster.cli_json("plan", "weight", "cache-1=2", "--live")
    assert plan["inputs"]["keys"] == 0 and plan["keys_to_move"] == 0 and plan["bytes_to_move"] == 0
    assert plan["sources"]["value_bytes"] == "assumed" and plan["sources"]["hit_rate"] == "assumed"
    assert plan["duration_seconds"] == 0


def test_the_registry_must_know_the_cluster(make_cluster):
    cluster = make_cluster(members=2, proxies=0).start()
    done = run("plan", "--registry", cluster.registry_url, "--cluster", "nosuch", "remove", "cache-1", check=FAILED)
    assert "no cluster 'nosuch'" in done.stderr
    assert cluster.cli_json("plan", "remove", "cache-1")["members"][1]["share_after"] == 1


def test_no_plan_from_the_registry_while_a_resize_is_under_way(make_cluster):
    cluster = make_cluster(members=3, proxies=1)
    cluster.start(cluster.write_spec(members=["cache-1", "cache-2"], limits={"move_keys_per_second": 50}))
    fill(cluster, 2000, 10)
    cluster.resize_start(cluster.write_spec(limits={"move_keys_per_second": 50}), wait=False)
    done = cluster.cli("plan", "remove", "cache-1", check=FAILED)
    assert "is under way" in done.stderr
    cluster.rollback()
    cluster.wait_resized()


@pytest.mark.parametrize("algorithm", ["partitions", "slots", "memento"])
def test_a_resize_carries_the_table_over_as_planned(make_cluster, algorithm):
    """The file names members and no table: the fewest keys move, each time, and applying it again changes nothing."""
    placement = {"algorithm": algorithm, **({"hash": "crc16", "hash_tag": "{}"} if algorithm == "slots" else {})}
    cluster = make_cluster(members=5, proxies=1)
    four = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"], placement=placement)
    cluster.start(four)
    five = cluster.write_spec(placement=placement)
    written = cluster.fill(5000)
    plan = cluster.cli_json("plan", five, "--live")
    assert plan["carried_over"] is True
    assert plan["moved_share"] == pytest.approx(0.2, abs=0.01)
    cluster.resize_start(five)
    status = cluster.status()
    assert status["keys_moved"] == pytest.approx(1000, abs=150)
    cluster.assert_filled(written)
    cluster.apply(five)
    assert cluster.cli_json("plan", five)["moved_share"] == 0
    # A member from the middle leaves: a list of members alone would deal everything anew.
    fewer = cluster.write_spec(members=["cache-1", "cache-3", "cache-4", "cache-5"], placement=placement)
    assert cluster.cli_json("plan", fewer)["moved_share"] == pytest.approx(0.2, abs=0.02)
    cluster.resize_start(fewer)
    assert cluster.status()["keys_moved"] == pytest.approx(1000, abs=150)
    cluster.assert_filled(written)
    assert not [key for key in cluster.members[1].keys() if not key.startswith(b"rs:")]
