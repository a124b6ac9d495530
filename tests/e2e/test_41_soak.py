"""The soak (`make soak`, tests/soak) in a few seconds. With RINGSHIFT_LONG=1 also the proof of big changes (`make proof`),
and kill -9 of proxies, controllers and registry, 50 times each, while resizes run."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.process import die_with_parent

SOAK = Path(__file__).resolve().parents[1] / "soak" / "run.py"
TRANSFERS = SOAK.with_name("transfers.py")


def soak(tmp_path, *arguments, timeout):
    logs, summary = tmp_path / "soak", tmp_path / "soak.json"
    done = subprocess.run(["/usr/bin/python3", str(SOAK), "--directory", str(logs), "--json", str(summary),
                           *map(str, arguments)], text=True, capture_output=True, timeout=timeout,
                          preexec_fn=die_with_parent)
    events = (logs / "events.log").read_text() if (logs / "events.log").exists() else ""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{events[-6000:]}"
    print(done.stdout)
    return json.loads(summary.read_text())


def test_everything_at_once(tmp_path):
    """Bounded by the soak itself: a resize that does not end within 150 s of the last fault is a failure."""
    seen = soak(tmp_path, "--seconds", 9, "--storm", 5, "--furniture", 1500, "--max-value", 1 << 18, timeout=400)
    assert seen["violations"] == [] and seen["operations"] > 500
    assert sum(seen["faults"].values()) >= 2 and sum(seen["outcomes"].values()) >= 1


@pytest.mark.skipif(os.environ.get("RINGSHIFT_LONG") != "1", reason="some ten minutes: set RINGSHIFT_LONG=1")
def test_fifty_kills_of_each(tmp_path):
    seen = soak(tmp_path, "--kills", 50, timeout=3000)
    assert seen["violations"] == [] and all(count >= 50 for count in seen["faults"].values())
    assert len(seen["faults"]) == 3


def transfers(tmp_path, *arguments, timeout):
    report = tmp_path / "report.json"
    done = subprocess.run(["/usr/bin/python3", str(TRANSFERS), "--json", str(report), "--directory",
                           str(tmp_path / "transfers"), *map(str, arguments)], text=True, capture_output=True,
                          timeout=timeout, preexec_fn=die_with_parent)
    assert done.returncode == 0, f"{done.stdout[-8000:]}{done.stderr}"
    print(done.stdout)
    return json.loads(report.read_text())


@pytest.mark.skipif(os.environ.get("RINGSHIFT_LONG") != "1", reason="more than half a minute: set RINGSHIFT_LONG=1")
def test_a_big_change_judged_key_by_key(tmp_path):
    """Long values among all types, from another program's placement; its own bounds end what does not end."""
    [seen] = transfers(tmp_path, "--keys", 4000, "--only", "ketama-ring", timeout=400)
    assert seen["violations"] == [] and seen["minimum"] > 2000 and seen["read_through_nutcracker"] > 0
    assert seen["operations"] > 0 and seen["reads"] > 0 and seen["writes"] > 0


@pytest.mark.skipif(os.environ.get("RINGSHIFT_LONG") != "1", reason="some five minutes: set RINGSHIFT_LONG=1")
def test_all_big_changes_and_rollbacks(tmp_path):
    seen = transfers(tmp_path, "--quick", timeout=3000)
    assert len(seen) == 11 and not any(one["violations"] for one in seen)
