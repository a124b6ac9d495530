"""The bench of the proxy runs, and what it prints and writes is whole. How fast anything is, no test says."""
import json
import os
import signal
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest

from harness.cluster import RINGSHIFT
from harness.process import wait_until

BENCH = Path(__file__).parents[2] / "bench" / "proxy"
LOAD_FIGURES = {"cpu_us", "requests_per_second", "p50_ms", "p99_ms", "p999_ms", "rss_mib"}


def command(program, *arguments):
    return ["/usr/bin/python3", BENCH / program, "--binary", RINGSHIFT, *arguments]


def bench(program, *arguments, **options):
    return subprocess.run(command(program, *arguments), capture_output=True, text=True, timeout=150, **options)


def left_behind(directory):
    """Processes that have a file of the directory in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(directory) in words and int(path.parent.name) != os.getpid():
            found.append(words)
    return found


def temporary(tmp_path):
    """An environment in which the bench's folder is one that `left_behind` can find."""
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "TMPDIR": str(tmp_path / "tmp")}


def test_a_short_run_gives_a_whole_table(tmp_path):
    names = ["get-p1", "mget10-p1", "get-p16-tls", "publish-1", "idle"]
    done = bench("run.py", "--quick", "--only", ",".join(names), "--pairs", "2", "--seconds", "0.1", "--json",
                 tmp_path / "out" / "bench.json", "--picture", tmp_path / "out" / "bench.svg", env=temporary(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "out" / "bench.json").read_text())
    rows = {row["name"]: row for row in document["rows"]}
    # `get-p1` is a name, so that it does not stand for all rows that begin so.
    assert list(rows) == names
    assert document["left_out"] == [] and document["interrupted"] is False
    for name, row in rows.items():
        assert row["rounds"] == 2
        for figures in row["servers"].values():
            assert len(figures["runs"]) == 2
            for figure in LOAD_FIGURES if row["kind"] != "idle" else {"bytes_per_client", "idle_cpu_ms_per_s"}:
                values = figures[figure]
                assert 0 <= values["min"] <= values["median"] <= values["max"], (name, figure)
        if row["kind"] != "idle":
            assert row["ratio"]["min"] > 0
            for run in row["servers"][row["judged"]]["runs"]:
                assert 0 < run["p50_ms"] <= run["p99_ms"] <= run["p999_ms"] and run["rss_mib"] > 1
        assert name in done.stdout
    assert list(rows["get-p1"]["servers"]) == ["ringshift", "nutcracker", "redis"]
    assert rows["get-p1"]["target"] == 0.85 and "<= 0.85" in done.stdout
    assert rows["idle"]["clients"] == 1000 and 0 < rows["idle"]["bytes"]["median"] < 100_000
    assert "others" in done.stdout and "5 of 5: idle" in done.stderr
    picture = xml.dom.minidom.parse(str(tmp_path / "out" / "bench.svg")).toxml()
    assert all(name in picture for name in names if name != "idle")
    assert left_behind(tmp_path / "tmp") == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_what_was_measured(tmp_path, signum):
    out = tmp_path / "bench.json"
    with open(tmp_path / "log", "w+") as log:
        process = subprocess.Popen(command("run.py", "--only", "get-p1,set-p1", "--pairs", "1", "--seconds", "0.5", "--json",
                                           out), stdout=log, stderr=log, env=temporary(tmp_path))
        try:
            wait_until("the second row begins", lambda: "2 of 2" in (tmp_path / "log").read_text(), timeout=90)
            assert left_behind(tmp_path / "tmp") != []
            process.send_signal(signum)
            assert process.wait(30) == 130, (tmp_path / "log").read_text()
        finally:
            process.kill()
            process.wait()
    document = json.loads(out.read_text())
    assert document["interrupted"] is True
    assert document["rows"], document["left_out"]
    assert document["rows"][0]["name"] == "get-p1" and document["rows"][0]["rounds"] == 1
    assert "get-p1" in (tmp_path / "log").read_text()
    assert left_behind(tmp_path / "tmp") == []


def test_instructions_are_counted(tmp_path):
    done = bench("instructions.py", "--only", "get-p1", "--ours", "--scale", "0.1", "--json", tmp_path / "count.json",
                 env=temporary(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    row, = json.loads((tmp_path / "count.json").read_text())["rows"]
    # What a request needs at least, and what no proxy does to one: the counts are of requests, not of runs.
    assert 200 < row["ringshift"] < 50_000
    assert row["target"] == 1500 and "<= 1,500" in done.stdout
    assert left_behind(tmp_path / "tmp") == []


@pytest.mark.parametrize("arguments, words", [
    (["--only", "get-p1,gut"], "no row is named gut"),
    (["--binary", "/nonexistent/ringshift"], "make bench-proxy"),
    (["--pairs", "0"], "positive int"),
])
def test_bad_arguments_are_named(arguments, words):
    done = bench("run.py", *arguments)
    assert done.returncode != 0 and words in done.stderr and "Traceback" not in done.stderr


def test_a_missing_program_is_named_with_its_package():
    done = bench("run.py", "--only", "get-p1", env={**os.environ, "PATH": "/nonexistent"})
    assert done.returncode != 0 and "redis-benchmark" in done.stderr and "redis-tools" in done.stderr


def test_percentiles_of_redis_benchmark():
    """p99.9 is the first line at or above it; the cumulative table below it is another one."""
    sys.path.insert(0, str(BENCH))
    try:
        from load import Run
    finally:
        sys.path.remove(str(BENCH))
    run = Run("""====== GET x ======
Latency by percentile distribution:
0.000% <= 0.100 milliseconds (cumulative count 2)
50.000% <= 0.800 milliseconds (cumulative count 500)
75.000% <= 0.900 milliseconds (cumulative count 750)
99.805% <= 7.000 milliseconds (cumulative count 998)
99.902% <= 8.000 milliseconds (cumulative count 999)
100.000% <= 9.000 milliseconds (cumulative count 1000)

Cumulative distribution of latencies:
60.000% <= 0.103 milliseconds (cumulative count 600)
99.950% <= 0.200 milliseconds (cumulative count 999)

Summary:
  throughput summary: 12345.60 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.900     0.096     0.801     1.500     2.500     9.000
""")
    assert (run.rate, run.p50_ms, run.p99_ms, run.p999_ms) == (12345.6, 0.8, 2.5, 8.0)


def test_the_registrys_bench_measures(tmp_path):
    out = tmp_path / "registry.json"
    done = subprocess.run(["/usr/bin/python3", BENCH.parent / "registry" / "run.py", "--routers", "3", "--watchers", "20",
                           "--writes", "2", "--settle", "0.3", "--json", out], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "RINGSHIFT_BIN": str(RINGSHIFT)})
    assert done.returncode == 0, done.stderr
    seen = json.loads(out.read_text())
    assert seen["write_to_event"]["last_ms"] > 0 and seen["router_report"]["puts"] >= 3, seen
