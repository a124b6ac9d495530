"""SCAN through a proxy while a whole resize goes by: every key that is there all the time comes exactly once."""
import threading
from collections import Counter

import pytest
import redis

FILLED = 4000
SLOW = {"move_keys_per_second": 800, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}


class Scans(threading.Thread):
    """One whole scan after another, until told to stop; each with another COUNT."""

    def __init__(self, client, expected, pause):
        super().__init__()
        self.client, self.expected, self.pause = client, expected, pause
        self.stop, self.done, self.wrong = threading.Event(), [], []

    def run(self):
        counts = [7, 50, 200, 10, 1000]
        while not self.stop.is_set() or not self.done:
            cursor, given, steps = 0, Counter(), 0
            count = counts[len(self.done) % len(counts)]
            while True:
                try:
                    cursor, keys = self.client.scan(cursor, count=count)
                except redis.RedisError as error:
                    self.wrong.append(error)
                    return
                given.update(keys)
                steps += 1
                if cursor == 0:
                    break
                if self.pause:
                    self.stop.wait(self.pause)
            self.done.append(steps)
            missed = [key for key in self.expected if key not in given]
            twice = [key for key, times in given.items() if times > 1]
            ours = [key for key in given if key.startswith(b"rs:")]
            if missed or twice or ours:
                self.wrong.append((count, len(missed), missed[:3], len(twice), twice[:3], ours))


def scan_during(cluster, resize):
    cluster.fill(FILLED)
    expected = {f"fill:{i}".encode() for i in range(FILLED)}
    # Several at a time: some finish many scans within the resize, one takes about as long as the whole of it.
    scans = [Scans(cluster.client(i % 2), expected, pause) for i, pause in enumerate((0, 0.001, 0.01, 0.05))]
    for scan in scans:
        scan.start()
    try:
        resize()
    finally:
        for scan in scans:
            scan.stop.set()
    for scan in scans:
        scan.join(timeout=60)
        assert not scan.is_alive(), "the scan does not end"
        assert not scan.wrong, scan.wrong
        assert scan.done
    return scans


@pytest.mark.parametrize("limits", [None, SLOW])
def test_growth(make_cluster, limits):
    cluster = make_cluster(members=4, proxies=2).start()
    cluster.add_member()
    five = cluster.write_spec(limits=limits)
    scans = scan_during(cluster, lambda: cluster.resize_start(five))
    cluster.assert_placed(five)
    assert sum(len(scan.done) for scan in scans) >= 4


def test_shrink(make_cluster):
    cluster = make_cluster(members=5, proxies=2).start()
    four = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"], limits=SLOW)
    scan_during(cluster, lambda: cluster.resize_start(four))
    cluster.assert_placed(four)


def test_rollback(make_cluster):
    cluster = make_cluster(members=4, proxies=2).start()
    four = cluster.spec
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)

    def there_and_back():
        cluster.resize_start(five, wait=False)
        cluster.wait_status("some moved", lambda s: s["keys_moved"] > 200)
        cluster.rollback()
        cluster.wait_resized()
    scan_during(cluster, there_and_back)
    cluster.assert_placed(four)


def test_keys_and_randomkey_during_a_resize(make_cluster):
    """KEYS shows each key once, however many members have it just then; RANDOMKEY never says that there is none."""
    cluster = make_cluster(members=4, proxies=1).start()
    cluster.fill(FILLED)
    expected = {f"fill:{i}".encode() for i in range(FILLED)}
    cluster.add_member()
    cluster.resize_start(cluster.write_spec(limits=SLOW), wait=False)
    client, looks = cluster.client(), 0
    while cluster.status()["state"] in ("preparing", "running"):
        keys = client.keys("*")
        assert len(keys) == len(set(keys)) and set(keys) == expected
        assert client.randomkey() in expected
        looks += 1
    assert looks > 3
    cluster.wait_resized()


def test_flush_needs_the_flag_and_no_resize(make_cluster):
    cluster = make_cluster(members=4, proxies=1).start()
    cluster.fill(200)
    with pytest.raises(redis.ResponseError, match="--allow-flush"):
        cluster.client().flushall()
    cluster.add_proxy("--allow-flush")
    allowing = cluster.client(1)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec(limits={**SLOW, "move_keys_per_second": 50}), wait=False)
    cluster.wait_status("running", lambda s: s["state"] == "running" and s["keys_moved"] > 0)
    with pytest.raises(redis.ResponseError, match="resize is under way"):
        allowing.flushall()
    cluster.wait_resized()
    assert allowing.flushall()
    assert allowing.dbsize() == 0
    assert all(member.keys() <= {b"rs:stamp"} for member in cluster.members)


def test_a_member_that_joins_has_the_scripts(make_cluster):
    """While it joins, too: no NOSCRIPT, and each call counts once."""
    cluster = make_cluster(members=4, proxies=1).start()
    client = cluster.client()
    script = client.script_load("return redis.call('INCR', KEYS[1])")
    names = [f"counter:{i}" for i in range(400)]
    for name in names:
        assert client.evalsha(script, 1, name) == 1
    cluster.add_member()
    five = cluster.write_spec(limits={**SLOW, "move_keys_per_second": 100})
    cluster.resize_start(five, wait=False)
    rounds = 1
    while rounds == 1 or cluster.status()["state"] in ("preparing", "running"):
        rounds += 1
        for name in names:
            assert client.evalsha(script, 1, name) == rounds
    assert rounds > 2
    cluster.wait_resized()
    cluster.assert_placed(five)
    assert len(cluster.census()["cache-5"]) > 30, "some of them are on the new member"
