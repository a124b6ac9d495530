"""What may differ between the proxy and one redis-server, and why: the only place that excuses anything.

DIFFERENCES    the replies that are not compared byte for byte: how they are compared, and the reason
REFUSED        what the proxy answers with an error where Redis does not; tried one by one, not mixed in
ELSEWHERE      commands that need a dialogue of their own; where that is
NOT_YET        what this build does not serve. Forms of commands.txt by their label. An entry that is served all the
               same is generated and compared like any other; RINGSHIFT_DIFF_STRICT=1 makes it a failure, so that
               the list stays true
"""
from collections import Counter

from .resp import parse

# Comparators: (arguments, plain reply, proxy's reply) -> whether they agree. Replies are (kind, value), by resp.parse.


def unordered(_, plain, proxy):
    return plain[0] == proxy[0] in ("*", "~") and None not in (plain[1], proxy[1]) and \
        Counter(map(repr, plain[1])) == Counter(map(repr, proxy[1]))


def _pairs(values):
    return Counter((repr(values[i]), repr(values[i + 1])) for i in range(0, len(values), 2))


def unordered_pairs(_, plain, proxy):
    return plain[0] == proxy[0] in ("*", "%") and len(plain[1]) == len(proxy[1]) and \
        _pairs(plain[1]) == _pairs(proxy[1])


def same_form(_, plain, proxy):
    """Kinds and counts agree; values need not."""
    if plain[0] != proxy[0] or plain[0] == "-":
        return False
    if isinstance(plain[1], list) and isinstance(proxy[1], list):
        return len(plain[1]) == len(proxy[1]) and all(same_form(_, a, b) for a, b in zip(plain[1], proxy[1]))
    return (plain[1] is None) == (proxy[1] is None)


def same_kind(_, plain, proxy):
    return plain[0] == proxy[0] != "-"


def near(slack):
    """Integers may be off by slack, but a negative one says something else than how much; all else is equal."""
    def compare(arguments, plain, proxy):
        if plain[0] != proxy[0]:
            return False
        if plain[0] == ":":
            return plain[1] == proxy[1] or (min(plain[1], proxy[1]) >= 0 and abs(plain[1] - proxy[1]) <= slack)
        if isinstance(plain[1], list) and isinstance(proxy[1], list):
            return len(plain[1]) == len(proxy[1]) and \
                all(compare(arguments, a, b) for a, b in zip(plain[1], proxy[1]))
        return plain[1] == proxy[1]
    return compare


def scan(pairs):
    """[cursor, elements] of a scan asked for more than there is: in one go, in any order."""
    def compare(arguments, plain, proxy):
        if plain[0] != "*" or proxy[0] != "*" or len(plain[1]) != 2 or len(proxy[1]) != 2:
            return False
        if arguments[2] != b"0" or (plain[1][0], proxy[1][0]) != (("$", b"0"),) * 2:
            return same_kind(arguments, plain, proxy)
        return (unordered_pairs if pairs else unordered)(arguments, plain[1][1], proxy[1][1])
    return compare


def dump(_, plain, proxy):
    """A payload of a hash table (types 2 and 4) lists it in its own order; a stream (15, 19) has clock times."""
    if plain[0] != "$" or proxy[0] != "$" or None in (plain[1], proxy[1]):
        return False
    return plain[1][0] == proxy[1][0] in (2, 4, 15, 19) and abs(len(plain[1]) - len(proxy[1])) < 16


def object_info(arguments, plain, proxy):
    """Only IDLETIME may differ, by much: small integers are shared objects that nobody touched since the start."""
    return arguments[1].upper() == b"IDLETIME" and plain[0] == proxy[0] == ":"


def hello(_, plain, proxy):
    """The same map but for the connection's id."""
    if plain[0] != proxy[0] or plain[0] == "-":
        return False
    p, q = plain[1], proxy[1]
    return len(p) == len(q) and all(a == b for i, (a, b) in enumerate(zip(p, q)) if p[i - 1] != ("$", b"id"))


def own(_, plain, proxy):
    """The proxy answers for itself: anything but an error. Where Redis answers one, so does the proxy, the same."""
    return plain[0] != "-" and proxy[0] != "-"


def memory(arguments, plain, proxy):
    return (same_form if arguments[1].upper() == b"USAGE" else own)(arguments, plain, proxy)


HASH_ORDER = "a hash table's order depends on the seed that each server draws at its start"
RANDOM = "random"
CLOCK = "the two servers did it at different moments"
OWN = "the proxy answers for itself"

DIFFERENCES = {
    "SMEMBERS": (unordered, HASH_ORDER), "SUNION": (unordered, HASH_ORDER), "SINTER": (unordered, HASH_ORDER),
    "SDIFF": (unordered, HASH_ORDER), "HKEYS": (unordered, HASH_ORDER), "HVALS": (unordered, HASH_ORDER),
    "HGETALL": (unordered_pairs, HASH_ORDER), "KEYS": (unordered, HASH_ORDER), "HSCAN": (scan(True), HASH_ORDER),
    "SSCAN": (scan(False), HASH_ORDER), "ZSCAN": (scan(True), HASH_ORDER), "DUMP": (dump, HASH_ORDER + "; clock"),
    "SPOP": (same_form, RANDOM), "SRANDMEMBER": (same_form, RANDOM), "HRANDFIELD": (same_form, RANDOM),
    "DBSIZE": (near(3), "SET with a past EXAT leaves a key that counts until it is found, as RANDOMKEY does by chance"),
    "ZRANDMEMBER": (same_form, RANDOM), "RANDOMKEY": (same_form, RANDOM), "LOLWUT": (same_kind, RANDOM),
    "TTL": (near(1), CLOCK), "PTTL": (near(2000), CLOCK), "EXPIRETIME": (near(1), CLOCK),
    "PEXPIRETIME": (near(2000), CLOCK), "XPENDING": (near(20000), CLOCK), "XINFO": (near(20000), CLOCK),
    "XADD": (same_form, CLOCK), "OBJECT": (object_info, CLOCK), "TIME": (same_form, CLOCK),
    "LASTSAVE": (same_form, CLOCK),
    "MEMORY": (memory, "allocators round as they like, and each member has its own"),
    "HELLO": (hello, "each connection has an id of its own"), "CLIENT": (own, OWN), "INFO": (own, OWN),
    "COMMAND": (own, OWN + ": it lists what it serves"), "CONFIG": (own, OWN), "SLOWLOG": (own, OWN),
    "FUNCTION": (same_kind, OWN), "ROLE": (own, OWN), "LATENCY": (own, OWN),
    "SCRIPT": (own, OWN),
}

# Label -> why. The proxy's answer is an error, nothing is done, the connection lives.
REFUSED = {
    "CLUSTER": "a cluster of another kind", "DEBUG": "it reaches into one server",
    "MIGRATE": "moves keys behind the proxy's back",
    "SHUTDOWN": "administers one server", "REPLICAOF": "administers one server", "SLAVEOF": "administers one server",
    "MONITOR": "shows what other clients do", "SYNC": "replication", "PSYNC": "replication", "REPLCONF": "replication",
    "FAILOVER": "administers one server", "MODULE": "administers one server", "SAVE": "administers one server",
    "BGSAVE": "administers one server", "BGREWRITEAOF": "administers one server", "SWAPDB": "many members",
    "ACL": "administers one server", "PFDEBUG": "reaches into one server",
    "PFSELFTEST": "reaches into one server", "RESTORE-ASKING": "a cluster of another kind",
    "ASKING": "a cluster of another kind", "CONFIG|REWRITE": "the proxy has no file of its own to write",
    "SCRIPT|DEBUG": "the debugger takes over a connection to one server",
    "FLUSHALL": "behind a setting", "FLUSHDB": "behind a setting",
}

ELSEWHERE = {
    "SCAN": "test_a_whole_scan", "MULTI": "transactions of make_batch()", "SUBSCRIBE": "dialogues",
    "PSUBSCRIBE": "dialogues",
    "SSUBSCRIBE": "dialogues", "UNSUBSCRIBE": "dialogues", "PUNSUBSCRIBE": "dialogues", "SUNSUBSCRIBE": "dialogues",
    "QUIT": "dialogues", "RESET": "dialogues", "AUTH": "dialogues", "EVALSHA": "dialogues", "FCALL": "dialogues",
    "FCALL_RO": "dialogues", "CLIENT|REPLY": "dialogues", "CLIENT|PAUSE": "dialogues", "FUNCTION|LOAD": "dialogues",
    "FUNCTION|FLUSH": "dialogues", "MOVE": "tests/unit/proxy/databases_test.cpp, beside a plain redis-server",
}

NOT_YET = set("""
    LASTSAVE MEMORY/doctor MEMORY/mallocstats MEMORY/purge MEMORY/stats
""".split())

def refused(reply):
    return b"is not supported by ringshift" in reply or \
        reply.startswith((b"-ERR unknown command", b"-ERR unknown subcommand", b"-ERR Invalid command specified"))


# What is wrong today and not yet mended: (what, whether it explains two replies). An entry goes with its mending.
DEFECTS = [
]
seen_defects = Counter()

# Dialogues that this build does not hold as Redis does, by their name.
NOT_YET_DIALOGUES = set("""
""".split())


def compare(arguments, plain, proxy, queued=()):
    """Whether two raw replies agree. queued: the commands of a transaction, when this is the answer to EXEC."""
    if plain == proxy:
        return True
    if not plain or not proxy:
        return False
    for text, explains in DEFECTS:
        if explains(arguments, plain, proxy):
            seen_defects[text] += 1
            return True
    a, b = parse(plain), parse(proxy)
    name = arguments[0].upper().decode(errors="replace")
    if name == "EXEC" and a[0] == b[0] == "*" and None not in (a[1], b[1]):
        return len(a[1]) == len(b[1]) == len(queued) and \
            all(x == y or _agree(q, x, y) for q, x, y in zip(queued, a[1], b[1]))
    return _agree(arguments, a, b)


def _agree(arguments, a, b):
    known = DIFFERENCES.get(arguments[0].upper().decode(errors="replace"))
    return known is not None and known[0](arguments, a, b)
