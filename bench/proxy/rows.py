"""What is measured: the rows of the table and their targets (DESIGN, section 8)."""
import dataclasses

from errors import BenchError
from farm import BIG, SMALL

OURS, NUTCRACKER, REDIS = "ringshift", "nutcracker", "redis"
IDLE_BYTES_TARGET = 4096
IDLE_CPU_TARGET = 5.0  # ms in a second: half a percent of a core.


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    what: str
    # The first is judged, against the second; the others stand beside them.
    servers: tuple = (OURS, NUTCRACKER, REDIS)
    kind: str = "load"  # load, idle or publish.
    command: tuple = ()
    keys: tuple = SMALL
    pipeline: int = 1
    clients: int = 50
    target: float | None = None  # The ratio of CPU per request; of idle rows: bytes of a client.
    pairs: int = 5
    longer: float = 1.0  # Of runs in which connecting is a large part.
    quick: bool = True  # Whether --quick measures it unasked.
    subscribers: int = 0


def key_words(command, keys, count=1):
    return (command, *[f"{keys[0]}:__rand_int__"] * count)


GET, SET, GET4K = key_words("GET", SMALL), (*key_words("SET", SMALL), "x" * SMALL[2]), key_words("GET", BIG)
MGET10, MGET100 = key_words("MGET", SMALL, 10), key_words("MGET", SMALL, 100)


def judged(name, what, command, pipeline, target, **more):
    return Row(name, f"{what}, P={pipeline}", command=command, pipeline=pipeline, target=target, pairs=9, **more)


ROWS = (
    judged("get-p1", "GET of 64 bytes", GET, 1, 0.85),
    judged("get-p16", "GET of 64 bytes", GET, 16, 0.42),
    judged("get-p64", "GET of 64 bytes", GET, 64, 0.16),
    judged("set-p1", "SET of 64 bytes", SET, 1, 0.90),
    judged("set-p16", "SET of 64 bytes", SET, 16, 0.48),
    judged("set-p64", "SET of 64 bytes", SET, 64, 0.22),
    judged("mget10-p1", "MGET of 10 keys", MGET10, 1, 0.65),
    judged("mget100-p1", "MGET of 100 keys", MGET100, 1, 0.70),
    judged("get4k-p16", "GET of 4 KiB", GET4K, 16, 0.52, keys=BIG),
    Row("same-p16", "GET, P=16, two processes of the same ringshift: the noise of a ratio", command=GET, pipeline=16,
        servers=(OURS, "ringshift-again"), pairs=9, quick=False),
    Row("get-p1-2threads", "GET, P=1, two threads of ours (nutcracker has one)", command=GET,
        servers=("ringshift-2threads", NUTCRACKER, OURS)),
    Row("get-p16-2threads", "GET, P=16, two threads of ours (nutcracker has one)", command=GET, pipeline=16,
        servers=("ringshift-2threads", NUTCRACKER, OURS), quick=False),
    Row("get-p1-400", "GET, P=1, 400 clients", command=GET, clients=400),
    Row("get-p16-400", "GET, P=16, 400 clients", command=GET, pipeline=16, clients=400, quick=False),
    Row("get-p1-5000", "GET, P=1, 5000 clients", command=GET, clients=5000, longer=2, quick=False),
    Row("get-p1-tls", "GET, P=1, with TLS against ours without", command=GET,
        servers=("ringshift-tls", OURS, "redis-tls"), longer=2, quick=False),
    Row("get-p16-tls", "GET, P=16, with TLS against ours without", command=GET, pipeline=16,
        servers=("ringshift-tls", OURS, "redis-tls"), longer=2),
    Row("publish-1", "PUBLISH of 64 bytes to 1 subscriber, 10 publishers (nutcracker has none)", kind="publish",
        servers=(OURS, REDIS), clients=10, subscribers=1),
    Row("publish-50", "PUBLISH of 64 bytes to 50 subscribers, 10 publishers (nutcracker has none)", kind="publish",
        servers=(OURS, REDIS), clients=10, subscribers=50),
    Row("idle", "memory of a client that idles, CPU while 5000 do", kind="idle", clients=5000, pairs=3,
        target=IDLE_BYTES_TARGET),
    Row("idle-tls", "the same with TLS", kind="idle", clients=5000, pairs=2, target=IDLE_BYTES_TARGET,
        servers=("ringshift-tls", "redis-tls"), quick=False),
)


def choose(only, quick):
    """The rows that were asked for: names, or beginnings of them."""
    if not only:
        return [row for row in ROWS if row.quick or not quick]
    wanted = [word for text in only for word in text.split(",") if word]
    for word in wanted:
        if not any(row.name.startswith(word) for row in ROWS):
            raise BenchError(f"no row is named {word}; there are: {', '.join(row.name for row in ROWS)}")
    exact = {row.name for row in ROWS} & set(wanted)
    return [row for row in ROWS if row.name in exact or
            any(row.name.startswith(word) for word in wanted if word not in exact)]
