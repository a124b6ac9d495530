"""Fleets behind a real nutcracker: its nutcracker.yml is imported, our proxies read what it wrote, and a live resize
takes the keys to a ring of one member more while they are read all the time."""
import subprocess
import threading

import pytest
import redis
from harness.cluster import FAILED, Member, run, run_json
from harness.process import Process, free_port, wait_until

EACH = 400  # Keys of each type.
SLOW = {"move_keys_per_second": 1500, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}


class Nutcracker:
    """Debian's, with one pool before the cluster's members."""

    def __init__(self, cluster, distribution, hash_name, weights, named):
        self.port = free_port()
        lines = ["cache:", f"  listen: 127.0.0.1:{self.port}", f"  hash: {hash_name}",
                 f"  distribution: {distribution}", "  redis: true", "  timeout: 2000", "  preconnect: true",
                 "  auto_eject_hosts: false", "  servers:"]
        for member, weight in zip(cluster.members, weights):
            lines.append(f"   - {member.address}:{weight}" + (f" {member.id}" if named else ""))
        self.config = cluster.directory / "nutcracker.yml"
        self.config.write_text("\n".join(lines) + "\n")
        self.process = Process("nutcracker", ["nutcracker", "-c", self.config, "-s", free_port(), "-a", "127.0.0.1"],
                               cluster.directory)

    def __enter__(self):
        self.process.start()
        self.client = redis.Redis(port=self.port, socket_timeout=5)

        def answers():
            try:
                return self.client.get("ready") is None
            except redis.RedisError:
                return False
        wait_until(lambda: f"nutcracker answers\n{self.process.tail()}", answers)
        return self

    def __exit__(self, *_):
        self.client.connection_pool.disconnect()
        self.process.end()


# What is written, and how it is read back: name -> (write, read, what is read).
TYPES = {
    "string": (lambda c, k, i: c.set(k, i), lambda c, k: c.get(k), lambda i: b"%d" % i),
    "expiring": (lambda c, k, i: c.set(k, i, ex=3600), lambda c, k: c.get(k), lambda i: b"%d" % i),
    "hash": (lambda c, k, i: c.hset(k, mapping={"a": i, "b": "x" * 50}), lambda c, k: c.hgetall(k),
             lambda i: {b"a": b"%d" % i, b"b": b"x" * 50}),
    "list": (lambda c, k, i: c.rpush(k, i, i + 1, i), lambda c, k: c.lrange(k, 0, -1),
             lambda i: [b"%d" % i, b"%d" % (i + 1), b"%d" % i]),
    "set": (lambda c, k, i: c.sadd(k, i, i + 1), lambda c, k: c.smembers(k), lambda i: {b"%d" % i, b"%d" % (i + 1)}),
    "zset": (lambda c, k, i: c.zadd(k, {"m": i}), lambda c, k: c.zrange(k, 0, -1, withscores=True),
             lambda i: [(b"m", float(i))]),
}


def fill(client):
    """Key -> its type and number, after all are written."""
    written = {}
    for kind, (write, _, _) in TYPES.items():
        pipe = client.pipeline(transaction=False)
        for i in range(EACH):
            key = f"{kind}:{{{i % 7}}}:{i}".encode()  # The braces mean nothing here: this pool has no hash_tag.
            write(pipe, key, i)
            written[key] = (kind, i)
        pipe.execute()
    return written


def read_all(client, written):
    """The keys that are not as they were written."""
    wrong, items = [], list(written.items())
    for at in range(0, len(items), 200):
        part = items[at:at + 200]
        pipe = client.pipeline(transaction=False)
        for key, (kind, _) in part:
            TYPES[kind][1](pipe, key)
        answers = pipe.execute(raise_on_error=False)
        wrong += [(key, got) for (key, (kind, i)), got in zip(part, answers) if got != TYPES[kind][2](i)]
    return wrong


class Reader(threading.Thread):
    """Reads every key, over and over."""

    def __init__(self, client, written):
        super().__init__()
        self.client, self.written = client, written
        self.rounds, self.wrong, self.stopping = 0, [], threading.Event()

    def run(self):
        while not self.stopping.is_set() and not self.wrong:
            try:
                self.wrong += read_all(self.client, self.written)
            except redis.RedisError as error:
                self.wrong.append((type(error).__name__, str(error)))
            self.rounds += 1

    def finish(self):
        self.stopping.set()
        self.join()
        return self.wrong


def taken_over(make_cluster, distribution, hash_name, weights, named):
    """A running cluster by the imported spec, the spec, and what nutcracker had written."""
    cluster = make_cluster(members=4, proxies=2)
    if not named:  # The ids that an import makes of addresses.
        for member in cluster.members:
            member.id = member.address
    with Nutcracker(cluster, distribution, hash_name, weights, named) as nutcracker:
        written = fill(nutcracker.client)
        assert not read_all(nutcracker.client, written)
    spec = cluster.directory / "imported.yaml"
    done = run("import", nutcracker.config, "--output", spec, check=0)
    assert "looks like nutcracker" in done.stderr and ":2:3: cache: listen: " in done.stderr
    assert "timeout: 2000" in spec.read_text()
    cluster.start(spec)
    # Where nutcracker wrote each key is where we say it is.
    assert set(cluster.assert_placed(spec)) == set(written)
    return cluster, spec, written


@pytest.mark.parametrize("distribution,hash_name,weights,named", [
    ("ketama", "fnv1a_64", (1, 1, 1, 1), True),
    ("modula", "crc32", (1, 2, 1, 3), False),
])
def test_nutcracker_to_ring_live(make_cluster, distribution, hash_name, weights, named):
    cluster, _, written = taken_over(make_cluster, distribution, hash_name, weights, named)
    for proxy in range(2):
        assert not read_all(cluster.client(proxy), written)
    fifth = cluster.add_member()
    ring = cluster.write_spec(limits=SLOW)
    readers = [Reader(cluster.client(proxy), written) for proxy in range(2)]
    for reader in readers:
        reader.start()
    cluster.resize_start(ring)
    for reader in readers:
        assert not reader.finish(), reader.wrong[:5]
        assert reader.rounds >= 3
    for proxy in range(2):
        assert not read_all(cluster.client(proxy), written)
    assert set(cluster.assert_placed(ring)) == set(written)
    assert len(fifth.keys()) > 0.1 * len(written)
    assert 3500 < cluster.client().ttl("expiring:{3}:3") <= 3600


class ClusterNode(Member):
    """A node of a Redis Cluster, with a directory of its own to keep its keys in."""

    def __init__(self, number, directory):
        own = directory / f"node-{number}"
        own.mkdir()
        super().__init__(number, own)
        self.id = self.address
        self.restart("--cluster-enabled", "yes")

    def restart(self, *options):
        self.hang_up()
        self.process.end()
        if options:
            self.process.command += options
        else:
            self.process.command = self.process.command[:-2]
        self.start()


def test_redis_cluster_to_ring_live(make_cluster):
    cluster = make_cluster(members=0, proxies=2)
    nodes = [ClusterNode(n, cluster.directory) for n in (1, 2, 3)]
    cluster.members += nodes
    done = subprocess.run(["redis-cli", "--cluster", "create", *(n.address for n in nodes), "--cluster-yes"],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    # Each node finds out by itself that all slots are covered, some time after redis-cli was content.
    for node in nodes:
        wait_until(lambda: f"{node.id} sees the cluster whole",
                   lambda: node.client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
    with redis.RedisCluster(host="127.0.0.1", port=nodes[0].port) as client:
        for i in range(900):
            client.set(f"{{{i}}}:string", i)
    listed = subprocess.run(["redis-cli", "-p", str(nodes[0].port), "cluster", "nodes"], capture_output=True, text=True,
                            timeout=10).stdout
    spec = cluster.directory / "imported.yaml"
    run("import", "-", "--cluster", "cache", "--output", spec, stdin=listed, check=0)
    written = {f"{{{i}}}:string".encode(): ("string", i) for i in range(900)}
    # Nodes in cluster mode refuse keys of others' slots, and so our stamps: out of it first, with their keys.
    for node in nodes:
        node.client.save()
        node.restart()
    cluster.start(spec)
    assert set(cluster.assert_placed(spec)) == set(written)
    assert not read_all(cluster.client(), written)
    cluster.add_member()
    ring = cluster.write_spec()
    cluster.resize_start(ring)
    assert not read_all(cluster.client(), written)
    assert set(cluster.assert_placed(ring)) == set(written)


def test_imported_json_names_every_pool_and_a_bad_file_its_place(tmp_path):
    config = tmp_path / "nutcracker.yml"
    config.write_text("a:\n  redis: true\n  servers: [\"10.0.0.1:6379:1\"]\nb:\n  servers: [\"10.0.0.1:11211:1\"]\n")
    both = run_json("import", config)["imported"]
    assert [one["source"] for one in both] == ["a", "b"]
    assert both[0]["spec"]["placement"] == {"algorithm": "twemproxy", "distribution": "ketama", "hash": "fnv1a_64"}
    run("import", config, "--output", f"{tmp_path}/specs/", check=0)
    for name in "ab":
        run("topology", "validate", tmp_path / "specs" / f"{name}.yaml", check=0)
    config.write_text("a:\n  distribution: random\n  servers: [\"10.0.0.1:6379:1\"]\n")
    refused = run("import", config, check=FAILED)
    assert f"{config}:2:17: " in refused.stderr and not refused.stdout
