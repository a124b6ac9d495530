"""What operators see of the mover: big keys that wait for a word, and copies that are compared."""
import re


def test_a_big_key_waits_for_a_word_and_every_copy_is_compared(make_cluster):
    cluster = make_cluster(members=3, proxies=1)
    limits = {"move_keys_per_second": 20000, "big_key_bytes": "1MiB"}
    two = cluster.write_spec(members=["cache-1", "cache-2"], limits=limits)
    cluster.start(two)
    written = cluster.fill(1500, ttl_every=5)
    three = cluster.write_spec(limits=limits)
    names = [f"big:{i}".encode() for i in range(60)]
    before, after = cluster.owners(names, two), cluster.owners(names, three)
    big, other = [name for name in names if before[name] != after[name]][:2]
    client = cluster.client()
    client.set(big, b"x" * (3 << 20))
    client.rpush(other, *[b"y" * 100_000 for _ in range(20)])
    client.sadd("colours", *[f"colour-{i}" for i in range(2000)])

    for member in cluster.members:
        member.hang_up()
    cluster.cli("resize", "start", "--yes", "--spec", three, "--steps", "100", "--verify", "all", check=0)
    waiting = cluster.wait_status("big keys wait", lambda s: s["big_keys_waiting"] == 2)
    assert {key["key"] for key in waiting["waiting_big_keys"]} == {big.decode(), other.decode()}, waiting
    assert waiting["keys_verified"] > 100, waiting
    cluster.wait_status("it says what to do", lambda s: "resize big-keys move --limit" in s["last_error"])
    shown = cluster.cli("resize", "status").stdout
    assert re.search(rf"waits: {big.decode()} \(3\.\d MiB, {before[big]} -> cache-3\)", shown), shown

    bad = cluster.cli("resize", "big-keys", "wait", "--limit", "1MiB")
    assert bad.returncode == 1 and "a limit goes with 'move'" in bad.stderr, bad
    client.append(big, b"!")  # A client's write pulls it all the same.
    cluster.wait_status("one is left", lambda s: s["big_keys_waiting"] == 1)
    cluster.cli("resize", "big-keys", "move", "--limit", "64MiB", "--wait", check=0)
    status = cluster.status()
    assert status["state"] == "finished" and status["big_keys_waiting"] == 0, status
    cluster.assert_placed(three)
    cluster.assert_filled(written, ttl_every=5)
    assert client.strlen(big) == (3 << 20) + 1 and client.llen(other) == 20 and client.scard("colours") == 2000
