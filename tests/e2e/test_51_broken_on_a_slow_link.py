"""Rules of the protocol taken away one by one, and the order of events that each is there for, forced from outside: the
links to both members go through relays that hold a certain command until its moment. With the rule a client sees
nothing wrong; without it a value that was deleted comes back, or a write is lost. Debug builds only."""
import json
import os
import threading
import time

import pytest
import redis

from harness.cluster import RINGSHIFT_DEBUG
from harness.process import wait_until
from harness.relay import Relay, arguments

pytestmark = pytest.mark.skipif(not RINGSHIFT_DEBUG.exists(), reason=f"{RINGSHIFT_DEBUG} is not built")
long_one = pytest.mark.skipif(not os.environ.get("RINGSHIFT_LONG"), reason="long: set RINGSHIFT_LONG=1")

KEYS = 60
A, B, C = 0, 1, 2  # Proxies: whose command is held, who comes meanwhile, and who has pulled nothing.
PATIENCE = 30
CLAIMS_LIVE = 2.0  # Seconds: what depends on a claim is tried again on a machine that is slower.
TRIES = 4


class World:
    """cache-1 has all keys, and cache-2 shall have half of them."""

    def __init__(self, make_cluster, switch, keys=KEYS):
        self.cluster = make_cluster(members=2, proxies=3, binary=RINGSHIFT_DEBUG,
                                    env={"RINGSHIFT_BREAK": switch} if switch else {})
        self.cluster.controller_options = ("--fence-timeout-ms", "500")
        self.old, self.new = self.cluster.members
        self.to_old, self.to_new = Relay(self.old.port), Relay(self.new.port)
        for relay in (self.to_old, self.to_new):
            relay.hold = lambda who, command: False
        self.one, self.two = self.spec("cache-1"), self.spec("cache-1", "cache-2")
        self.cluster.start(self.one)
        names = [f"k:{i}".encode() for i in range(keys)]
        self.moving = [name for name, owner in self.cluster.owners(names, self.two).items() if owner == "cache-2"]
        client = self.cluster.client(B)
        for name in names:
            client.set(name, b"5", ex=3600)
        self.hung_up()

    def spec(self, *ids):
        document = self.cluster.spec_document(members=ids)
        for member in document["members"]:
            member["address"] = (self.to_old if member["id"] == "cache-1" else self.to_new).address
        path = self.cluster.directory / f"{'-'.join(ids)}.yaml"
        path.write_text(json.dumps(document))
        return path

    def hung_up(self):
        for member in self.cluster.members:
            member.hang_up()

    def start(self, *options):
        self.hung_up()
        self.cluster.cli("resize", "start", "--spec", self.two, "--yes", "--steps", "100", *options, check=0)

    def in_dual(self, *options):
        self.start(*options)
        self.cluster.wait_status("DUAL", lambda s: s["phase"] == "dual", timeout=PATIENCE)
        return self

    def idle_in_dual(self):
        """Nothing moves but what clients write: the mover waits until lives of an hour are over."""
        return self.in_dual("--mode", "expire", "--move-rest")

    def ask(self, proxy, *command):
        with redis.Redis(port=self.cluster.proxies[proxy].port, socket_timeout=PATIENCE) as client:
            return client.execute_command(*command)

    def at(self, member, *command):
        """Past everybody."""
        with redis.Redis(port=member.port, socket_timeout=PATIENCE) as client:
            client.execute_command("CLIENT", "SETNAME", "rs:test")
            return client.execute_command(*command)

    def close(self):
        for relay in (self.to_old, self.to_new):
            relay.close()


class Late:
    """A command of a client of proxy A, of which the first step that `is_step` is true of is held on its way."""

    def __init__(self, world, relay, is_step, *command):
        self.relay, self.answer = relay, None
        name = command[1]
        relay.hold = lambda who, step: b"rs:proxy-1" in who and is_step(step) and name in step
        self.thread = threading.Thread(target=self._ask, args=(world, command), daemon=True)
        self.thread.start()
        wait_until(f"{command} is on its way", lambda: relay.held, PATIENCE, 0.002)

    def _ask(self, world, command):
        try:
            self.answer = world.ask(A, *command)
        except redis.RedisError as error:
            self.answer = error

    def arrives(self):
        self.relay.release()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        time.sleep(0.1)  # What was given up and is late arrives without an answer.


def is_restore(command):
    return b"'RESTORE'" in command and b"rs:claim:" in command


def is_unlink(command):
    return b"UNLINK\r\n" in command


# Each gives what a client of C reads at the end; it was b"5" before, and may be so no more.

def late_restore_after_a_delete(world, key):
    late = Late(world, world.to_new, is_restore, "APPEND", key, "x")
    world.at(world.new, "DEL", b"rs:claim:{%b}" % key)  # Evicted.
    assert world.ask(B, "DEL", key) == 1
    late.arrives()
    return world.ask(C, "GET", key)


def restore_twice_around_a_delete(world, key):
    world.to_new.wanted = is_restore
    late = Late(world, world.to_old, is_unlink, "APPEND", key, "x")
    restore = [one for one in world.to_new.kept if key in one][-1]
    assert world.ask(B, "DEL", key) == 1
    world.at(world.new, *arguments(restore))
    read = world.ask(C, "GET", key)
    late.arrives()
    return read


def restore_after_a_read_found_nothing(world, key):
    late = Late(world, world.to_new, is_restore, "APPEND", key, "x")
    world.at(world.old, "DEL", key)  # Its life is over.
    assert world.ask(B, "GET", key) is None
    late.arrives()
    return world.ask(C, "GET", key)


def came_back(read):
    """APPEND may have been executed after all the others, or not at all; "5" was gone."""
    return read not in (None, b"x")


IN_DUAL = {
    "restore_without_token": late_restore_after_a_delete,
    "no_seal_after_busy": restore_twice_around_a_delete,
    "exists_on_new_is_enough": restore_twice_around_a_delete,
    "read_miss_without_seal": restore_after_a_read_found_nothing,
    "compare_and_delete_seal": restore_after_a_read_found_nothing,
}


@pytest.fixture
def world(make_cluster):
    made = []

    def make(switch, **options):
        made.append(World(make_cluster, switch, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


def harm_in_dual(world, scenario):
    """Whether a client saw it. Claims live for two seconds: a machine that was slower gets another key."""
    for key in world.moving[:TRIES]:
        begin = time.monotonic()
        if came_back(read := scenario(world, key)):
            print(f"{key} was read as {read} at the end")
            return True
        if time.monotonic() - begin < CLAIMS_LIVE:
            return False
    return False


@pytest.mark.parametrize("switch", [pytest.param(name, marks=[] if name == "restore_without_token" else [long_one])
                                    for name in IN_DUAL])
def test_without_the_rule_a_value_comes_back(world, switch):
    assert harm_in_dual(world(switch).idle_in_dual(), IN_DUAL[switch])


def test_with_all_rules_nothing_comes_back(world):
    """Otherwise the test above proves nothing. In one cluster, each with its own key; and what clients read after it."""
    one = world("").idle_in_dual()
    for number, scenario in enumerate(set(IN_DUAL.values())):
        read = scenario(one, one.moving[-1 - number])
        assert not came_back(read), (scenario.__name__, read)
        for relay in (one.to_old, one.to_new):
            relay._released.clear()  # pylint: disable=protected-access


def leftover(world):
    key = b"left:%d"
    names = [key % i for i in range(20)]
    mine = next(name for name, owner in world.cluster.owners(names, world.two).items() if owner == "cache-2")
    world.at(world.new, "SET", mine, "of an earlier life")
    world.idle_in_dual()
    return world.ask(C, "GET", mine)


@pytest.mark.parametrize("switch", [pytest.param("no_purge", marks=long_one), ""])
def test_leftovers(world, switch):
    assert (leftover(world(switch)) is not None) == bool(switch)


def restore_after_new_is_published(world):
    """A client's transfer hangs, and its key, the last one on OLD, ends there: so the step is over, within the two seconds
    of the transfer's claim."""
    world.in_dual("--rate", "1")
    world.cluster.pause()
    world.cluster.wait_status("paused", lambda s: s["state"] == "paused")
    left = [key for key in world.moving if world.at(world.old, "EXISTS", key)]
    key = left.pop()
    world.at(world.old, "DEL", *left)
    late = Late(world, world.to_new, is_restore, "APPEND", key, "x")
    world.at(world.old, "DEL", key)
    world.cluster.resume()
    with redis.Redis(port=world.cluster.proxies[B].port) as client:
        wait_until("NEW is published", lambda: client.info("topology").get("resize_phase") != "dual", PATIENCE, 0.005)
    assert world.ask(B, "GET", key) is None
    late.arrives()
    return world.ask(C, "GET", key)


@pytest.mark.parametrize("switch", ["no_gate", ""])
@long_one
def test_the_gate(world, switch):
    """By the claim's end the rule is not needed any more: a slow machine gets more tries."""
    seen = [came_back(restore_after_new_is_published(world(switch))) for _ in range(TRIES if switch else 1)]
    assert any(seen) == bool(switch), seen


def increment_of_a_proxy_that_hangs(world):
    """It was sent before the resize, and its proxy hangs from then on: it must not be executed on OLD any more."""
    cluster, key = world.cluster, world.moving[0]
    late = Late(world, world.to_old, lambda command: b"INCR\r\n" in command, "INCR", key)
    cluster.proxies[A].pause()
    world.idle_in_dual()
    assert world.ask(B, "SET", key, "10")
    world.to_old.release()
    time.sleep(0.3)
    read = world.ask(C, "GET", key)
    cluster.proxies[A].resume()
    late.arrives()
    return read


@pytest.mark.parametrize("switch", [pytest.param("no_fence", marks=long_one), ""])
def test_the_fence(world, switch):
    read = increment_of_a_proxy_that_hangs(world(switch))
    assert (read not in (b"10", b"11")) == bool(switch), read


@pytest.mark.parametrize("switch", ["new_first_only", ""])
@long_one
def test_new_first_and_then_old(world, switch):
    one = world(switch, keys=4000)
    one.in_dual("--rate", "400")
    cluster = one.cluster
    wait_until("NEW is asked first", timeout=60,
               condition=lambda: "new_first" in cluster.cli("topology", "get", "--json", check=0).stdout)
    cluster.pause()
    missing = [key for key in one.moving if one.cluster.client(C).get(key) is None]
    assert bool(missing) == bool(switch), missing[:5]
