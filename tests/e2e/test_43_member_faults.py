"""What members do wrong while a resize runs, or what lies between them and us does: each outcome as docs/operations.md
has it in "What each failure does". The long ones need RINGSHIFT_LONG=1."""
import json
import os
import random
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
import redis

from harness.cluster import Member
from harness.process import Process, free_port, wait_until
from harness.relay import Relay, arguments

FILLED = 3000
# Of 3,000 keys about 600 move to a fifth member: three seconds.
SLOW = {"move_keys_per_second": 250, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}
KEEPS_ALL = ("--appendonly", "yes", "--appendfsync", "always")  # What it acknowledged survives kill -9.

long_one = pytest.mark.skipif(not os.environ.get("RINGSHIFT_LONG"), reason="long: set RINGSHIFT_LONG=1")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts, network namespaces")


def at(cluster, addresses, limits=None, members=None):
    """A spec in which members are elsewhere: {id: address}."""
    document = cluster.spec_document(limits=limits, members=members)
    for member in document["members"]:
        member["address"] = addresses.get(member["id"], member["address"])
    path = cluster.write_spec()
    path.write_text(json.dumps(document))
    return path


def begun(cluster, spec, keys=30, steps=None):
    cluster.resize_start(spec, wait=False, steps=steps)
    return cluster.wait_status("under way", lambda s: s["keys_moved"] > keys)


def settle(cluster, load, spec, written):
    load.assert_clean(errors=False)
    cluster.assert_placed(spec)
    cluster.assert_filled(written)


@long_one
def test_killed_and_restarted_with_their_data(make_cluster):
    """OLD, then NEW: what they acknowledged is on their disks, so nothing may be lost, stale or undone. The run id tells
    that a restarted one is not the process that was stamped: back through HOLD."""
    cluster = make_cluster(members=0, proxies=2)
    for number in range(3):
        cluster.add_member(*KEEPS_ALL, "--appenddirname", f"aof-{number}")
    cluster.start()
    written = cluster.fill(FILLED)
    cluster.add_member(*KEEPS_ALL, "--appenddirname", "aof-new")
    four = cluster.write_spec(limits=SLOW)
    with cluster.history(ttl_slack_ms=3500) as load:
        begun(cluster, four, steps="100")
        for victim in (cluster.members[0], cluster.members[3]):
            victim.process.kill()
            time.sleep(random.uniform(0.1, 0.6))
            victim.start()
            victim.hang_up()
            time.sleep(random.uniform(0.3, 0.8))
        cluster.wait_resized()
    settle(cluster, load, four, written)
    assert "back through HOLD" in cluster.controller.errors()


@pytest.mark.parametrize("which", ["OLD", "NEW"])
@long_one
def test_killed_and_restarted_empty(cluster, which):
    """What was only there is lost, as Redis loses it; nothing else is, and the resize ends by itself."""
    written = cluster.fill(FILLED)
    new = cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    begun(cluster, five)
    victim = new if which == "NEW" else cluster.members[0]
    cluster.pause()  # So that we know what is where.
    had = victim.keys()
    victim.process.kill()
    victim.start()
    victim.hang_up()
    cluster.resume()
    cluster.wait_resized()
    cluster.assert_placed(five)
    for number in range(2):
        client = cluster.client(number)
        for key, value in written.items():
            assert client.get(key) == (None if key in had else value), key
    assert client.set("fill:1", b"again") and client.get("fill:1") == b"again"


@pytest.mark.parametrize("joining", [False, True], ids=["OLD", "NEW"])
def test_a_failover_by_sentinel(cluster, tmp_path, joining):
    """The operator applies the spec with the replica's address, in the midst of the resize."""
    if joining and not os.environ.get("RINGSHIFT_LONG"):
        pytest.skip("long: set RINGSHIFT_LONG=1")
    written = cluster.fill(FILLED)
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW)
    victim = cluster.members[4 if joining else 0]
    replica = Member(9, tmp_path, ("--replicaof", f"127.0.0.1 {victim.port}", "--repl-diskless-sync-delay", "0"))
    port = free_port()
    conf = tmp_path / "sentinel.conf"
    conf.write_text(f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor it 127.0.0.1 {victim.port} 1\n"
                    "sentinel down-after-milliseconds it 500\nsentinel failover-timeout it 3000\n")
    sentinel = Process("sentinel", ["redis-server", conf, "--sentinel"], tmp_path).start()
    try:
        asked = redis.Redis(port=port, socket_timeout=5)

        def follows():
            try:
                known = asked.execute_command("SENTINEL", "REPLICAS", "it")
                return known and replica.client.info("replication")["master_link_status"] == "up"
            except redis.ConnectionError:
                return False
        wait_until("the sentinel knows the replica", follows, timeout=30)
        replica.hang_up()
        begun(cluster, five, keys=100)  # Sentinel's connections are not taken for foreign clients.
        victim.process.kill()
        wait_until("the failover", timeout=40, condition=lambda: asked.execute_command(
            "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "it")[1] == str(replica.port).encode())
        wait_until("the replica is promoted", lambda: replica.client.info("replication")["role"] == "master")
        replica.hang_up()
        replica.id = victim.id
        cluster.members[cluster.members.index(victim)] = replica
        # From the spec of now, or, for a member that only joins, from the one that the resize leads to.
        moved = cluster.write_spec(limits=SLOW, members=None if joining else [f"cache-{i}" for i in range(1, 5)])
        cluster.apply(moved)
        cluster.wait_resized()
        after = cluster.write_spec(limits=SLOW)
        cluster.assert_placed(after)
        cluster.assert_filled(written)
        assert f":{replica.port}" in cluster.cli("topology", "get", "--spec", check=0).stdout
        assert "is at 127.0.0.1" in cluster.controller.errors()
    finally:
        sentinel.kill()
        replica.process.kill()
        victim.process.expected_dead = True


@long_one
def test_a_strange_server_does_not_take_over(cluster):
    """A wrong address: a server with keys of its own, that is no copy."""
    cluster.fill(500)
    cluster.add_member()
    begun(cluster, cluster.write_spec(limits=SLOW), keys=5)
    stranger = Member(9, cluster.directory)
    try:
        stranger.client.set("mine", 1)
        stranger.hang_up()
        refused = cluster.cli("topology", "apply", at(cluster, {"cache-5": stranger.address}), "--timeout", 3)
        assert refused.returncode == 1, refused
        cluster.wait_status("it says why", lambda s: "no copy of the member" in s["last_error"])
        cluster.apply(cluster.write_spec())
        cluster.wait_resized()
        assert stranger.client.get("mine") == b"1"
    finally:
        stranger.process.kill()


@pytest.fixture
def small_disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path],
                                           capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted: needs root")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_the_new_members_disk_is_full(small_disk, make_cluster):
    """It answers MISCONF: the mover pauses and says so, clients get the error for what they write there, and nothing is
    lost. With space it goes on."""
    cluster = make_cluster(members=3, proxies=2).start()
    written = {f"big:{i}".encode(): os.urandom(20000) for i in range(300)}
    for key, value in written.items():
        cluster.client().set(key, value)
    new = cluster.add_member("--appendonly", "yes", "--appendfsync", "everysec", "--dir", small_disk)
    four = cluster.write_spec(limits={"move_keys_per_second": 200, "move_bytes_per_second": "50MiB"})
    with cluster.history(ttl_slack_ms=3500) as load:
        cluster.resize_start(four, wait=False)
        said = cluster.wait_status("paused", lambda s: s["state"] == "paused")
        assert "MISCONF" in said["last_error"] and "cache-4" in said["last_error"], said
        subprocess.run(["mount", "-o", "remount,size=256m", small_disk], check=True)
        wait_until("it takes writes again", lambda: new.client.info("persistence")["aof_last_write_status"] == "ok")
        new.hang_up()
        cluster.resume()
        cluster.wait_resized()
    settle(cluster, load, four, written)


@long_one
def test_links_that_are_slow_cut_and_stopped(cluster):
    """Between us and NEW, then between us and OLD: slow, cut, and stopped for longer than a request may take, after which
    everything that was sent arrives late. Members never speak to each other, so no other link matters."""
    written = cluster.fill(FILLED)
    new, old = cluster.add_member(), cluster.members[0]
    links = [Relay(new.port), Relay(old.port)]
    cluster.apply(at(cluster, {"cache-1": links[1].address}, members=[f"cache-{i}" for i in range(1, 5)]))
    five = at(cluster, {"cache-5": links[0].address, "cache-1": links[1].address}, limits=SLOW)
    with cluster.history(ttl_slack_ms=4500) as load:
        begun(cluster, five)
        for link in links:
            link.delay = 0.02
            time.sleep(0.5)
            link.delay = 0
            link.cut()
            time.sleep(0.2)
            link.stall()
            time.sleep(1.5)
            # Keys of the others are served meanwhile.
            owners = cluster.owners(list(written)[:200], five)
            for key in [key for key, member in owners.items() if member in ("cache-2", "cache-3")][:20]:
                assert cluster.client(0, socket_timeout=5).get(key) == written[key]
            link.flow()
            time.sleep(0.3)
        cluster.wait_resized()
    settle(cluster, load, five, written)
    for link in links:
        link.close()


@long_one
def test_one_proxy_cannot_reach_the_new_member(cluster):
    """It cannot tell whether what it sent there is over, so it is fenced at each barrier; others are served, and when the
    link is back it is as good as any."""
    written = cluster.fill(FILLED)
    link = Relay(cluster.add_member().port)
    five = at(cluster, {"cache-5": link.address}, limits=SLOW)
    with cluster.history(proxies=cluster.proxies[:1], ttl_slack_ms=4500) as load:
        begun(cluster, five)
        link.never = b"rs:proxy-2"
        link.cut()
        cluster.wait_resized()
        link.never = None
        link.cut()
    wait_until("the second proxy reaches it", lambda: answers(cluster, 1, written), timeout=30, interval=0.2)
    settle(cluster, load, five, written)
    link.close()


def answers(cluster, proxy, written):
    try:
        return all(cluster.client(proxy).get(key) == written[key] for key in list(written)[:300])
    except redis.RedisError:
        return False


class NamespacedMember(Member):
    """In a network of its own, with one link: to us."""

    def __init__(self, number, directory, space, net):
        self.id, self.space, self.host = f"cache-{number}", space, f"10.213.{net}.2"
        self.port = free_port()
        link = f"rs{net}h"
        for command in (["ip", "netns", "add", space],
                        ["ip", "link", "add", link, "type", "veth", "peer", "name", f"rs{net}m", "netns", space],
                        ["ip", "addr", "add", f"10.213.{net}.1/30", "dev", link], ["ip", "link", "set", link, "up"],
                        ["ip", "-n", space, "addr", "add", f"{self.host}/30", "dev", f"rs{net}m"],
                        ["ip", "-n", space, "link", "set", f"rs{net}m", "up"]):
            subprocess.run(command, check=True, capture_output=True)
        self.process = Process(self.id, ["ip", "netns", "exec", space, "redis-server", "--port", self.port, "--bind",
                                         self.host, "--protected-mode", "no", "--save", "", "--loglevel", "warning",
                                         "--dir", directory], directory)
        self.start()


@pytest.fixture
def spaces():
    names = [f"rs-e2e-{os.getpid()}-{i}" for i in (1, 2)]
    yield names
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


@as_root
@long_one
def test_old_and_new_cannot_reach_each_other(spaces, make_cluster):
    """Each member in a network namespace with a link to us alone. They do not have to."""
    cluster = make_cluster(members=0, proxies=2)
    try:
        for number, space in enumerate(spaces, 1):
            cluster.members.append(NamespacedMember(number, cluster.directory, space, 100 + number))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr}")
    old, new = cluster.members
    there = subprocess.run(["ip", "netns", "exec", spaces[0], "redis-cli", "-h", new.host, "-p", str(new.port), "ping"],
                           capture_output=True, text=True, timeout=10)
    assert "PONG" not in there.stdout, "they can reach each other"
    cluster.start(cluster.write_spec(members=["cache-1"]))
    written = cluster.fill(FILLED)
    two = cluster.write_spec(limits={"move_keys_per_second": 700})
    with cluster.history(ttl_slack_ms=2500) as load:
        cluster.resize_start(two)
    settle(cluster, load, two, written)


PASSWORD = "pass-of-the-members"
# As docs/operations.md has them, "The members' user".
ALL_BUT = "~* &* +@all -@dangerous +info +restore +client|list +client|kill"
NOTHING_BUT = "~* &* -@all +@read +@write +@connection +@scripting +@transaction +info +restore"


def guarded(make_cluster, tmp_path, rules, controller=()):
    """Members whose default user is the test's, and a user "rs" for everything of ours."""
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    cluster = make_cluster(members=0, proxies=2)
    flags = ["--member-user", "rs", "--member-password-file", secret]
    plain_server, plain_member = cluster._server, cluster.add_member  # pylint: disable=protected-access

    def server(name, command, *rest, env=None):
        ours = flags if command in ("proxy", "controller") else []
        return plain_server(name, command, *rest, *ours, *(controller if command == "controller" else ()), env=env)

    def add_member(*options):
        return plain_member("--user", "rs", "on", f">{PASSWORD}", *rules.split(), *options)
    cluster._server, cluster.add_member = server, add_member  # pylint: disable=protected-access
    for _ in range(3):
        cluster.add_member()
    return cluster.start()


@long_one
def test_an_acl_user_that_may_not_kill(make_cluster, tmp_path):
    """With all proxies well nothing has to be killed. When one hangs, HOLD cannot end: it is called off a few times, the
    others serve on, and then the resize pauses and says what it misses. Once the proxy answers it goes on."""
    cluster = guarded(make_cluster, tmp_path, NOTHING_BUT + " -client|kill", ("--fence-timeout-ms", "700"))
    written = cluster.fill(FILLED)
    cluster.add_member()
    four = cluster.write_spec(limits=SLOW)
    with cluster.history(proxies=cluster.proxies[:1], ttl_slack_ms=3500) as load:
        cluster.resize_start(four, wait=False, steps="30,100")
        cluster.wait_status("moving", lambda s: s["keys_moved"] > 0)
        cluster.proxies[1].pause()
        status = cluster.wait_status("paused", lambda s: s["state"] == "paused", timeout=60)
        assert "client|kill" in status["last_error"] and "resize resume" in status["last_error"], status
        assert "phase prep" in cluster.cli("topology", "get", check=0).stdout  # Nobody waits for it.
        log = cluster.cli("resize", "log", check=0).stdout
        assert log.count("hold called off") >= 2, log
        cluster.proxies[1].resume()
        cluster.resume()
        cluster.wait_resized()
    settle(cluster, load, four, written)


@pytest.mark.parametrize("rules", [ALL_BUT, NOTHING_BUT], ids=["all but", "nothing but"])
@long_one
def test_an_acl_user_with_what_the_manual_says(make_cluster, tmp_path, rules):
    cluster = guarded(make_cluster, tmp_path, rules)
    doctor = cluster.cli("doctor", "--member-user", "rs", "--member-password-file", tmp_path / "secret", check=0).stdout
    assert "permissions: 3 are well" in doctor, doctor
    written = cluster.fill(FILLED)
    cluster.add_member()
    four = cluster.write_spec(limits=SLOW)
    with cluster.history(ttl_slack_ms=3500) as load:
        begun(cluster, four)
        cluster.proxies[1].pause()
        time.sleep(2.5)
        cluster.proxies[1].resume()
        cluster.wait_resized()
    settle(cluster, load, four, written)


@long_one
def test_the_new_members_clock_jumps(cluster, tmp_path):
    """An hour ahead, and two back. Claims end too soon or too late, which a transfer survives; times to live that are kept
    there are wrong then, as with any Redis. The doctor shows it."""
    library, jump = tmp_path / "clock.so", tmp_path / "jump"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, Path(__file__).parent / "harness" / "clock.c"],
                   check=True)
    jump.write_bytes(struct.pack("q", 0))
    written = cluster.fill(FILLED)
    new = cluster.add_member()
    new.process.kill()
    new.process.env.update(LD_PRELOAD=str(library), RS_CLOCK=str(jump))
    new.start()
    five = cluster.write_spec(limits=SLOW)
    begun(cluster, five)
    for seconds in (3600, -3600, 3600, 0):
        with open(jump, "r+b") as file:
            file.write(struct.pack("q", seconds))
        wait_until("the clock has jumped", lambda: abs(new.client.time()[0] - time.time() - seconds) < 30)
        new.hang_up()
        for i in range(200):
            key = f"fill:{random.randrange(FILLED)}".encode()
            written[key] = b"%d" % i
            assert cluster.client(i % 2).set(key, written[key])
            assert cluster.client((i + 1) % 2).get(key) == written[key]
        said = cluster.cli("doctor", "--verbose").stdout
        expected = {3600: "s ahead of", -3600: "s behind", 0: "within"}[seconds]
        assert any("clock: cache-5" in line and expected in line for line in said.splitlines()), said
    cluster.wait_resized()
    cluster.assert_placed(five)
    cluster.assert_filled(written)


class Replayer(threading.Thread):
    """Sends again what went to NEW, some time later, past everybody: as a network does that delivers late what somebody
    gave up."""

    def __init__(self, relay, choose):
        super().__init__(daemon=True)
        self.relay, self.choose, self.sent, self.answers, self.over = relay, choose, 0, {}, False
        self.socket = socket.create_connection(("127.0.0.1", relay.target))
        self.lines = self.socket.makefile("rb")

    def run(self):
        waiting = []
        while not self.over:
            while self.relay.kept:
                command = self.relay.kept.popleft()
                if self.choose(command):
                    waiting.append((time.monotonic() + random.uniform(0, 0.8), command))
            due = [command for when, command in waiting if when <= time.monotonic()]
            waiting = [(when, command) for when, command in waiting if when > time.monotonic()]
            for command in due:
                self.socket.sendall(command)
                for answer in self.words():
                    self.answers[answer] = self.answers.get(answer, 0) + 1
                self.sent += 1
            time.sleep(0.005)

    def words(self):
        """Of one answer: a bulk string, or an array of them when a batch was sent."""
        head = self.lines.readline()
        if head.startswith(b"*"):
            return [word for _ in range(int(head[1:])) for word in self.words()]
        return [self.lines.readline().rstrip(b"\r\n") if head.startswith(b"$") else head.rstrip(b"\r\n")]


def is_restore(command):
    return b"'RESTORE'" in command and b"rs:claim:" in command


def is_claim(command):
    return b"'CLAIMED'" in command


@pytest.mark.parametrize("what", [is_claim, is_restore], ids=["CLAIM", "RESTORE"])
@long_one
def test_late_duplicates(cluster, what):
    """Of each CLAIM, or of each RESTORE, that was sent to NEW, while keys are deleted and made anew. A CLAIM that comes
    late is nobody's: it only makes others wait. A RESTORE that comes late finds its claim gone."""
    written = cluster.fill(FILLED)
    link = Relay(cluster.add_member().port)
    link.wanted = what
    five = at(cluster, {"cache-5": link.address}, limits=SLOW)
    with cluster.history(ttl_slack_ms=3500, keys=40) as load:
        cluster.resize_start(five, wait=False)
        late = Replayer(link, lambda command: True)
        late.start()
        cluster.wait_resized()
        time.sleep(1)
        late.over = True
        late.join()
    settle_claims(cluster)
    settle(cluster, load, five, written)
    print("late duplicates:", late.sent, late.answers)
    assert late.sent > 100, late.answers
    if what is is_restore:
        assert not late.answers.get(b"OK"), "a late RESTORE was executed"
        assert set(late.answers) <= {b"STALE", b"GATE", b"BUSY"}, late.answers
    link.close()


def settle_claims(cluster):
    """What a late CLAIM set ends by itself."""
    def none():
        return not any(key.startswith(b"rs:claim:") for member in cluster.members for key in member.keys())
    wait_until("no claim is left", none, timeout=20, interval=0.2)


def test_a_late_restore_after_a_delete_by_hand(cluster):
    """The same once, step by step: a key moves, is deleted, and its RESTORE arrives again, before and after the gate
    closes."""
    cluster.fill(FILLED)
    link = Relay(cluster.add_member().port)
    link.wanted = is_restore
    five = at(cluster, {"cache-5": link.address}, limits=SLOW)
    begun(cluster, five, keys=20)
    kept = [command for command in list(link.kept) if b"fill:" in command]
    names = [[a for a in arguments(command) if a.startswith(b"fill:")] for command in kept]  # One, or a batch.
    assert names
    for each in names:
        cluster.client().delete(*each)
    late = cluster.members[4].client
    for moment in ("in DUAL or NEW", "at the end"):
        for command, each in zip(kept, names):
            answer = late.execute_command(*arguments(command))
            answers = answer if isinstance(answer, list) else [answer]
            assert set(answers) <= {b"STALE", b"GATE"}, (moment, answer)
            assert cluster.client().mget(each) == [None] * len(each), moment
        cluster.members[4].hang_up()
        cluster.wait_resized()
    link.close()
