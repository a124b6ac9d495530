"""Growth while parts of the system die, hang and come back. Whatever is killed: no acknowledged write is lost, nothing
deleted returns, no old value is read; and the resize ends, with every key in its place."""
import random
import time

import pytest

FILLED = 6000
# A few seconds long, so that faults hit it in the middle.
SLOW = {"move_keys_per_second": 400, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}
# Steps end at 1, 10, 50 and 100 % of about 1,200 keys that move: so many are moved a second before the third ends.
MIDST_OF_THE_THIRD_STEP = 200


@pytest.fixture
def growth(make_cluster):
    """Three proxies, a filled cluster, a fifth member, and the spec that includes it."""
    cluster = make_cluster(members=4, proxies=3).start()
    cluster.written = cluster.fill(FILLED)
    cluster.add_member()
    cluster.five = cluster.write_spec(limits=SLOW)
    cluster.random = random.Random(seed := random.SystemRandom().randrange(1 << 32))
    print(f"fault seed {seed}")
    return cluster


def settle(cluster, load, spec=None):
    load.assert_clean(errors=False)
    cluster.assert_placed(spec or cluster.five)
    cluster.assert_filled(cluster.written)


def begun(cluster, keys=50):
    cluster.resize_start(cluster.five, wait=False)
    return cluster.wait_status("under way", lambda s: s["keys_moved"] > keys)


def test_kill_a_proxy(growth):
    with growth.history(ttl_slack_ms=2500) as load:
        begun(growth)
        growth.proxies[2].kill()
        time.sleep(growth.random.uniform(0.2, 1.0))
        growth.proxies[2].start()
        growth.wait_resized()
    settle(growth, load)


def test_kill_proxies_again_and_again(growth):
    with growth.history(ttl_slack_ms=2500) as load:
        begun(growth, 0)
        for _ in range(5):
            proxy = growth.random.choice(growth.proxies)
            proxy.kill()
            time.sleep(growth.random.uniform(0.05, 0.6))
            proxy.start()
            proxy.wait_ready()
        growth.wait_resized()
    settle(growth, load)


def test_kill_the_controller(growth):
    with growth.history(ttl_slack_ms=2500) as load:
        begun(growth)
        for _ in range(3):
            growth.controller.kill()
            time.sleep(growth.random.uniform(0.1, 0.8))
            growth.start_controller()
            time.sleep(growth.random.uniform(0.3, 1.5))
        growth.wait_resized()
    settle(growth, load)


def test_a_proxy_that_hangs_across_the_barrier(growth):
    """It holds connections, commands in flight and an old view of the world; the others must not wait for ever, and
    when it goes on it must not act on what it knew."""
    with growth.history(ttl_slack_ms=3500) as load:
        growth.proxies[1].pause()
        growth.resize_start(growth.five, wait=False)
        growth.wait_status("past the barrier without it", lambda s: s["keys_moved"] > 20, timeout=40)
        growth.proxies[1].resume()
        growth.wait_resized()
    settle(growth, load)


def test_a_proxy_that_hangs_now_and_then(growth):
    with growth.history(ttl_slack_ms=3500) as load:
        begun(growth, 0)
        for _ in range(3):
            proxy = growth.random.choice(growth.proxies)
            proxy.pause()
            time.sleep(growth.random.uniform(0.5, 2.5))
            proxy.resume()
            time.sleep(0.3)
        growth.wait_resized()
    settle(growth, load)


def test_kill_the_registry(growth):
    """An outage of the registry never stops traffic; it only stops change.

    In the midst of a step: keys of one that is in HOLD in that moment wait until the registry is back.
    """
    with growth.history(ttl_slack_ms=2500) as load:
        begun(growth, MIDST_OF_THE_THIRD_STEP)
        growth.registry.kill()
        for i in range(50):
            assert growth.client(i % 3).get(f"fill:{i}") is not None
        time.sleep(growth.random.uniform(0.5, 2.0))
        growth.registry.start()
        growth.registry.wait_ready()
        growth.wait_resized()
    settle(growth, load)


def test_kill_proxy_and_controller_during_a_rollback(growth):
    four = growth.spec
    with growth.history(ttl_slack_ms=2500) as load:
        begun(growth, 300)
        growth.rollback()
        growth.proxies[0].kill()
        growth.controller.kill()
        time.sleep(growth.random.uniform(0.1, 0.6))
        growth.start_controller()
        growth.proxies[0].start()
        growth.wait_resized()
    settle(growth, load, four)
    assert growth.members[4].keys() <= {b"rs:stamp"}


def test_connections_to_members_are_cut(growth):
    """CLIENT KILL of everything, on every member, again and again."""
    with growth.history(ttl_slack_ms=2500) as load:
        begun(growth, 0)
        for _ in range(10):
            for member in growth.members:
                member.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(growth.random.uniform(0.05, 0.3))
        growth.wait_resized()
    settle(growth, load)


def test_the_new_member_hangs_for_a_while(growth):
    with growth.history(ttl_slack_ms=3500) as load:
        begun(growth)
        growth.members[4].process.pause()
        time.sleep(growth.random.uniform(0.5, 1.5))
        # Keys that stay are served as ever.
        owners = growth.owners(list(growth.written)[:400], growth.five)
        for key in [key for key, member in owners.items() if member != "cache-5"][:50]:
            assert growth.client(0, socket_timeout=2).get(key) == growth.written[key]
        growth.members[4].process.resume()
        growth.wait_resized()
    settle(growth, load)
