"""A keyset that follows from its numbers alone: key N has a type, a value and a time to live that anybody can compute
again, so that nothing of a million values need be kept but a digest of each.

Written straight to the members that own the keys, in pipelines; read back by a script that runs where the keys are
(DUMP, digest, PEXPIRETIME), so that a million keys take seconds."""
import random
import socket
import subprocess
import time
from array import array

import redis

from harness.process import die_with_parent

PREFIX = b"proof:"
SIZES = (1, 2, 7, 20, 64, 100, 200, 500, 1000, 3000)  # Bytes of the strings.
MIB = 1 << 20
BIG = [50 * MIB] + [20 * MIB] * 2 + [5 * MIB] * 4 + [MIB] * 10 + [100_000] * 83  # Strings, after all others.
SMALL_PULL, BIG_PULL = 2.5, 62.0  # Seconds that a claim is good for, and a script more; above big_key_bytes.
BIG_KEY = 32 * MIB
WIDE_EVERY, WIDE = 5000, 600      # Each so-manieth collection has so many entries: another encoding.
CHUNK = 20_000                    # Keys that are written before answers are read.
MEMBERS_PAGE = 500
KINDS = (["string"] * 11 + ["number", "hash", "list", "set", "zset", "stream", "hll", "bitmap", "geo"])
_POOL = random.Random(1).randbytes(1 << 16)

# Keys, digests of what DUMP gives and deadlines of a page of keys, as text.
_LOOK = """
local page = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2])
local found = {}
for _, key in ipairs(page[2]) do
  local dump = redis.call('DUMP', key)
  if dump then
    found[#found + 1] = key .. ' ' .. string.sub(redis.sha1hex(dump), 1, 16) .. ' ' ..
                        string.format('%.0f', redis.call('PEXPIRETIME', key))
  end
end
return {page[1], table.concat(found, '\\n')}
"""


def dice(i):
    """32 bits that look random and follow from i."""
    x = (i + 1) * 0x9E3779B1 & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x85EBCA77 & 0xFFFFFFFF
    return x ^ x >> 13


def command(*arguments):
    return b"*%d\r\n" % len(arguments) + b"".join(b"$%d\r\n%b\r\n" % (len(a), a) for a in arguments)


class Keyset:
    """Keys 0..count-1, then len(BIG) long strings."""

    def __init__(self, count):
        self.count = count
        self.total = count + len(BIG)
        self.names = [PREFIX + b"%s:%d" % (self.kind(i).encode(), i) for i in range(self.total)]
        self.digests = array("Q", bytes(8 * self.total))  # As first seen where they were written; 0: not seen.
        self.began_ms = 0

    # What a key is.

    def kind(self, i):
        return "big" if i >= self.count else KINDS[i % len(KINDS)]

    def size(self, i):
        return BIG[i - self.count] if i >= self.count else SIZES[dice(i) % len(SIZES)]

    def is_big(self, i):
        return i >= self.count and self.size(i) >= MIB

    def ttl_ms(self, i):
        """0: none. Half of the keys have one: from 50 ms on, of minutes, of hours, of days."""
        x = dice(i ^ 0x5A5A5A) if i < self.count else 0
        span = {4: (50, 300_000), 5: (300_000, 3_600_000), 6: (3_600_000, 86_400_000),
                7: (86_400_000, 30 * 86_400_000)}.get(x % 8)
        return span[0] + (x >> 3) * 977 % (span[1] - span[0]) if span else 0

    def deadline_ms(self, i):
        ttl = self.ttl_ms(i)
        return self.began_ms + ttl if ttl else 0

    def value(self, i):
        """Of a string: half of them compress, half do not."""
        size = self.size(i)
        if i >= self.count and size > 4096:
            return random.Random(i - self.count).randbytes(size)
        if i % 2:
            return (b"%d." % i * (size // 2 + 1))[:size]
        at = dice(i) >> 8 & 0x7FFF
        return (b"%d:" % i + _POOL[at:at + size])[:size]

    def _entries(self, i):
        return WIDE if i // len(KINDS) % WIDE_EVERY == 0 else 4

    def writes(self, i):
        """(its commands, lines of their answers)."""
        key, kind, deadline = self.names[i], self.kind(i), self.deadline_ms(i)
        if kind in ("string", "big", "number"):
            value = b"%d" % (i * 7) if kind == "number" else self.value(i)
            more = (b"PXAT", b"%d" % deadline) if deadline else ()
            return command(b"SET", key, value, *more), 1
        made, lines = self._collection(i, key, kind)
        if deadline:
            made, lines = made + command(b"PEXPIREAT", key, b"%d" % deadline), lines + 1
        return made, lines

    def _collection(self, i, key, kind):
        entries = range(self._entries(i))
        if kind == "hash":
            return command(b"HSET", key, *[part for n in entries for part in (b"f%d" % n, b"%d:%d" % (i, n))]), 1
        if kind == "list":
            return command(b"RPUSH", key, *[b"%d:%d" % (i, n) for n in entries]), 1
        if kind == "set":  # Half of them of numbers, which are encoded otherwise.
            return command(b"SADD", key, *[(b"%d" if i // len(KINDS) % 2 else b"m%d") % (i + n) for n in entries]), 1
        if kind == "zset":
            return command(b"ZADD", key, *[part for n in entries for part in (b"%d.25" % (i + n), b"m%d" % n)]), 1
        if kind == "stream":
            return b"".join(command(b"XADD", key, b"%d-1" % (n + 1), b"a", b"%d" % i) for n in range(2)), 4
        if kind == "hll":
            return command(b"PFADD", key, *[b"%d:%d" % (i, n) for n in entries]), 1
        if kind == "bitmap":
            return command(b"SETBIT", key, b"%d" % (i % 800), b"1") + command(b"SETBIT", key, b"5", b"1"), 2
        return command(b"GEOADD", key, *[part for n in range(3)
                                         for part in (b"%d.5" % (i % 170), b"%d.25" % (n * 20), b"m%d" % n)]), 1

    def differs(self, client, i):
        """How what `client` reads differs from what was written; "" when it does not.

        For keys whose DUMP is another: two servers may keep a set in another order. A HyperLogLog, a bitmap and
        plain strings have no order: there it is the difference itself."""
        key, kind, entries = self.names[i], self.kind(i), range(self._entries(i))
        if kind in ("string", "big"):
            read, right = client.get(key), self.value(i)
        elif kind == "hash":
            read, right = client.hgetall(key), {b"f%d" % n: b"%d:%d" % (i, n) for n in entries}
        elif kind == "list":
            read, right = client.lrange(key, 0, -1), [b"%d:%d" % (i, n) for n in entries]
        elif kind == "set":
            form = b"%d" if i // len(KINDS) % 2 else b"m%d"
            read, right = client.smembers(key), {form % (i + n) for n in entries}
        elif kind == "zset":
            read = dict(client.zrange(key, 0, -1, withscores=True))
            right = {b"m%d" % n: i + n + 0.25 for n in entries}
        elif kind == "stream":
            read, right = client.xrange(key), [(b"%d-1" % (n + 1), {b"a": b"%d" % i}) for n in range(2)]
        else:
            return f"{key.decode()}: other bytes than were written"
        return "" if read == right else f"{key.decode()} is {short(read)} and was written as {short(right)}"

    # Where keys are, and what they are there.

    def owners(self, ask):
        """Number of the owner, key by key. ask: the words of `ringshift route` with its flags -> member ids' order."""
        command_line, ids = ask
        number_of = {id.encode(): number for number, id in enumerate(ids)}
        process = subprocess.Popen(command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   preexec_fn=die_with_parent)
        output, _ = process.communicate(b"\n".join(self.names) + b"\n")
        assert process.returncode == 0, command_line
        owners = array("B", (number_of[line.split(b"  ", 2)[1]] for line in output.splitlines()))
        assert len(owners) == self.total
        return owners

    def load(self, members, owners):
        """Writes all keys, each to its owner."""
        self.began_ms = int(time.time() * 1000)
        links = [Link(member.port) for member in members]
        for begin in range(0, self.total, CHUNK):
            for i in range(begin, min(begin + CHUNK, self.total)):
                data, lines = self.writes(i)
                links[owners[i]].put(data, lines)
            for link in links:
                link.settle()
        for link in links:
            link.close()

    def note_digests(self, members):
        """After load(): digests of what lies there. Gives the number of keys that are there."""
        seen = 0
        for member in members:
            for name, digest, _ in look(member):
                if (i := self.number(name)) is not None:
                    self.digests[i] = digest
                    seen += 1
        return seen

    def number(self, name):
        return int(name.rsplit(b":", 1)[1]) if name.startswith(PREFIX) else None


def short(value):
    text = repr(value)
    return text if len(text) < 120 else f"{text[:100]}... ({len(value)} long)"


class Link:
    """A pipeline to one server. Answers of one chunk fit into the kernel's buffers."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.data, self.lines = bytearray(), 0

    def put(self, data, lines):
        self.data += data
        self.lines += lines
        if len(self.data) > 8 * MIB or self.lines > 4000:
            self.settle()

    def settle(self):
        self.socket.sendall(self.data)
        self.data.clear()
        got = b""
        while (count := got.count(b"\r\n")) < self.lines:
            more = self.socket.recv(1 << 16)
            assert more, "a member closed the connection"
            got += more
        assert count == self.lines, got[-200:]
        if got.startswith(b"-") or b"\n-" in got:
            raise AssertionError(next(line for line in got.splitlines() if line.startswith(b"-")))
        self.lines = 0

    def close(self):
        self.socket.close()


def look(member):
    """(name, digest, deadline in ms or -1) of all keys of a member. A key may come twice, as with any SCAN."""
    client = redis.Redis(port=member.port, socket_timeout=60)
    script, cursor = client.register_script(_LOOK), 0
    try:
        while True:
            cursor, text = script(args=[cursor, MEMBERS_PAGE])
            for line in text.split(b"\n") if text else ():
                name, digest, deadline = line.rsplit(b" ", 2)
                yield name, int(digest, 16), int(deadline)
            if int(cursor) == 0:
                return
    finally:
        client.connection_pool.disconnect()


def restores(members):
    """RESTOREs that these servers have done so far."""
    done = 0
    for member in members:
        client = redis.Redis(port=member.port, socket_timeout=10)
        done += client.info("commandstats").get("cmdstat_restore", {"calls": 0})["calls"]
        client.connection_pool.disconnect()
    return done
