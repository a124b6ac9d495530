"""Both sides and what runs on them: a batch of commands compared reply by reply and then key by key; and the shortest
part of a batch that still shows a difference."""
import random
import time
from dataclasses import dataclass, field

from .grammar import READERS, Command
from .known import compare, refused
from .resp import Closed, Connection, encode, encode_inline, parse

RESERVED = b"rs:"


@dataclass
class Mismatch:
    """What was sent last, on top of `before`; what each side said."""
    what: str
    plain: bytes
    proxy: bytes
    before: list = field(default_factory=list)

    def show(self):
        sent = "\n".join("    " + c.show() for c in self.before[-25:])
        if len(self.before) > 25:
            sent = f"    ({len(self.before) - 25} before, which no shorter run did without)\n" + sent
        return f"  {self.what}\n  sent:\n{sent}\n  redis: {self.plain[:400]!r}\n  proxy: {self.proxy[:400]!r}"


class Client:
    """One client with a connection to each side, and how far it is in its batch."""

    def __init__(self, bench, batch):
        self.bench, self.batch = bench, batch
        self.at = self.until = 0
        self.queued = None  # The commands of the transaction that is open.
        self.sides = [Connection(bench.plain_port), Connection(bench.proxy_port)]

    def close(self):
        for side in self.sides:
            side.close()

    def greet(self, protocol):
        answers = [side.ask(b"HELLO", protocol) for side in self.sides]
        if not compare([b"HELLO"], *answers):
            return Mismatch("replies to HELLO differ", *answers, [Command([b"HELLO", b"%d" % protocol], "HELLO")])
        return None

    def rest(self):
        return len(self.batch) - self.at

    def send(self, dice):
        """The next pipeline; now and then in two writes."""
        depth = dice.choice((1, 1, 2, 5, 20, 60, 200)) if dice else 1
        self.until = min(self.at + depth, len(self.batch))
        data = b"".join((encode_inline if c.inline else encode)(c.arguments) for c in self.batch[self.at:self.until])
        cut = dice.randrange(len(data)) if dice and data and dice.random() < 0.2 else len(data)
        for part in (data[:cut], data[cut:]):
            for side in self.sides:
                try:
                    side.send(part)
                except Closed:
                    pass  # Its answers, if any, are still to be read; the first that is missing tells.

    def receive(self):
        """The answers to it; a Mismatch when one differs."""
        for number in range(self.at, self.until):
            command, replies = self.batch[number], []
            for side in self.sides:
                try:
                    replies.append(side.reply())
                except Closed as closed:
                    return self._mismatch(f"no reply from {'the proxy' if replies else 'redis'}", number,
                                          [*replies, str(closed).encode(), b""])
            if not compare(command.arguments, *replies, self.queued or ()) and not self._excused(command, *replies):
                return self._mismatch("replies differ", number, replies)
            name = command.arguments[0].upper()
            if name == b"MULTI" and self.queued is None and replies[0][:1] == b"+":
                self.queued = []
            elif replies[0] == b"+QUEUED\r\n":
                self.queued.append(command.arguments)
            elif name in (b"EXEC", b"DISCARD") and len(command.arguments) == 1:
                self.queued = None
        self.at = self.until
        return None

    def _mismatch(self, what, number, replies):
        return Mismatch(what, replies[0], replies[1], self.batch[:number + 1])

    def _excused(self, command, plain, proxy):
        """What was made wrong may have become a key of another member, or a form that is not served yet. Only where it
        does nothing in Redis either."""
        name = command.label.split("/")[0]
        refusal = proxy.startswith(b"-CROSSSLOT") or (name in self.bench.missing and refused(proxy))
        return command.wrong and refusal and (plain.startswith(b"-") or name in READERS)


class Bench:
    def __init__(self, plain_port, proxy_port, member_ports):
        self.plain_port, self.proxy_port = plain_port, proxy_port
        self.plain_admin = Connection(plain_port)
        self.members = [Connection(port) for port in member_ports]
        self.missing = set()   # Names of which not every form is served yet.
        self.slowest_ms = 0.0  # Of a round on both: how far apart the two may have done the same thing.

    @classmethod
    def of_six(cls, cluster):
        """A proxy over five members of this new cluster, and the sixth server, which the spec does not name, alone."""
        spec = cluster.write_spec(members=[f"cache-{n}" for n in range(1, 6)],
                                  placement={"algorithm": "ring", "hash": "xxh3", "points": 256, "hash_tag": "{}"},
                                  databases=16)
        cluster.start_static(spec)
        bench = cls(cluster.members[5].port, cluster.proxies[0].port, [m.port for m in cluster.members[:5]])
        bench.cluster = cluster
        return bench

    def close(self):
        for connection in (self.plain_admin, *self.members):
            connection.close()

    def flush(self):
        for side in (self.plain_admin, *self.members):
            for command in ((b"FLUSHALL",), (b"SCRIPT", b"FLUSH"), (b"FUNCTION", b"FLUSH")):
                assert side.ask(*command) == b"+OK\r\n"
        self.slowest_ms = 0.0

    def run(self, batch, protocol=2, seed=None):
        """The first Mismatch of a batch on an empty state, or None. seed: of how it is cut into pipelines; without,
        each command waits for the answer to the one before."""
        return self.run_together([batch], [protocol], seed)

    def run_together(self, batches, protocols, seed=None):
        """As run(), with a client for each batch, all of whose pipelines are on their way at once. What the clients do
        must not depend on which comes first."""
        self.flush()
        dice = random.Random(seed) if seed is not None else None
        clients = []
        try:
            for batch, protocol in zip(batches, protocols):
                clients.append(Client(self, batch))
                if found := clients[-1].greet(protocol):
                    return found
            while any(client.rest() for client in clients):
                began = time.monotonic()
                for client in clients:
                    client.send(dice)
                for client in clients:
                    if found := client.receive():
                        return found
                self.slowest_ms = max(self.slowest_ms, (time.monotonic() - began) * 1000)
        finally:
            for client in clients:
                client.close()
        found = self.states_differ()
        if found:
            found.before = [command for batch in batches for command in batch]
        return found

    # All data.

    def states_differ(self):
        """None when the members together hold exactly what the plain server holds."""
        plain, held = self._keys(self.plain_admin), {}
        for member in self.members:
            for key in self._keys(member):
                if key in held:
                    return Mismatch(f"key {key!r} is on two members", b"", b"")
                held[key] = member
        held = {key: member for key, member in held.items() if not key.startswith(RESERVED)}
        if plain != held.keys():
            return Mismatch("keys differ", repr(sorted(plain - held.keys())).encode(),
                            repr(sorted(held.keys() - plain)).encode())
        slack_ms = 50 + self.slowest_ms
        for key in sorted(plain):
            lives = [self._ask_int(side, b"PEXPIRETIME", key) for side in (self.plain_admin, held[key])]
            if lives[0] != lives[1] and (min(lives) < 0 or abs(lives[0] - lives[1]) > slack_ms):
                return Mismatch(f"expiry of {key!r} differs by more than {slack_ms:.0f} ms",
                                *(str(x).encode() for x in lives))
            sides = (self.plain_admin, held[key])
            dumps = [side.ask(b"DUMP", key) for side in sides]
            if dumps[0] == dumps[1]:
                continue
            kind = self.plain_admin.ask(b"TYPE", key)
            for command in READ_ALL.get(kind, [[b"DUMP"]]):
                arguments = [command[0], *command[1:2], key, *command[2:]] if command[0] == b"XINFO" else \
                    [command[0], key, *command[1:]]
                replies = [side.ask(*arguments) for side in sides]
                if not compare(arguments, *replies):
                    return Mismatch(f"the values of {key!r} differ, by {command[0].decode()}", *replies)
        return None

    @staticmethod
    def _ask_int(side, *arguments):
        return parse(side.ask(*arguments))[1]

    @staticmethod
    def _keys(side):
        return {value for _, value in parse(side.ask(b"KEYS", b"*"))[1]}

    # The shortest reproduction.

    def shorten(self, batch, protocol, seed, seconds=6.0):
        """The Mismatch of as few of the batch's commands as were found to show one within the time."""
        end = time.monotonic() + seconds
        for cutting in (None, seed):  # One by one if that shows it too.
            found = self.run(batch, protocol, cutting)
            if found:
                break
        if not found:
            return None
        best, size = found, max(1, len(found.before) // 2)
        while time.monotonic() < end:
            at, shorter = 0, False
            while at < len(best.before) and time.monotonic() < end:
                less = best.before[:at] + best.before[at + size:]
                found = self.run(less, protocol, cutting) if less else None
                if found and found.what.split("'")[0] == best.what.split("'")[0]:
                    best, shorter = found, True
                else:
                    at += size
            if size == 1 and not shorter:
                break
            size = max(1, size // 2)
        return best


# How to read a whole value where DUMP may differ.
READ_ALL = {
    b"+set\r\n": [[b"SMEMBERS"]], b"+hash\r\n": [[b"HGETALL"]], b"+string\r\n": [[b"GET"]],
    b"+list\r\n": [[b"LRANGE", b"0", b"-1"]], b"+zset\r\n": [[b"ZRANGE", b"0", b"-1", b"WITHSCORES"]],
    b"+stream\r\n": [[b"XRANGE", b"-", b"+"], [b"XINFO", b"STREAM", b"FULL", b"COUNT", b"0"]],
}
