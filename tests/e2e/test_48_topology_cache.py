"""A router that starts while the registry is down: it serves by the topology on its disk, unless a resize has passed
since, which it learns from the members; and a file that is not right counts as none."""
import contextlib
import json
import re
import shutil
import sqlite3
import time
import urllib.request

import pytest
import redis

from harness.cluster import FAILED, run
from harness.process import wait_until

KEYS = 200
STRIDE = 40  # Each refused answer takes a while.


def info(client):
    return client.info("topology")


def topology_version(client):
    """As it is written: redis-py takes 1.40 for a number, which is 1.4."""
    client.set_response_callback("INFO", lambda answer, **_: answer.decode())
    return re.search(r"topology_version:(\S+)", client.info("topology")).group(1)


class Kept:
    """A cluster whose one proxy keeps its topology in a file."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.file = cluster.directory / "topology"
        self.proxy = cluster.add_proxy("--topology-cache", self.file, "--admin-listen", "127.0.0.1:0")
        self.written = cluster.fill(KEYS)
        self.wait_kept()

    def text(self):
        return self.file.read_text() if self.file.exists() else ""

    def wait_kept(self):
        """Before the first resize it knows all members' processes, later none."""
        version = topology_version(self.cluster.client())

        def whole():
            text = self.text()
            if f'"revision": {version.split(".")[1]},' not in text:
                return False
            processes = re.search(r'"processes": \{(.*?)\}', text, re.DOTALL).group(1).count(":")
            return processes == (len(self.cluster.members) if r'\"epoch\":0' in text else 0)
        wait_until(lambda: f"kept {version}: {self.text()[:2000]}", whole)

    def restart(self):
        self.proxy.kill()
        self.proxy.start()
        self.proxy.wait_ready(30)
        return self.cluster.client()

    def registry_back(self):
        self.cluster.registry.start()
        self.cluster.registry.wait_ready()


@pytest.fixture
def kept(make_cluster):
    return Kept(make_cluster(members=3, proxies=0).start())


def test_a_router_that_starts_during_an_outage_serves(kept):
    cluster = kept.cluster
    cluster.registry.kill()
    client = kept.restart()
    for key, value in kept.written.items():
        assert client.get(key) == value
    assert client.set("written", "meanwhile")
    said = info(client)
    assert said["topology_source"] == "disk"
    assert said["registry_age_seconds"] < 60
    assert "the registry does not answer: serving by topology" in kept.proxy.errors()
    page = urllib.request.urlopen(
        kept.proxy.admin_url() + "/metrics", timeout=10).read().decode()
    assert re.search(r'ringshift_router_topology_from_disk\{cluster="cache"\} 1\b', page), page
    # A connection that drops comes back without the registry, as ever.
    for member in cluster.members:
        member.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until("serves again", lambda: answers(client) == 0)
    kept.registry_back()
    wait_until("hears the registry", lambda: info(client)["topology_source"] == "registry", timeout=30)
    # And it takes part in changes.
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    cluster.assert_filled(kept.written)
    kept.wait_kept()
    cluster.registry.kill()
    client = kept.restart()
    assert answers(client) == 0, "serves by the stamps of the resize"
    assert client.get("written") == b"meanwhile"
    kept.registry_back()


def answers(client):
    """How many of the keys are refused; what is answered must be right."""
    refused = 0
    for i in range(0, KEYS, STRIDE):
        try:
            assert client.get(f"fill:{i}").startswith(str(i).encode())
        except redis.RedisError as error:
            assert "TRYAGAIN" in str(error) or "not executed" in str(error), error
            refused += 1
    return refused


def test_a_file_from_before_a_resize_is_refused_by_the_members(kept):
    cluster = kept.cluster
    old = cluster.directory / "old"
    shutil.copy(kept.file, old)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    kept.wait_kept()
    second = cluster.directory / "second"
    shutil.copy(kept.file, second)
    cluster.resize_start(cluster.write_spec(members=["cache-1", "cache-2", "cache-3"]))
    kept.wait_kept()
    cluster.registry.kill()
    for stale in (old, second):  # Of before the first resize, and of between two.
        shutil.copy(stale, kept.file)
        client = kept.restart()
        assert answers(client) == KEYS // STRIDE
        with pytest.raises(redis.RedisError):
            client.set("fill:0", "by an old view")
    kept.registry_back()
    wait_until("serves once the registry is back", lambda: answers(client) == 0, timeout=40)
    cluster.assert_filled(kept.written)


def test_during_a_resize_nothing_is_kept(kept):
    cluster = kept.cluster
    cluster.add_member()
    cluster.resize_start(cluster.write_spec(limits={"move_keys_per_second": 5}), wait=False)
    wait_until("no file while a resize runs", lambda: not kept.file.exists())
    cluster.rollback()
    cluster.wait_resized()
    kept.wait_kept()


def test_a_file_that_is_not_right_counts_as_none(kept):
    cluster = kept.cluster
    whole = kept.file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    cluster.registry.kill()
    for content, why in ((whole[:len(whole) // 2], "was cut off or changed"),
                         (bytes(flipped), "was cut off or changed"), (whole[:40], "cut off"), (b"", "is no topology cache"),
                         (b"members: []\n", "is no topology cache")):
        kept.file.write_bytes(content)
        done = run("proxy", "--listen", "127.0.0.1:0", "--registry", cluster.registry_url, "--cluster", cluster.name,
                   "--topology-cache", kept.file, "--wait-seconds", 0)
        assert done.returncode == FAILED, done.stderr
        assert str(kept.file) in done.stderr and why in done.stderr, done.stderr
    kept.file.write_bytes(whole)
    other = run("proxy", "--listen", "127.0.0.1:0", "--registry", cluster.registry_url, "--cluster", "another",
                "--topology-cache", kept.file, "--wait-seconds", 0)
    assert other.returncode == FAILED and "is of another cluster" in other.stderr, other.stderr
    kept.registry_back()


def test_one_version_with_two_contents_is_refused(make_cluster):
    """The registry's file is written by hand while it is away: the same version, another topology."""
    cluster = make_cluster(members=3, proxies=1)
    cluster.start()
    client = cluster.client()
    written = cluster.fill(300)
    assert info(client)["registry_refused"] == 0
    cluster.controller.kill()  # It would put it right.
    cluster.registry.kill()
    with sqlite3.connect(cluster._registry_data) as database:
        key = b"/ringshift/default/cache/topology"
        row, value = database.execute("SELECT h.id, h.value FROM current c JOIN history h ON h.id = c.id WHERE c.key = ?",
                                      (key,)).fetchone()
        document = json.loads(value)
        document["spec"]["members"][0]["address"] = "127.0.0.1:1"
        database.execute("UPDATE history SET value = ? WHERE id = ?", (json.dumps(document).encode(), row))
    database.close()
    cluster.registry.start()
    cluster.registry.wait_ready()

    # A member that is a new process is believed when the registry says that no resize was: then it is asked.
    new = cluster.members[1]
    new.process.kill()
    new.start()

    def served():
        found = 0
        for number in range(12):
            with contextlib.suppress(redis.RedisError):
                found += client.get(f"fill:{number}") is not None
        return found
    wait_until("the router refuses it", lambda: served() >= 0 and info(client)["registry_refused"] == 1, 60)
    assert "two registries go on from one copy" in cluster.proxies[0].errors()
    assert served() > 2, "the other members serve on"


def test_a_registry_that_was_set_back_is_not_obeyed(make_cluster):
    """Its file is replaced by an older copy of itself, which goes on: the same cluster id, other topologies to come."""
    cluster = make_cluster(members=3, proxies=1)
    cluster.start()
    client = cluster.client()
    written = cluster.fill(200)

    def version():
        return topology_version(cluster.client())

    def replaced_by(source):
        """With the registry away, keeping what was there."""
        cluster.registry.expected_dead = True
        assert cluster.registry.end() == 0
        kept = cluster.directory / f"kept-{time.monotonic_ns()}.db"
        shutil.copy(cluster._registry_data, kept)
        if source:
            shutil.copy(source, cluster._registry_data)
        cluster.registry.start()
        cluster.registry.wait_ready()
        return kept

    def limit(keys_per_second):
        spec = cluster.write_spec(limits={"move_keys_per_second": keys_per_second})
        cluster.cli("topology", "apply", spec, check=0)

    old = replaced_by(None)
    before = version()
    limit(1111)
    wait_until("the router has the new limits", lambda: version() != before)
    told = version()
    new = replaced_by(old)
    # Before it goes on: of a registry that is beyond what a router knows by then nobody can tell that it was set back.
    wait_until("the router says so", lambda: info(client)["registry_refused"] == 1, 30)
    assert "set back to an older state" in cluster.proxies[0].errors()
    for number in range(4):
        limit(3000 + number)
    assert version() == told, "whatever it says next is not obeyed"
    cluster.assert_filled(written)

    # The mistake is undone: the file is back.
    replaced_by(new)
    wait_until("the router obeys again", lambda: info(client)["registry_refused"] == 0, 30)
    limit(4444)
    wait_until("it has what came then", lambda: version() != told)
    cluster.assert_filled(written)
