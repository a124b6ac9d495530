"""`ringshift compare`: the placements side by side, in every form, over made-up and real keys; and the articles."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.cluster import BAD_USAGE, FAILED, RINGSHIFT, Member, run, run_json

FIGURES = json.loads((Path(__file__).parents[1] / "vectors" / "seed_figures.json").read_text())
FEW = ["--keys", "4000"]


def placements(report):
    return {row["name"]: row for row in report["placements"]}


def write_spec(path, count, **placement):
    path.write_text(json.dumps({
        "cluster": "cache", "placement": {"algorithm": "ring", "hash": "xxh3", "points": 160, **placement},
        "members": [{"id": f"cache-{i}", "address": f"127.0.0.1:{7000 + i}"} for i in range(1, count + 1)]}))
    return path


@pytest.fixture(scope="module")
def grown():
    """Four to five, all placements."""
    return run_json("compare", "--from", 4, "--to", 5, *FEW)


def test_every_placement_is_there_with_all_its_figures(grown):
    rows = placements(grown)
    assert {"ring", "modulo", "slots", "jump", "rendezvous", "maglev", "multi-probe", "memento", "partitions", "tokens",
            "bounded-ring", "libmemcached-ketama", "twemproxy-ketama", "libketama", "nginx-consistent", "haproxy",
            "spymemcached", "dalli", "hashring", "cache-memcached-fast", "envoy-ring", "envoy-maglev", "article-go",
            "article-php", "article-js"} <= rows.keys()
    assert grown["keys"]["count"] == 4000
    assert grown["minimum_share"] == pytest.approx(0.2)
    for name, row in rows.items():
        assert row["refused"] is None, name
        assert sum(load["keys"] for load in row["loads"]) == 4000, name
        assert [load["member"] for load in row["loads"]] == [f"cache-{i}" for i in range(1, 6)]
        assert 0 < row["moved_share"] <= 1 and row["minimum_share"] == pytest.approx(0.2), name
        assert row["lookup_ns"] > 0 and row["bytes"] > 0 and row["build_us"] > 0, name
        assert row["after"]["max_avg"] >= 1 and row["after"]["relative_sd"] >= 0, name
    points = [point["points"] for point in grown["ring_by_points"]]
    assert points[0] == 1 and points[-1] == 1000 and points == sorted(points)


def test_nothing_moves_between_unchanged_members_where_that_is_promised(grown):
    rows = placements(grown)
    for name in ("ring", "rendezvous", "jump", "slots", "partitions", "memento", "tokens", "bounded-ring"):
        assert rows[name]["between_unchanged"] == 0, name
    assert rows["modulo"]["moved_share_exact"] == pytest.approx(0.8)
    assert rows["modulo"]["between_unchanged_exact"] == pytest.approx(0.6)
    assert rows["modulo"]["moved_share"] == pytest.approx(0.8, abs=0.03)


def test_bad_placements_are_warned_of_with_their_skew(grown):
    warnings = placements(grown)["twemproxy-ketama-crc32"]["warnings"]
    assert any("nearly all keys go to one member" in text and "% of the keys" in text for text in warnings)


def test_table():
    done = run("compare", *FEW, check=0)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("4 -> 5 members: 4,000 keys (made up)") and "20.00 %" in lines[0]
    assert all(len(line) <= 120 for line in lines), "fits a terminal of 120 columns"
    modulo = next(line.split() for line in lines if line.startswith("modulo "))
    assert modulo[2] == "80.00"
    assert "Warnings:" in done.stdout
    assert done.stderr == "", "no progress unless on a terminal"


def test_csv():
    rows = list(csv.DictReader(io.StringIO(run("compare", *FEW, "--placements", "ours", "--csv", check=0).stdout)))
    by_name = {row["placement"]: row for row in rows}
    assert float(by_name["ring"]["between_unchanged"]) == 0
    assert float(by_name["modulo"]["moved_share_exact"]) == pytest.approx(0.8)
    assert by_name["multi-probe"]["moved_share_exact"] == ""
    refused = run("compare", *FEW, "--csv", "--reweight", "cache-1=2", "--placements", "ring,jump", check=0).stdout
    ring, jump = csv.DictReader(io.StringIO(refused))
    assert ring["refused"] == "0" and jump["refused"] == "1" and jump["moved_share"] == ""


def test_removing_and_reweighting():
    names = ["--placements", "ring,jump,memento,modulo"]
    removed = placements(run_json("compare", *FEW, "--from", 5, "--remove", "cache-2", *names))
    two = run_json("compare", *FEW, "--from", 5, "--remove", "cache-2", "--remove", "cache-4", *names)
    assert [member["id"] for member in two["members"]["after"]] == ["cache-1", "cache-3", "cache-5"]
    assert removed["ring"]["between_unchanged"] == 0 and removed["memento"]["between_unchanged"] == 0
    assert removed["jump"]["between_unchanged"] > 0.1, "the middle of the list went"
    assert any("behind them moves" in text for text in removed["jump"]["warnings"])
    assert removed["ring"]["moved_share"] == pytest.approx(0.2, abs=0.06)

    heavier = run_json("compare", *FEW, "--from", 4, "--reweight", "cache-1=2", *names)
    assert heavier["minimum_share"] == pytest.approx(2 / 5 - 1 / 4)
    rows = placements(heavier)
    assert "weight" in rows["jump"]["refused"] and rows["ring"]["refused"] is None
    assert rows["ring"]["after"]["max_avg"] < 1.3, "balance is against the weights"

    table = run("compare", *FEW, "--reweight", "cache-1=2", *names, check=0).stdout
    assert "cannot make this change" in table


def test_specs(tmp_path):
    four, five = write_spec(tmp_path / "four.yaml", 4, hash_tag="{}"), write_spec(tmp_path / "five.yaml", 5)
    report = run_json("compare", "--spec", four, "--to-spec", five, "--placements", "yours,ring,nginx", *FEW)
    assert report["placements"][0]["name"] == "spec" and report["placements"][0]["family"] == "yours"
    rows = placements(report)
    assert rows["spec"]["between_unchanged"] == 0
    assert [member["id"] for member in report["members"]["after"]][-1] == "cache-5"
    added = run_json("compare", "--spec", four, "--add", "cache-9=127.0.0.1:7999", "--placements", "spec", *FEW)
    assert [row["name"] for row in added["placements"]] == ["spec"]
    assert added["members"]["after"][-1] == {"id": "cache-9", "address": "127.0.0.1:7999", "weight": 1.0}


def test_real_keys_and_their_prefixes(tmp_path):
    keys = tmp_path / "keys.txt"
    lines = [f"cart:{{shop-7}}:{i}" for i in range(500)] + [f"user:{i}" for i in range(1500)]
    keys.write_text("\n".join(lines) + "\r\n\n")
    four = write_spec(tmp_path / "four.yaml", 4, hash_tag="{}")
    arguments = ["compare", "--spec", four, "--add", "cache-5=127.0.0.1:7005", "--placements", "spec,modulo"]
    report = run_json(*arguments, "--keys-file", keys)
    assert report["keys"] == {"source": str(keys), "count": 2000}
    prefixes = {each["prefix"]: each for each in report["skew"]["prefixes"]}
    assert report["skew"]["placement"] == "spec"
    assert prefixes["user:"]["keys"] == 1500 and prefixes["user:"]["share"] == pytest.approx(0.75)
    assert prefixes["cart:{shop-7}:"]["max_avg"] == pytest.approx(5), "one tag, one member"
    same = json.loads(run(*arguments, "--keys-file", "-", "--json", stdin=keys.read_text(), check=0).stdout)
    assert same["keys"]["count"] == 2000 and same["skew"] == report["skew"]
    table = run(*arguments, "--keys-file", keys, check=0).stdout
    assert "heaviest key prefixes" in table and "cart:{shop-7}:" in table
    assert "skew" not in run_json("compare", "--placements", "ring", *FEW)
    assert "skew" in run_json("compare", "--placements", "ring", "--skew", *FEW)


@pytest.fixture
def server(tmp_path):
    member = Member(1, tmp_path)
    yield member
    member.process.end()


def test_keys_of_a_server(server, tmp_path):
    pipe = server.client.pipeline()
    for i in range(3000):
        pipe.set(f"user:{i}", "x")
    pipe.execute()
    server.client.execute_command("SELECT", 0)
    url = f"redis://{server.address}"
    report = run_json("compare", "--redis", url, "--placements", "ring,modulo")
    assert report["keys"]["count"] == 3000 and server.address in report["keys"]["source"]
    assert report["skew"]["prefixes"][0]["prefix"] == "user:"
    assert run_json("compare", "--redis", url, "--sample", 700, "--placements", "ring")["keys"]["count"] == 700
    empty = run("compare", "--redis", url + "/3", check=FAILED)
    assert "no keys in database 3" in empty.stderr

    server.client.config_set("requirepass", "sec:ret")
    denied = run("compare", "--redis", url, check=FAILED)
    assert "NOAUTH" in denied.stderr
    wrong = run("compare", "--redis", f"redis://:nosuchword@{server.address}", check=FAILED)
    assert "nosuchword" not in wrong.stderr and "refused the login" in wrong.stderr
    report = run_json("compare", "--redis", f"redis://default:sec%3aret@{server.address}/0", "--placements", "ring")
    assert report["keys"]["count"] == 3000 and "ret" not in report["keys"]["source"].replace("server", "")


class Page(HTMLParser):
    """What is between tags, and that the tags are closed in order."""
    VOID = {"meta", "link", "br", "img", "input"}

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.attributes = [], [], []

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, *each) for each in attributes]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1:]}>"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def test_page(tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("\n".join(f"</script><script>alert(1)</script>&\"':{i}" for i in range(2000)))
    page_file = tmp_path / "out.html"
    run("compare", "--keys-file", keys, "--placements", "ours", "--html", page_file, check=0)
    text = page_file.read_text()
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert not [each for each in page.attributes if each[1] in ("src", "href")], "the page needs nothing else"
    assert not re.search(r"@import|url\(\s*['\"]?http", text)
    assert len(page.scripts) == 3, "a key cannot end the script it is in"
    data = json.loads(page.scripts[0])
    assert data["skew"]["prefixes"][0]["prefix"].startswith("</script><script>alert(1)</"[:2])
    assert {row["name"] for row in data["placements"]} >= {"ring", "jump"}
    assert len(data["ring_by_points"]) > 5
    assert "Chart.js" in page.scripts[1]
    assert os.listdir(tmp_path) == sorted(["keys.txt", "out.html"]) or set(os.listdir(tmp_path)) == {"keys.txt",
                                                                                                     "out.html"}
    assert page_file.stat().st_mode & 0o444 == 0o444 & ~_umask(), "readable as any other file"


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_interrupted_leaves_no_file(tmp_path):
    page = tmp_path / "out.html"
    process = subprocess.Popen([str(RINGSHIFT), "compare", "--keys", "5000000", "--html", str(page)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               # Where the tests run in the background, a shell may have switched it off.
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        time.sleep(0.3)
        assert process.poll() is None, "still at work"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == -signal.SIGINT and out == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments, says", [
    (["--placements", "nosuch"], "nosuch"),
    (["--remove", "cache-9"], "'cache-9' is no member"),
    (["--from", "1", "--remove", "cache-1"], "no member is left"),
    (["--reweight", "cache-1=much"], "ID=WEIGHT"),
    (["--add", "cache-9"], "ID=ADDRESS"),
    (["--add", "cache-9=nowhere"], "host:port"),
    (["--keys-file", "/nonexistent"], "No such file"),
    (["--spec", "/nonexistent.yaml"], "No such file"),
    (["--redis", "127.0.0.1:6379"], "redis://"),
    (["--redis", "redis://127.0.0.1:1"], "127.0.0.1:1"),
    (["--redis", "redis://user:pass%zz@127.0.0.1:1"], "two hex digits"),
    (["--html", "/nonexistent/out.html", "--keys", "100", "--placements", "ring"], "/nonexistent/out.html"),
])
def test_what_fails_says_why(arguments, says):
    done = run("compare", *arguments, check=FAILED)
    assert says in done.stderr and done.stdout == ""
    assert "pass%zz" not in done.stderr


@pytest.mark.parametrize("arguments", [
    ["--from", "0"], ["--from", "x"], ["--to", "20000"], ["--keys", "0"], ["--json", "--csv"],
    ["--to", "5", "--remove", "cache-1"], ["--spec", "a", "--from", "4"], ["--to-spec", "a"], ["--sample", "5"],
    ["--keys", "5", "--keys-file", "a"], ["--articles", "--csv"], ["surplus"]])
def test_bad_usage(arguments):
    assert run("compare", *arguments, check=BAD_USAGE).stderr.strip()


def test_articles_are_reproduced_exactly():
    report = run_json("compare", "--articles", timeout=60)
    assert report["figures"] == FIGURES
    assert all(pointer.startswith("/seed3_py/") for pointer in report["recorded_not_recomputed"])
    verdicts = {(claim["article"], claim["claim"]): claim["holds"] for claim in report["claims"]}
    assert list(verdicts.values()).count(False) >= 4 and list(verdicts.values()).count(True) >= 3
    cost = report["cost"]
    assert [row["points"] for row in cost["lookups"]] == [1, 160, 1000]
    thousand = cost["lookups"][2]
    assert thousand["linear_ns"] > thousand["binary_ns"] and thousand["linear_ns"] > 10 * thousand["ringshift_ns"]
    assert set(cost["hash_ns"]) == {"md5", "crc32", "fnv1a", "xxh3"}
    assert cost["redis_sorted_set_skipped"] is None
    for row, points in zip(cost["redis_sorted_set"], (160, 1000), strict=True):
        assert row["points"] == points and row["call_us"] > 1 and row["bytes"] > 5 * points * 8


def test_articles_without_a_server(tmp_path):
    """No redis-server to be found: said, and everything else is there."""
    done = run("compare", "--articles", check=0, env={"PATH": str(tmp_path)}, timeout=60)
    assert "skipped: 'redis-server' is not installed" in done.stdout
    assert "WRONG: a million keys on 160 points" in done.stdout
    assert "64313" in done.stdout and "13.76 %" in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())
