"""The stampede drill, small: the strategies differ as they must, the JSON has its shape, the report stands alone."""
import json
import os
import re
import signal
import subprocess
import time

from harness.cluster import BAD_USAGE, FAILED, RINGSHIFT, run

FIELDS = ["name", "hit_rate_steady", "hit_rate_min_1s", "origin_qps_steady", "origin_qps_mean_during", "origin_qps_max_1s",
          "recovery_seconds", "keys_moved", "lost_writes", "stale_reads", "p99_ms_before", "p99_ms_during", "p99_ms_after"]
SMALL = ["--qps", "800", "--keys", "6000", "--threads", "32", "--ttl", "30"]
STRATEGIES = ["modulo", "ring", "ring+dual-read", "ringshift"]


def start(tmp_path, *arguments):
    return subprocess.Popen([RINGSHIFT, "drill", *SMALL, *arguments], env=dict(os.environ, TMPDIR=str(tmp_path)),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_all_strategies(tmp_path):
    out_dir, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    drill = start(scratch, "--seconds", "3", "--json", "--out", str(out_dir))
    out, err = drill.communicate(timeout=300)
    outcome = json.loads(out)
    assert [strategy["name"] for strategy in outcome["strategies"]] == STRATEGIES
    for strategy in [*outcome["strategies"], outcome["control"]]:
        assert list(strategy)[:len(FIELDS)] == FIELDS
        assert strategy["complete"], strategy["error"]
        # A slow machine may need longer for the resize than the others are watched.
        watched = outcome["during_seconds"] if strategy["name"] in ("ringshift", "control") else outcome["seconds"]
        assert len(strategy["series"]["hit_rate"]) >= outcome["before_seconds"] + watched
    modulo, ring, dual, ours = outcome["strategies"]

    # What a switch does, beyond any noise: four fifths of the keys are gone at once, with a ring a fifth.
    assert modulo["hit_rate_min_1s"] < modulo["hit_rate_steady"] - 0.15
    assert modulo["origin_qps_max_1s"] > 1.5 * modulo["origin_qps_steady"]
    assert modulo["keys_changed_owner"] > 0.7 * modulo["keys_live"]
    assert modulo["hit_rate_min_1s"] < ring["hit_rate_min_1s"]
    assert modulo["lost_writes"] > ring["lost_writes"] > 0
    assert dual["keys_copied"] > 0

    # What ringshift promises whatever the machine does.
    assert ours["lost_writes"] == 0 and ours["stale_reads"] == 0, ours["examples"]
    assert ours["keys_misplaced"] == 0 and ours["keys_moved"] > 0.1 * ours["keys_live"]
    assert ours["reads_checked"] > 1000
    control = outcome["control"]
    assert control["lost_writes"] == 0 and control["stale_reads"] == 0, control["examples"]
    # Three seconds of a small load are few draws, so the other promises may fail by chance; the verdict must be there.
    names = {promise["name"] for promise in outcome["promises"]}
    assert names == {"nothing_lost", "nothing_stale", "nothing_misplaced", "hit_rate", "origin_mean", "origin_worst"}
    broken = [promise for promise in outcome["promises"] if promise["verdict"] == "broken"]
    assert drill.returncode == (FAILED if broken else 0), err

    # The report needs nothing else: no address in it but the name space of XML, and it holds the figures.
    page = (out_dir / "report.html").read_text()
    own = re.sub(r"<script>/\*!\s*\* Chart\.js.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=", own)
    assert "fetch(" not in own and "XMLHttpRequest" not in own and "@import" not in own and "url(" not in own
    assert "Chart.js" in page and "ring+dual-read" in page
    assert json.loads((out_dir / "results.json").read_text())["strategies"][0]["name"] == "modulo"
    picture = (out_dir / "drill.svg").read_text()
    assert picture.count("<polyline") == 3 * len(STRATEGIES) and "prefers-color-scheme: dark" in picture
    assert list(scratch.iterdir()) == []


def test_an_interrupt_keeps_what_was_measured(tmp_path):
    drill = start(tmp_path, "--seconds", "60", "--strategy", "modulo", "--out", str(tmp_path / "out"))
    time.sleep(4)
    drill.send_signal(signal.SIGINT)
    out, err = drill.communicate(timeout=60)
    assert drill.returncode == FAILED
    assert "interrupted" in out + err
    if (tmp_path / "out" / "results.json").exists():  # It had begun to measure.
        outcome = json.loads((tmp_path / "out" / "results.json").read_text())
        assert outcome["interrupted"] and not outcome["strategies"][0]["complete"]
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_bad_usage_names_the_value(tmp_path):
    for arguments, part in [(["--from", "5", "--to", "4"], "from 5 to 4"), (["--strategy", "magic"], "magic"),
                            (["--scenario", "kill", "--from", "2"], "from 2"), (["--origin", "oracle"], "oracle"),
                            (["--qps", "0"], "qps"), (["--seconds", "1"], "seconds")]:
        done = run("drill", *arguments, check=BAD_USAGE)
        assert part in done.stderr
    trace = tmp_path / "trace.txt"
    trace.write_text("GET a\nPUT b\n")
    done = run("drill", "--trace", trace, check=FAILED)
    assert f"{trace}:2" in done.stderr
