"""What steers the mover while it works, end to end: the keys that clients ask for most go first, and while the origin is
asked too often everything goes slower."""
import threading
import time

import redis

from harness.process import wait_until

HOT = 8


class Asker(threading.Thread):
    """Asks a proxy for the same keys, over and over."""

    def __init__(self, cluster, keys, pause):
        super().__init__(daemon=True)
        self.client, self.keys, self.pause = cluster.client(), list(keys), pause
        self.found, self.errors, self._over = 0, [], threading.Event()

    def run(self):
        while not self._over.wait(self.pause):
            pipeline = self.client.pipeline(transaction=False)
            for key in self.keys:
                pipeline.get(key)
            try:
                self.found += sum(value is not None for value in pipeline.execute())
            except redis.RedisError as error:
                self.errors.append(str(error))

    def end(self):
        self._over.set()
        self.join()
        self.client.connection_pool.disconnect()
        return self.errors


def test_hot_keys_move_first(make_cluster):
    cluster = make_cluster(members=3, proxies=2)
    two = cluster.write_spec(members=["cache-1", "cache-2"])
    cluster.start(two)
    written = cluster.fill(4000)
    three = cluster.write_spec()
    before, after = cluster.owners(written, two), cluster.owners(written, three)
    moving = [key for key in written if before[key] != after[key]]
    assert len(moving) > 1000
    hot = set(moving[::len(moving) // HOT][:HOT])
    new = cluster.members[2]
    asker = Asker(cluster, hot, 0.005)
    asker.start()
    for member in cluster.members:
        member.hang_up()
    cluster.cli("resize", "start", "--spec", three, "--yes", "--steps", "100", "--rate", "60", check=0)
    cluster.wait_status("moving", lambda s: s["keys_moved"] > 0)

    def there():
        keys = new.keys()
        return keys if hot <= keys else None
    # By chance all eight would come within the first half once in 256 times. Reads alone pull nothing.
    moved = wait_until("the hot ones are on the new member", there, timeout=60, interval=0.1) & set(moving)
    assert not asker.end() and asker.found > 0
    print(f"the {HOT} hot keys were among the first {len(moved)} of {len(moving)}")
    assert len(moved) < len(moving) / 2
    cluster.cli("resize", "set-rate", "100000", check=0)
    cluster.wait_resized()
    cluster.assert_placed(three)
    cluster.assert_filled(written)


def test_the_origin_holds_the_mover_back(make_cluster):
    cluster = make_cluster(members=2, proxies=2)
    limits = {"move_keys_per_second": 1500, "move_latency_ms": 0, "origin_misses_per_second": 40}
    one = cluster.write_spec(members=["cache-1"], limits=limits)
    cluster.start(one)
    written = cluster.fill(10_000)
    two = cluster.write_spec(limits=limits)
    asker = Asker(cluster, [f"nothing:{i}" for i in range(20)], 0.02)
    asker.start()
    time.sleep(1)
    cluster.resize_start(two, wait=False, steps="100")
    held = cluster.wait_status("held back", lambda s: s["held_back"])
    assert "the origin is asked too often" in held["held_back"][0] and held["rate_in_force"] < 1500, held
    assert not asker.end() and asker.found == 0
    status = cluster.wait_status("free again, or done", lambda s: not s["held_back"])
    assert status["last_error"] == "", status
    cluster.wait_resized()
    cluster.assert_placed(two)
    cluster.assert_filled(written)

