"""Resizes under load through two proxies. What each one must leave behind: a clean history; every key on its right
member and nowhere else; none of our own keys but the stamp; values and times to live as they were."""
import time

import pytest

from harness.cluster import FAILED

FILLED, TTL_EVERY = 6000, 3
SLOW = {"move_keys_per_second": 400, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}


def resize_under_load(cluster, spec, **options):
    written = cluster.fill(FILLED, ttl_every=TTL_EVERY)
    with cluster.history() as load:
        cluster.resize_start(spec, **options)
    load.assert_clean()
    cluster.assert_placed(spec)
    cluster.assert_filled(written, ttl_every=TTL_EVERY)
    return cluster.status()


def test_growth(cluster):
    cluster.add_member()
    five = cluster.write_spec()
    done = resize_under_load(cluster, five)
    assert done["state"] in ("finished", "idle")
    assert len(cluster.members[4].keys()) > 0.15 * FILLED
    # Nothing moved that need not: a fifth of the filled keys and of the load's few.
    assert done["keys_moved"] <= 0.25 * (FILLED + 2000)
    # A program that starts now finds the new topology.
    late = cluster.add_proxy()
    assert late.alive() and cluster.client(2).get("fill:1") is not None


def test_growth_in_the_steps_asked_for(cluster):
    cluster.add_member()
    resize_under_load(cluster, cluster.write_spec(), steps="25,100")
    assert cluster.status()["steps"] in (2, [25, 100])


def test_shrink(make_cluster):
    cluster = make_cluster(members=5, proxies=2).start()
    four = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"])
    resize_under_load(cluster, four)
    assert cluster.members[4].keys() <= {b"rs:stamp"}


def test_new_weights(cluster):
    resize_under_load(cluster, cluster.write_spec(weights={"cache-1": 2.0}))
    sizes = {member: len(keys) for member, keys in cluster.census().items()}
    assert sizes["cache-1"] > 1.5 * sizes["cache-2"], sizes


def test_modulo_to_ring(make_cluster):
    cluster = make_cluster(members=4, proxies=2)
    cluster.start(cluster.write_spec(placement={"algorithm": "modulo", "hash": "xxh3"}))
    resize_under_load(cluster, cluster.write_spec())


def test_one_resize_after_another(cluster):
    """Grow, then shrink to where it was: nothing of the first is left to disturb the second."""
    written = cluster.fill(FILLED)
    four = cluster.spec
    cluster.add_member()
    with cluster.history() as load:
        cluster.resize_start(cluster.write_spec())
        cluster.resize_start(four)
    load.assert_clean()
    cluster.assert_placed(four)
    cluster.assert_filled(written)


def test_rollback_half_way(cluster):
    written = cluster.fill(FILLED, ttl_every=TTL_EVERY)
    four = cluster.spec
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    with cluster.history() as load:
        cluster.resize_start(five, wait=False)
        cluster.wait_status("a third moved", lambda s: s["keys_moved"] > 400)
        assert cluster.status()["state"] == "running"
        cluster.rollback()
        cluster.wait_resized()
    load.assert_clean()
    cluster.assert_placed(four)
    cluster.assert_filled(written, ttl_every=TTL_EVERY)
    assert cluster.members[4].keys() <= {b"rs:stamp"}
    # The cluster is as good as before: the same growth, once more.
    cluster.resize_start(cluster.write_spec())
    cluster.assert_filled(written)


def test_pause_and_resume(cluster):
    written = cluster.fill(FILLED)
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    with cluster.history() as load:
        cluster.resize_start(five, wait=False)
        cluster.wait_status("some moved", lambda s: s["keys_moved"] > 100)
        cluster.pause()
        paused = cluster.wait_status("paused", lambda s: s["state"] == "paused")

        def moved():  # Of keys that no client asks for: the load has its own.
            return sum(key.startswith(b"fill:") for key in cluster.members[4].keys())
        before = moved()
        time.sleep(1.5)
        assert moved() == before, "the mover rests"
        assert cluster.status()["step"] == paused["step"]
        cluster.resume()
        cluster.wait_resized()
    load.assert_clean()
    cluster.assert_placed(five)
    cluster.assert_filled(written)


def test_a_second_resize_waits_its_turn(cluster):
    cluster.fill(FILLED)
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    cluster.resize_start(five, wait=False)
    cluster.wait_status("running", lambda s: s["state"] in ("preparing", "running"))
    refused = cluster.resize_start(cluster.write_spec(weights={"cache-1": 3.0}), wait=False, check=FAILED)
    assert refused.stderr.strip()
    cluster.rollback()
    cluster.wait_resized()
    cluster.assert_placed(cluster.spec)


def test_keys_of_every_type_move_whole(cluster):
    r = cluster.client()
    for i in range(200):
        r.hset(f"hash:{i}", mapping={f"f{n}": n for n in range(20)})
        r.rpush(f"list:{i}", *range(20))
        r.sadd(f"set:{i}", *range(20))
        r.zadd(f"zset:{i}", {f"m{n}": n for n in range(20)})
        r.xadd(f"stream:{i}", {"a": i}, id="1-1")
        r.setbit(f"bits:{i}", i, 1)
        r.pfadd(f"hll:{i}", *range(20))
    cluster.add_member()
    five = cluster.write_spec()
    cluster.resize_start(five)
    cluster.assert_placed(five)
    for i in range(200):
        assert len(r.hgetall(f"hash:{i}")) == 20
        assert r.lrange(f"list:{i}", 0, -1) == [str(n).encode() for n in range(20)]
        assert r.scard(f"set:{i}") == 20 and r.zscore(f"zset:{i}", "m19") == 19
        assert r.xlen(f"stream:{i}") == 1 and r.getbit(f"bits:{i}", i) == 1 and r.pfcount(f"hll:{i}") == 20


@pytest.mark.parametrize("broken", ["down", "foreign"])
def test_a_resize_to_an_unfit_member_is_refused_and_changes_nothing(cluster, broken):
    written = cluster.fill(500)
    member = cluster.add_member()
    five = cluster.write_spec()
    if broken == "down":
        member.process.kill()
    else:
        member.client.select(1)
        member.client.set("theirs", "1")  # Keys in another database would be left behind.
    done = cluster.resize_start(five, wait=True, check=None, timeout=60)
    if done.returncode == 0 and broken == "foreign":
        pytest.fail("keys in database 1 went unnoticed")
    assert done.returncode == FAILED and "cache-5" in done.stdout + done.stderr
    cluster.assert_filled(written)
