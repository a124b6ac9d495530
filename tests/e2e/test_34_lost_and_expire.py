"""Members that are gone for good are taken out in steps that the origin bears; a healthy one that leaves is emptied
onto all others; and resizes in which old copies run out instead of being moved. Where a promise is made to clients,
the history checker watches it."""
import socket
import threading
import time

import redis

from harness.cluster import BAD_USAGE, FAILED
from harness.process import wait_until

FILLED = 4000
# Some seconds long, so that a death hits it in the middle.
SLOW = {"move_keys_per_second": 120, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}


def without(cluster, *lost, **more):
    return cluster.write_spec(members=[m.id for m in cluster.members if m.id not in lost], **more)


def start(cluster, spec, *options, check=0, timeout=60):
    for member in cluster.members:
        member.hang_up()
    return cluster.cli("resize", "start", "--yes", "--spec", spec, *options, check=check, timeout=timeout)


def values(cluster, keys, proxy=0):
    """Key -> value, by single GETs in one pipeline; an error stands where there is one."""
    pipeline = cluster.client(proxy).pipeline(transaction=False)
    for key in keys:
        pipeline.get(key)
    return dict(zip(keys, pipeline.execute(raise_on_error=False)))


def test_a_dead_member_is_given_up_as_the_origin_bears_it(cluster):
    """Its keys answer errors until their slices have had their turn; then they are misses, which the next write fills,
    and nobody ever sees what it had. All other keys are served as ever."""
    written = cluster.fill(FILLED)
    owners = cluster.owners(written, cluster.spec)
    lost = [key for key in written if owners[key] == "cache-2"]
    others = [key for key in written if owners[key] != "cache-2"]
    assert len(lost) > FILLED / 8
    dead = cluster.members[1]
    dead.process.kill()
    three = without(cluster, "cache-2")
    assert "cache-2" in start(cluster, three, check=FAILED).stderr
    assert "--origin-budget" in start(cluster, three, "--lost", "cache-2", check=BAD_USAGE).stderr

    stop = threading.Event()

    nothing = [f"none:{n}".encode() for n in range(20)]
    elsewhere = next(key for key, owner in cluster.owners(nothing, cluster.spec).items() if owner != "cache-2")
    client = cluster.client()

    def miss():
        while not stop.is_set():
            client.get(elsewhere)
            time.sleep(0.002)  # Hundreds a second.

    missing = threading.Thread(target=miss)
    missing.start()
    try:
        start(cluster, three, "--lost", "cache-2", "--origin-budget", "20", "--steps", "50,100")
        waiting = cluster.wait_status("waits for the origin", lambda s: "the origin" in s["waits_for"])
        assert waiting["step"] == 1 and waiting["lost"] == ["cache-2"] and waiting["misses_per_second"] > 20
        assert "the next step waits for the origin" in cluster.cli("resize", "status", check=0).stdout
        first = values(cluster, lost[:20])
        assert all(isinstance(answer, redis.RedisError) for answer in first.values()), first
    finally:
        stop.set()
        missing.join()
    cluster.wait_status("half of its slices given up", lambda s: s["step"] == 2 or s["state"] == "finished", 30)
    # It comes back with its old data, as no machine that is lost should. Nobody looks at it any more.
    dead.start()
    dead.process.expected_dead = False
    pipeline = dead.client.pipeline(transaction=False)
    for key in lost:
        pipeline.set(key, "old")
    pipeline.execute()
    cluster.wait_resized()
    for proxy in (0, 1):
        assert set(values(cluster, lost, proxy).values()) == {None}
        assert values(cluster, others, proxy) == {key: written[key] for key in others}
    r = cluster.client(1)
    for key in lost[:200]:
        assert r.set(key, b"new")
    spread = cluster.owners(lost[:200], three)
    assert set(spread.values()) == {"cache-1", "cache-3", "cache-4"}, "its load spreads over all others"
    assert set(values(cluster, lost[:200], 0).values()) == {b"new"}
    # Back in, it brings nothing from its earlier life.
    start(cluster, cluster.write_spec(), "--wait")
    found = values(cluster, lost)
    assert {found[key] for key in lost[:200]} == {b"new"} and {found[key] for key in lost[200:]} == {None}


class Relay:
    """A TCP relay to the registry that can be cut: nothing passes, and no connection ends."""

    def __init__(self, url):
        self.target = url.removeprefix("http://").rsplit(":", 1)
        self.passing = threading.Event()
        self.passing.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.target[0], int(self.target[1])))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.passing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_a_cut_off_proxy_does_not_serve_what_came_back(make_cluster):
    """It knows nothing of the first resize there ever was, and the member that was given up comes back with its old
    data and without a stamp, as if there had been none. Its process is another, so the proxy asks the registry."""
    cluster = make_cluster(members=3, proxies=1).start()
    direct, relay = cluster.registry_url, Relay(cluster.registry_url)
    cluster.registry_url = relay.url
    cluster.add_proxy()
    cluster.registry_url = direct
    written = cluster.fill(300)
    lost = [key for key, owner in cluster.owners(written, cluster.spec).items() if owner == "cache-2"]
    assert values(cluster, lost, 1) == {key: written[key] for key in lost}
    relay.passing.clear()
    dead = cluster.members[1]
    dead.process.kill()
    start(cluster, without(cluster, "cache-2"), "--lost", "cache-2", "--origin-budget", "0", "--steps", "100")
    cluster.wait_resized()
    for key in lost:
        cluster.client().set(key, b"new")
    dead.start()
    dead.process.expected_dead = False
    for key in lost:
        dead.client.set(key, b"old")
    time.sleep(1.5)  # Time for it to connect.
    seen = values(cluster, lost[:20], 1)
    assert all(isinstance(value, redis.RedisError) for value in seen.values()), seen
    relay.passing.set()
    wait_until("it knows", lambda: set(values(cluster, lost, 1).values()) == {b"new"}, 30)
    relay.listener.close()


def test_a_member_dies_in_the_midst_and_is_given_up(make_cluster):
    """It only gives keys, so the resize is finished without it, and cannot go back. All that others had is there."""
    cluster = make_cluster(members=4, proxies=2).start()
    written = cluster.fill(FILLED)
    owners = cluster.owners(written, cluster.spec)
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    start(cluster, five, "--steps", "95,100")
    cluster.wait_status("under way", lambda s: s["keys_moved"] > 20)
    assert "answers" in cluster.cli("resize", "lost", "cache-2", check=FAILED).stderr
    cluster.members[1].process.kill()
    assert "goes on" in cluster.cli("resize", "lost", "cache-2", check=0).stdout
    assert "would have to go back" in cluster.cli("resize", "rollback", check=FAILED).stderr
    cluster.cli("resize", "set-rate", "20000", check=0)
    done = cluster.wait_resized()
    assert done["steps"] == 6 and not done["rolled_back"], "what was left of it went in steps of 1 %"
    cluster.assert_placed(five)
    survivors = [key for key in written if owners[key] != "cache-2"]
    assert values(cluster, survivors) == {key: written[key] for key in survivors}


def test_a_joining_member_dies_and_all_goes_back(cluster):
    written = cluster.fill(FILLED)
    four = cluster.spec
    cluster.add_member()
    start(cluster, cluster.write_spec(limits=SLOW), "--steps", "100")
    cluster.wait_status("under way", lambda s: s["keys_moved"] > 20)
    cluster.members[4].process.kill()
    assert "rolling back" in cluster.cli("resize", "lost", "cache-5", check=0).stdout
    done = cluster.wait_resized()
    assert done["rolled_back"]
    cluster.assert_placed(four)
    found = values(cluster, list(written))
    assert all(value in (None, written[key]) for key, value in found.items())
    assert sum(value is not None for value in found.values()) > FILLED / 2


def test_a_healthy_member_is_drained_onto_all_others(cluster):
    written = cluster.fill(FILLED, ttl_every=3)
    before = {member: len(keys) for member, keys in cluster.census().items()}
    three = without(cluster, "cache-2")
    with cluster.history() as load:
        start(cluster, three, "--wait")
    load.assert_clean()
    cluster.assert_placed(three)
    cluster.assert_filled(written, ttl_every=3)
    assert cluster.members[1].keys() <= {b"rs:stamp"}
    gained = {member: len(keys) - before[member] for member, keys in cluster.census().items() if member != "cache-2"}
    fair = before["cache-2"] / 3
    assert all(0.5 * fair < more < 1.7 * fair for more in gained.values()), (gained, before)


def test_expire_refuses_what_never_runs_out(cluster):
    written = cluster.fill(300, prefix="forever")
    cluster.add_member()
    five = cluster.write_spec()
    refused = start(cluster, five, "--mode", "expire", check=FAILED).stderr
    assert "no time to live" in refused and "forever:" in refused and "--move-rest" in refused, refused
    assert "--mode expire" in start(cluster, five, "--drop", check=BAD_USAGE).stderr
    assert "excludes" in start(cluster, five, "--mode", "expire", "--drop", "--move-rest", check=BAD_USAGE).stderr
    assert "--deadline: 'soon'" in start(cluster, five, "--mode", "expire", "--deadline", "soon", check=BAD_USAGE).stderr
    cluster.assert_filled(written)


def test_expire_old_copies_are_read_until_they_run_out(cluster):
    """Under load, killed in the midst: reads find the old copy, writes pull first; what has no time to live is moved
    when the step ends."""
    written = cluster.fill(600, prefix="forever")
    short = cluster.fill(2000, prefix="short", ttl_every=1, ttl_seconds=4)
    filled = time.monotonic()
    cluster.add_member()
    five = cluster.write_spec()
    moving = [key for key, owner in cluster.owners(short, five).items() if owner == "cache-5"]
    assert len(moving) > 200
    # Slack of the lives in the histories: a key that is pulled keeps its life to the transfer's time.
    with cluster.history(ttl_slack_ms=2500) as load:
        start(cluster, five, "--mode", "expire", "--move-rest", "--deadline", "5s", "--steps", "100")
        status = cluster.wait_status("in DUAL", lambda s: s["expire_until_ms"] and s["phase"] == "dual")
        assert status["mode"] == "expire" and status["keys_without_ttl"] > 50 and status["keys_without_ttl_examples"]
        assert "old copies run out until" in cluster.cli("resize", "status", check=0).stdout
        found = values(cluster, moving, 1)
        if time.monotonic() - filled < 3:  # Else they may have run out: a slow machine.
            assert found == {key: short[key] for key in moving}
        cluster.controller.kill()
        cluster.start_controller()
        again = cluster.wait_status("goes on", lambda s: s["expire_until_ms"] or s["state"] == "finished")
        assert again["state"] == "finished" or again["expire_until_ms"] == status["expire_until_ms"]
        cluster.wait_resized()
    load.assert_clean()
    cluster.assert_placed(five)
    cluster.assert_filled(written)


def test_expire_drops_the_rest(cluster):
    written = cluster.fill(2000)
    cluster.add_member()
    five = cluster.write_spec()
    start(cluster, five, "--mode", "expire", "--drop", "--deadline", "1s", "--steps", "50,100")
    done = cluster.wait_resized()
    moved = {key for key, owner in cluster.owners(written, five).items() if owner == "cache-5"}
    assert done["keys_dropped"] == len(moved) and done["keys_moved"] == 0
    found = values(cluster, list(written))
    assert found == {key: None if key in moved else written[key] for key in written}
    cluster.assert_placed(five)
