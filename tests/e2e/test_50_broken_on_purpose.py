"""The checkers check: a protocol broken by a built-in switch must not pass. Debug builds only.

Under load the history checker sees the coarse ones. The others need a race of a few microseconds, or an expiry
between two steps of one transfer: the deterministic tests named here force it.
"""
import random
import subprocess
import time

import pytest

from harness.cluster import RINGSHIFT_DEBUG
from harness.process import wait_until

ATTEMPTS = 4
FOUR = ["--types", "register,counter,hash,expiry"]  # Fewer types: more clients meet on each key.
# Switch -> the test program that catches it, in a test whose name has the switch in it.
CAUGHT_BY_DETERMINISTIC_TESTS = {
    "no_hold": "unit_resize",
    "restore_without_token": "unit_transfer",
    "no_seal_after_busy": "unit_transfer",
    "compare_and_delete_seal": "unit_transfer",
}

needs_debug_build = pytest.mark.skipif(not RINGSHIFT_DEBUG.exists(), reason=f"{RINGSHIFT_DEBUG} is not built")


def grow_under_chaos(cluster, dice):
    """One growth with a hot load and a proxy that hangs at the wrong moments. The load's judgement."""
    cluster.add_member()
    spec = cluster.write_spec()
    with cluster.history(rate=9000, keys=40, clients=16, settle=0.8, options=FOUR) as load:
        cluster.resize_start(spec, wait=False, steps="50,100")
        for _ in range(4):
            time.sleep(dice.uniform(0, 0.15))
            proxy = dice.choice(cluster.proxies)
            proxy.pause()
            time.sleep(dice.uniform(0.02, 0.2))
            proxy.resume()
        cluster.wait_resized()
    return load


def grow_behind_a_hanging_proxy(cluster, dice):
    """Two members become four while one proxy hangs that has acknowledged PREP: it wakes with commands of its clients
    unread and a topology of before, and about half of these are for keys that have moved. The load's judgement.
    """
    cluster.add_member()
    cluster.add_member()
    spec = cluster.write_spec()
    with cluster.history(rate=9000, keys=40, clients=64, settle=0.8, options=FOUR) as load:
        proxy = dice.choice(cluster.proxies)
        seen = proxy.errors().count("info topology ")
        cluster.resize_start(spec, wait=False, steps="100")
        wait_until("PREP is seen", lambda: proxy.errors().count("info topology ") > seen, interval=0.005)
        time.sleep(dice.uniform(0, 0.2))
        proxy.pause()
        try:
            time.sleep(2)
        finally:
            proxy.resume()
        cluster.wait_resized()
    return load


# Switch -> the members it begins with, and what brings it to light.
CAUGHT_UNDER_LOAD = {"no_hold": (2, grow_behind_a_hanging_proxy), "write_without_pull": (4, grow_under_chaos)}


@needs_debug_build
@pytest.mark.parametrize("switch", CAUGHT_UNDER_LOAD)
def test_the_history_checker_catches(make_cluster, switch):
    dice = random.Random(seed := random.SystemRandom().randrange(1 << 32))
    print(f"dice seed {seed}")
    members, grow = CAUGHT_UNDER_LOAD[switch]
    for _ in range(ATTEMPTS):
        cluster = make_cluster(members=members, proxies=2, binary=RINGSHIFT_DEBUG, env={"RINGSHIFT_BREAK": switch}).start()
        cluster.fill(2000)
        load = grow(cluster, dice)
        if load.judgement["violations"]:
            print(load.violations())
            return
        cluster.stop()
    pytest.fail(f"{switch} went unnoticed in {ATTEMPTS} runs")


@needs_debug_build
@pytest.mark.parametrize("switch", CAUGHT_UNDER_LOAD)
def test_the_same_with_the_protocol_whole_is_clean(make_cluster, switch):
    """Otherwise the test above proves nothing."""
    dice = random.Random(seed := random.SystemRandom().randrange(1 << 32))
    print(f"dice seed {seed}")
    members, grow = CAUGHT_UNDER_LOAD[switch]
    cluster = make_cluster(members=members, proxies=2, binary=RINGSHIFT_DEBUG).start()
    cluster.fill(2000)
    grow(cluster, dice).assert_clean(errors=False)


@needs_debug_build
@pytest.mark.parametrize("switch", CAUGHT_BY_DETERMINISTIC_TESTS)
def test_a_deterministic_test_exists_and_passes(switch):
    program = RINGSHIFT_DEBUG.parent / CAUGHT_BY_DETERMINISTIC_TESTS[switch]
    if not program.exists():
        pytest.skip(f"{program} is not built")
    camel = "".join(word.capitalize() for word in switch.split("_"))
    done = subprocess.run([program, f"--gtest_filter=*{camel}*:*{switch}*"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 tests from" not in done.stdout, f"{program.name} has no test named after {switch}"
    assert "[  PASSED  ]" in done.stdout


@needs_debug_build
def test_an_unknown_switch_is_refused():
    done = subprocess.run([RINGSHIFT_DEBUG, "proxy", "--spec", "/nonexistent", "--listen", "127.0.0.1:0"], text=True,
                          env={"RINGSHIFT_BREAK": "nosuch", "PATH": "/usr/bin:/bin"}, capture_output=True, timeout=20)
    assert done.returncode != 0
