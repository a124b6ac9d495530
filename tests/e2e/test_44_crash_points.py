"""The controller dies, as by kill -9, between any two steps of a resize; and what proxies do that lose sight of the
registry. Debug builds of the controller have the points (src/transfer/faults.h)."""
import base64
import json
import os
import random
import re
import time
import urllib.request

import pytest
import redis

from harness.cluster import RINGSHIFT_DEBUG, ROOT
from harness.process import wait_until

long_one = pytest.mark.skipif(not os.environ.get("RINGSHIFT_LONG"), reason="long: set RINGSHIFT_LONG=1")
# In the order of a resize; ":2" in its second step.
POINTS = ["prep_fenced", "prep_purged", "hold_stamped", "hold_published:2", "hold_fenced", "gates_open:2", "dual_published",
          "mover_clean:2", "gates_done", "new_published:2", "finishing", "finished"]
CHOSEN = 3  # Of them, unless RINGSHIFT_LONG is set.


def test_the_program_has_these_points():
    """Only three of them are passed by in a short run: one that went would be missed late."""
    source = "".join(path.read_text() for path in (ROOT / "src" / "resize").glob("*.cpp"))
    assert set(re.findall(r'crash_point\("(\w+)"\)', source)) == {point.split(":")[0] for point in POINTS}


def give_up_the_lock(cluster):
    """What the dead controller's lease does within 5 s."""
    def ask(path, body):
        request = urllib.request.Request(cluster.registry_url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)
    key = base64.b64encode(f"/ringshift/default/{cluster.name}/controller".encode()).decode()
    for kv in ask("/v3/kv/range", {"key": key}).get("kvs", []):
        ask("/v3/lease/revoke", {"ID": kv["lease"]})


@pytest.mark.skipif(not RINGSHIFT_DEBUG.exists(), reason=f"{RINGSHIFT_DEBUG} is not built")
def test_the_controller_dies_between_any_two_steps(make_cluster):
    points = POINTS if os.environ.get("RINGSHIFT_LONG") else random.sample(POINTS, CHOSEN)
    print("points:", points)
    cluster = make_cluster(members=4, proxies=2).start()
    written = cluster.fill(1500)
    cluster.add_member()
    five, four = cluster.write_spec(), cluster.write_spec(members=[f"cache-{i}" for i in range(1, 5)])
    heir = cluster.controller
    with cluster.history(rate=1500, ttl_slack_ms=3500) as load:
        for number, point in enumerate(points):
            target = four if number % 2 else five
            heir.end()
            doomed = cluster._server(f"controller-{point.replace(':', '-')}", "controller", "--registry",  # noqa: SLF001
                                     cluster.registry_url, "--cluster", cluster.name,
                                     env={"RINGSHIFT_CRASH_AT": point})
            doomed.command[0] = str(RINGSHIFT_DEBUG)
            doomed.start()
            doomed.wait_ready()
            cluster.resize_start(target, wait=False, steps="30,100", check=None)
            wait_until(lambda: f"it dies at {point}: {doomed.tail()}", lambda: not doomed.alive(), timeout=40)
            assert doomed.popen.returncode == -9, doomed.tail()
            give_up_the_lock(cluster)
            heir.start()
            heir.wait_ready()
            cluster.wait_status(f"over after {point}", lambda s: s["state"] in ("idle", "finished"))
            wait_until("the topology has no resize",
                       lambda: "resize" not in cluster.cli("topology", "get", check=0).stdout, timeout=30)
            cluster.assert_placed(target)
    load.assert_clean(errors=False)
    cluster.assert_filled(written)


@long_one
def test_the_registry_is_away_for_a_minute(make_cluster):
    """No step is taken; what is in DUAL goes on; everybody is served all the time."""
    cluster = make_cluster(members=4, proxies=2).start()
    written = cluster.fill(6000)
    cluster.add_member()
    five = cluster.write_spec(limits={"move_keys_per_second": 100})
    with cluster.history(rate=1500, ttl_slack_ms=3500) as load:
        cluster.resize_start(five, wait=False)
        cluster.wait_status("in its third step", lambda s: s["keys_moved"] > 160)
        cluster.registry.kill()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for i in range(20):
                assert cluster.client(i % 2).get(f"fill:{random.randrange(6000)}") is not None
            time.sleep(0.2)
        cluster.registry.start()
        cluster.registry.wait_ready()
        cluster.cli("resize", "set-rate", "20000", check=0)
        cluster.wait_resized()
    load.assert_clean(errors=False)
    cluster.assert_placed(five)
    cluster.assert_filled(written)


def cut_members(cluster):
    for member in cluster.members:
        member.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        member.hang_up()


def test_the_stamp_as_the_look(make_cluster):
    """RESIZE.md, I4. The registry is away and connections to members drop: a proxy whose snapshot is that of the members'
    stamps serves again at once; one that slept while a step passed does not, until it has asked the registry."""
    cluster = make_cluster(members=3, proxies=2)
    cluster.controller_options = ["--fence-timeout-ms", "500"]
    cluster.start()
    written = cluster.fill(600)
    cluster.resize_start(cluster.write_spec(weights={"cache-1": 1.5}), steps="100")
    cluster.registry.kill()
    cut_members(cluster)
    for number in range(2):
        client = cluster.client(number)
        assert all(client.get(key) == value for key, value in written.items()), "no step passed: served at once"
    cluster.registry.start()
    cluster.registry.wait_ready()
    cluster.proxies[1].pause()
    cluster.resize_start(cluster.write_spec(weights={"cache-1": 2.0}), steps="100")
    for i in range(300):
        written[f"fill:{i}".encode()] = b"new"
        cluster.client(0).set(f"fill:{i}", "new")
    cluster.registry.kill()
    cluster.proxies[1].resume()
    asleep = cluster.client(1)
    pipeline = asleep.pipeline(transaction=False)
    for i in range(300):
        pipeline.get(f"fill:{i}")
    refused = pipeline.execute(raise_on_error=False)
    # Or it read first what the registry had sent before it died: then it knows the step, and answers what is new.
    assert all(one == b"new" or (isinstance(one, redis.ResponseError) and "not executed" in str(one))
               for one in refused), refused[:5]
    cut_members(cluster)
    assert all(cluster.client(0).get(key) == value for key, value in written.items()), "the other one serves"
    cluster.registry.start()
    cluster.registry.wait_ready()

    def awake():
        try:
            return [asleep.get(key) for key in written]
        except redis.RedisError:
            return None
    assert wait_until("it serves again", awake, timeout=30) == list(written.values())
