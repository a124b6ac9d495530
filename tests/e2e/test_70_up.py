"""The playground, small: its figures keep the promises, and it leaves nothing behind however it ends."""
import glob
import json
import os
import signal
import subprocess
import tempfile
import time

from harness.cluster import RINGSHIFT

FIELDS = {"keys_total", "keys_minimum", "keys_minimum_theory", "keys_moved", "duration_seconds", "hold_ms_max",
          "hit_rate_steady", "hit_rate_min_1s", "origin_qps_steady", "origin_qps_mean_during", "origin_qps_max_1s",
          "lost_writes", "stale_reads", "p99_ms_before", "p99_ms_during", "p99_ms_after"}
SMALL = ["--keys", "20000", "--rate", "1500", "--steady", "4"]


def start(directory, *arguments):
    environment = dict(os.environ, TMPDIR=str(directory))
    return subprocess.Popen([RINGSHIFT, "up", *SMALL, *arguments], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def descendants(pid):
    """Process ids of those that pid started, at any depth."""
    found, queue = set(), [pid]
    while queue:
        try:
            for task in os.listdir(f"/proc/{queue[0]}/task"):
                with open(f"/proc/{queue[0]}/task/{task}/children") as children:
                    queue += [int(child) for child in children.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
        found.add(queue.pop(0))
    return found - {pid}


def all_gone(pids, patience=5.0):
    until = time.monotonic() + patience
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_once_prints_figures_that_keep_the_promises(tmp_path):
    up = start(tmp_path, "--once", "--json")
    out, err = up.communicate(timeout=120)
    assert up.returncode == 0, out + err
    figures = json.loads(out)
    assert FIELDS <= figures.keys()
    assert figures["lost_writes"] == 0 and figures["stale_reads"] == 0
    assert figures["keys_moved"] <= 1.02 * figures["keys_minimum"]
    assert figures["keys_minimum"] > 0.15 * figures["keys_total"]
    assert glob.glob(str(tmp_path / "*")) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    up = start(tmp_path, "--once")
    time.sleep(3)
    children = descendants(up.pid)
    assert children, "no redis-server was started within 3 s"
    up.send_signal(signal.SIGINT)
    up.communicate(timeout=30)
    assert all_gone(children)
    assert glob.glob(str(tmp_path / "*")) == []


def test_it_works_again_after_kill_9(tmp_path):
    up = start(tmp_path, "--once")
    time.sleep(3)
    children = descendants(up.pid)
    up.kill()
    up.communicate(timeout=30)
    assert children and all_gone(children)
    again = start(tmp_path, "--once", "--json")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, out + err
    assert glob.glob(str(tmp_path / "*")) == []
