"""Applications on real client libraries while the cluster grows and shrinks: what they wrote, they read."""
import json
import subprocess
import threading

import redis

FILLED = 4000


class Ioredis:
    """clients/ioredis_resize.mjs; its loop ends when its standard input closes."""

    def __init__(self, directory, cluster):
        ports = [str(proxy.port) for proxy in cluster.proxies]
        self.process = subprocess.Popen(["node", "ioredis_resize.mjs", *ports], cwd=directory, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self):
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out + err
        return json.loads(out)


class RedisPy(threading.Thread):
    """Increments, sets and pipelines through one proxy, read back through the other."""

    def __init__(self, cluster, number):
        super().__init__()
        self.writer, self.reader = cluster.client(number % 2), cluster.client((number + 1) % 2)
        self.number, self.rounds, self.bad, self.stopping = number, 0, [], threading.Event()

    def run(self):
        name = f"py:{self.number}"
        while not self.stopping.is_set() and len(self.bad) < 20:
            self.rounds += 1
            try:
                self.one_round(name, self.rounds)
            except redis.RedisError as error:
                self.bad.append(f"{type(error).__name__}: {error}")

    def expect(self, what, got, wanted):
        if got != wanted:
            self.bad.append(f"{what}: {got!r} instead of {wanted!r} in round {self.rounds}")

    def one_round(self, name, version):
        self.writer.set(name, version, ex=1000)
        self.expect("get", int(self.reader.get(name) or -1), version)
        self.expect("incr", self.reader.incr(name + ":n"), version)
        self.writer.rpush(name + ":list", version)
        self.expect("list", int(self.reader.lindex(name + ":list", -1)), version)
        with self.writer.pipeline(transaction=False) as pipe:
            pipe.set(name, "x").append(name, "y").get(name).delete(name).get(name)
            self.expect("pipeline", pipe.execute()[2:], [b"xy", 1, None])

    def finish(self):
        self.stopping.set()
        self.join()
        return self.bad


def test_applications_see_no_growth_and_no_shrink(cluster, node_clients):
    cluster.add_member()
    four, five = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"]), cluster.write_spec()
    written = cluster.fill(FILLED)
    ioredis, python = Ioredis(node_clients, cluster), [RedisPy(cluster, number) for number in range(4)]
    for thread in python:
        thread.start()
    try:
        cluster.resize_start(five)
        cluster.assert_placed(five)
        cluster.resize_start(four)
    finally:
        bad = [line for thread in python for line in thread.finish()]
        seen = ioredis.finish()
    assert bad == [] and all(thread.rounds > 20 for thread in python)
    assert seen["bad"] == [] and seen["errors"] == 0 and seen["operations"] > 500
    cluster.assert_placed(four)
    cluster.assert_filled(written)
