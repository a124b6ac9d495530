"""Data that lies in the cluster and must stay as it is: every type, with and without a time to live, and a few values
of megabytes."""
import hashlib
import time

import redis

TTL = 7200
TRIES = 8


def patiently(what):
    """A busy machine makes members time out: that is no fault of the cluster."""
    for attempt in range(TRIES):
        try:
            return what()
        except redis.RedisError:
            if attempt == TRIES - 1:
                raise
            time.sleep(1)


class Furniture:
    def __init__(self, world, random, strings, each_type, big_bytes):
        self.world = world
        self.strings = {f"furniture:{i}": f"{i}".ljust(64, ".").encode() for i in range(strings)}
        self.each_type = each_type
        self.big = {f"furniture:big:{i}": random.randbytes(size) for i, size in enumerate(big_bytes)}
        self.written_at = None

    def put(self):
        patiently(self._put)
        self.written_at = time.monotonic()

    def _put(self):
        client = self.world.client()
        pipeline = client.pipeline(transaction=False)
        for i, (key, value) in enumerate(self.strings.items()):
            pipeline.set(key, value, ex=TTL if i % 4 == 0 else None)
            if i % 500 == 499:
                pipeline.execute()
        for i in range(self.each_type):
            pipeline.hset(f"furniture:hash:{i}", mapping={f"f{n}": n for n in range(10)})
            pipeline.delete(f"furniture:list:{i}", f"furniture:stream:{i}")  # When this is not the first try.
            pipeline.rpush(f"furniture:list:{i}", *range(10))
            pipeline.sadd(f"furniture:set:{i}", *range(10))
            pipeline.zadd(f"furniture:zset:{i}", {f"m{n}": n for n in range(10)})
            pipeline.xadd(f"furniture:stream:{i}", {"a": i}, id="1-1")
            pipeline.setbit(f"furniture:bits:{i}", i, 1)
            pipeline.pfadd(f"furniture:hll:{i}", *range(10))
        pipeline.execute()
        for key, value in self.big.items():
            client.set(key, value)

    def wrong(self, proxy):
        """What is not as it was, through this proxy; at most a few."""
        return patiently(lambda: self._wrong(proxy))

    def _wrong(self, proxy):
        client, found = self.world.client(proxy), []
        keys = list(self.strings)
        for at in range(0, len(keys), 500):
            part = keys[at:at + 500]
            for key, value in zip(part, client.mget(part)):
                if value != self.strings[key]:
                    found.append(f"{key} is {value!r}")
        pipeline = client.pipeline(transaction=False)
        for key in keys[:1000]:
            pipeline.ttl(key)
        age = time.monotonic() - self.written_at
        for i, ttl in enumerate(pipeline.execute()):
            if not (TTL - age - 15 <= ttl <= TTL if i % 4 == 0 else ttl == -1):
                found.append(f"{keys[i]} has a time to live of {ttl} after {age:.0f} s")
        found += self._wrong_types(client)
        for key, value in self.big.items():
            read = client.get(key)
            if read != value:
                digest = hashlib.sha256(read or b"").hexdigest()[:16]
                found.append(f"{key}: {len(read or b'')} bytes, digest {digest}")
        client.connection_pool.disconnect()
        return found[:10]

    def _wrong_types(self, client):
        pipeline = client.pipeline(transaction=False)
        for i in range(self.each_type):
            pipeline.hgetall(f"furniture:hash:{i}")
            pipeline.lrange(f"furniture:list:{i}", 0, -1)
            pipeline.smembers(f"furniture:set:{i}")
            pipeline.zrange(f"furniture:zset:{i}", 0, -1, withscores=True)
            pipeline.xrange(f"furniture:stream:{i}")
            pipeline.getbit(f"furniture:bits:{i}", i)
            pipeline.pfcount(f"furniture:hll:{i}")
        answers = iter(pipeline.execute())
        found = []
        for i in range(self.each_type):
            expected = [{f"f{n}".encode(): b"%d" % n for n in range(10)}, [b"%d" % n for n in range(10)],
                        {b"%d" % n for n in range(10)}, [(b"m%d" % n, float(n)) for n in range(10)],
                        [(b"1-1", {b"a": b"%d" % i})], 1, 10]
            for name, right in zip(("hash", "list", "set", "zset", "stream", "bits", "hll"), expected):
                read = next(answers)
                if read != right:
                    found.append(f"furniture:{name}:{i} is {read!r}")
        return found
