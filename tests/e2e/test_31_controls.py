"""The operator's controls of a resize: the plan and the question before it, what paces it, what rolls it back by
itself, a change of mind, changes of members in one word, and what is told meanwhile and afterwards."""
import json
import os
import pty
import select
import signal
import subprocess
import threading
import time

import pytest

from harness.cluster import BAD_USAGE, FAILED, run
from harness.process import die_with_parent, wait_until

SLOW = {"move_keys_per_second": 200, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}


class Terminal:
    """`ringshift ARGUMENTS` on a terminal of 100 columns; what it shows is gathered."""

    def __init__(self, cluster, *arguments):
        self.master, slave = pty.openpty()
        command = [str(cluster.binary), *map(str, arguments), "--registry", cluster.registry_url]
        self.popen = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=die_with_parent,
                                      start_new_session=True)
        os.close(slave)
        self.text = ""

    def read(self, patience=0.1):
        while select.select([self.master], [], [], patience)[0]:
            try:
                got = os.read(self.master, 65536)
            except OSError:  # The other end is closed.
                return self.text
            if not got:
                return self.text
            self.text += got.decode(errors="replace")
        return self.text

    def wait_for(self, part):
        return wait_until(lambda: f"'{part}' on the terminal:\n{self.text}", lambda: part in self.read(), 30)

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        def over():
            self.read(0.05)
            return self.popen.poll() is not None
        wait_until(lambda: f"the command's end:\n{self.text}", over, 30)
        os.close(self.master)
        return self.popen.returncode


def hang_up(cluster):
    for member in cluster.members:
        member.hang_up()


def log_of(cluster, *arguments):
    return [json.loads(line) for line in cluster.cli("resize", "log", *arguments, "--json", check=0).stdout.splitlines()]


def member_ids(cluster):
    return [m["id"] for m in cluster.cli_json("topology", "get")["topology"]["spec"]["members"]]


def test_the_plan_and_the_question(cluster):
    cluster.fill(500)
    member = cluster.add_member()
    five = cluster.write_spec()
    start = ["resize", "start", "--spec", five]
    # Nobody to ask: not started, and said so.
    refused = cluster.cli(*start, check=BAD_USAGE)
    assert "--yes" in refused.stderr and "--dry-run" in refused.stderr and refused.stdout == ""
    assert "--yes" in cluster.cli(*start, "--json", check=BAD_USAGE).stderr
    # The plan alone, as `plan` has it.
    shown = cluster.cli(*start, "--dry-run", check=0).stdout
    assert "Plan for cluster cache: from 4 members, ring to 5 members, ring" in shown and "Verdict:" in shown
    plan = cluster.cli_json(*start, "--dry-run")
    assert plan["sources"]["keys"] == "measured" and plan["inputs"]["keys"] == 500
    assert plan["moved_share"] == cluster.cli_json("plan", five)["moved_share"]
    # Without the members' figures: shares.
    member.process.kill()
    shares = cluster.cli(*start, "--dry-run", check=0).stdout
    assert "of the keyspace moves" in shares and "cache-5" in shares and "were not asked" in shares
    member.start()
    hang_up(cluster)
    for bad in (["--soak", "60"], ["--at", "25:00"], ["--abort-if", "hit_rate<90"], ["--steps", "50"], ["--rate", "0"]):
        assert cluster.cli(*start, "--yes", *bad, check=BAD_USAGE).stderr.strip(), bad
    asked = Terminal(cluster, *start)
    asked.wait_for("Start? [y/N]")
    asked.type("n\n")
    assert asked.end() == FAILED and "nothing was started" in asked.text
    assert cluster.status()["state"] == "idle" and len(member_ids(cluster)) == 4
    asked = Terminal(cluster, *start)
    asked.wait_for("Start? [y/N]")
    asked.type("y\n")
    assert asked.end() == 0 and "started" in asked.text
    cluster.wait_resized()
    cluster.assert_placed(five)


def test_pace_watch_and_log(cluster):
    """Soak, window and rates, what `watch` and `topology watch` show of them, and the log afterwards."""
    written = cluster.fill(2000)
    cluster.add_member()
    five = cluster.write_spec()
    topologies = subprocess.Popen([str(cluster.binary), "topology", "watch", "--json", "--registry",
                                   cluster.registry_url, "--cluster", cluster.name], stdout=subprocess.PIPE, text=True,
                                  preexec_fn=die_with_parent)
    hang_up(cluster)
    cluster.cli("resize", "start", "--spec", five, "--yes", "--steps", "50,100", "--soak", "1h", "--rate", "150",
                "--abort-if", "hit_rate<0.01", check=0)
    cluster.wait_status("some moved", lambda s: s["keys_moved"] > 5)
    assert cluster.status()["rate"] == 150
    watching = Terminal(cluster, "resize", "watch", "--cluster", cluster.name)
    watching.wait_for("-> cache-5")
    watching.wait_for("aborts if hit_rate<0.01")
    watching.wait_for("(at most 150")
    cluster.cli("resize", "set-rate", "20000", "--byte-rate", "100MiB", check=0)
    soaking = cluster.wait_status("soaks", lambda s: s["waiting"] == "soak")
    assert soaking["state"] == "running" and soaking["waiting_until"] and soaking["byte_rate"] == 100 << 20
    watching.wait_for("soaks until")
    assert "soak until" in cluster.cli("resize", "status", check=0).stdout
    cluster.resume()
    cluster.wait_resized()
    assert watching.end() == 0
    assert "\x1b[" in watching.text and "#" in watching.text and "finished" in watching.text
    cluster.assert_placed(five)
    cluster.assert_filled(written)
    topologies.send_signal(signal.SIGINT)
    published = [json.loads(line) for line in topologies.communicate(timeout=20)[0].splitlines()]
    changes = [change for one in published for change in one["changes"]]
    assert any("begins" in c for c in changes) and any(c.startswith("member cache-5") and "joined" in c for c in changes)
    assert any("hold for 512 of 1024 slices" in c for c in changes) and any("is over" in c for c in changes)
    assert len({one["version"] for one in published}) == len(published)
    log = log_of(cluster)
    assert [e["event"] for e in log if e["event"] != "phase"] == ["accepted", "rate", "resume", "end"]
    assert "@" in log[0]["by"] and log[-1]["text"].startswith("finished")
    lines = cluster.cli("resize", "log", log[0]["resize"], check=0).stdout
    assert "soak" in lines and "step 1/2: done" in lines
    assert log[0]["resize"] in cluster.cli("resize", "list", check=0).stdout
    assert "no log of a resize 'nosuch'" in cluster.cli("resize", "log", "nosuch", check=FAILED).stderr
    # A window that opens in a hundred years.
    cluster.cli("resize", "start", "--spec", cluster.spec, "--yes", "--at", "2126-01-01T00:00:00Z", check=0)
    waiting = cluster.wait_status("waits", lambda s: s["waiting"] == "window")
    assert waiting["phase"] == "prep" and waiting["waiting_until"].startswith("21")
    cluster.rollback()
    cluster.wait_resized()


def test_a_broken_condition_rolls_back_by_itself(cluster):
    written = cluster.fill(3000)
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    over = threading.Event()

    def look_for_what_is_not_there():
        client = cluster.client()
        while not over.is_set():
            pipeline = client.pipeline(transaction=False)
            for i in range(20):
                pipeline.get(f"none:{i}")
            pipeline.execute()
            time.sleep(0.02)
    reader = threading.Thread(target=look_for_what_is_not_there)
    reader.start()
    try:
        hang_up(cluster)
        done = cluster.cli("resize", "start", "--spec", five, "--yes", "--wait", "--abort-if",
                           "p99_ms>60000,hit_rate<0.5", check=FAILED, timeout=90)
    finally:
        over.set()
        reader.join()
    assert "aborted: hit_rate 0" in done.stdout and "< 0.5 for 3 s" in done.stdout
    status = cluster.status()
    assert status["rolled_back"] and status["aborted"].startswith("aborted: hit_rate")
    assert status["p99_ms"] is not None, "routers measure while a resize runs"
    assert any(e["event"] == "abort" for e in log_of(cluster))
    cluster.assert_placed(cluster.spec)
    cluster.assert_filled(written)


def test_a_change_of_mind(cluster):
    cluster.fill(2000)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec(limits=SLOW), wait=False)
    cluster.wait_status("some moved", lambda s: s["keys_moved"] > 20)
    other = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"], weights={"cache-1": 2.0})
    refused = cluster.resize_start(other, wait=False, check=FAILED)
    assert "--replace" in refused.stderr and "rollback" in refused.stderr
    shown = cluster.cli("resize", "start", "--spec", other, "--replace", "--dry-run", check=0).stdout
    assert "is rolled back first" in shown and "Verdict:" in shown
    assert cluster.status()["state"] == "running", "and nothing was done"
    done = cluster.cli("resize", "start", "--spec", other, "--replace", "--yes", "--wait", check=0, timeout=90)
    assert "finished" in done.stdout.splitlines()[-1] or "finished" in done.stdout
    assert not cluster.status()["rolled_back"]
    cluster.assert_placed(other)
    assert cluster.members[4].keys() <= {b"rs:stamp"}


def test_members_in_one_word(make_cluster):
    cluster = make_cluster(members=2, proxies=1).start()
    written = cluster.fill(600)
    third = cluster.add_member()

    def change(*arguments, check=0):
        hang_up(cluster)
        return cluster.cli("member", *arguments, "--yes", check=check, timeout=60)

    change("add", "cache-3", third.address, "--weight", "2", "--zone", "b", "--wait")
    spec = cluster.cli_json("topology", "get")["topology"]["spec"]
    assert [(m["id"], m["weight"]) for m in spec["members"]] == [("cache-1", 1), ("cache-2", 1), ("cache-3", 2)]
    assert spec["members"][2]["zone"] == "b" and len(third.keys()) > 200
    change("weight", "cache-3", "1", "--wait")
    dry = json.loads(cluster.cli("member", "weight", "cache-1=2", "cache-2=2", "--dry-run", "--json", check=0).stdout)
    assert [m["id"] for m in dry["members"]] == ["cache-1", "cache-2", "cache-3"]
    change("drain", "cache-3", "--wait")
    assert third.keys() <= {b"rs:stamp"} and member_ids(cluster) == ["cache-1", "cache-2"]
    change("add", f"cache-3={third.address}", "--wait")
    change("remove", "cache-3", "--wait")
    assert "retired" in change("add", "cache-3", third.address, check=FAILED).stderr
    assert "no member 'cache-9'" in change("remove", "cache-9", check=FAILED).stderr
    assert change("weight", "cache-1", "heavy", check=BAD_USAGE).stderr.strip()
    cluster.assert_filled(written)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_them(shell):
    script = run("completion", shell, check=0).stdout
    for word in ("member", "drain", "set-rate", "abort-if", "soak", "dry-run", "list"):
        assert word in script, word
