"""The soak (`make soak`, tests/soak) in short: everything at once for a few seconds. With RINGSHIFT_LONG=1 also kill -9
of proxies, controllers and registry, 50 times each, while resizes run."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.process import die_with_parent

SOAK = Path(__file__).resolve().parents[1] / "soak" / "run.py"


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
