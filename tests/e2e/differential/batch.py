"""A batch: what one connection sends in one run over an empty state."""
import re

from .grammar import BLOCKING, Command

# What commands find; T is replaced by a tag.
DATA = """
SET Ts0 text
SET Ts1 another-text EX 90000
SET Tn0 41
SET Tn1 3.25
SETBIT Tb0 77 1
SET Tb1 abcdefgh
HSET Th0 apple 1 pear two fig 3.5 lime 4
HSET Th1 7 8 10 x date y
RPUSH Tl0 apple 7 pear 10 apple -3 fig apple
RPUSH Tl1 a b c d e f g h i j
RPUSH Tl1 3 1 2
SADD Tt0 7 8 10 -3
SADD Tt1 apple pear fig 7 lime plum
ZADD Tz0 1 apple 2 pear 2.5 fig 3 lime 4 date
ZADD Tz1 1 apple 1 fig 5 7 -2 plum inf kiwi
ZADD Tz1 0 a 0 b 0 c
ZADD Te0 0 apple 0 pear 0 fig 0 lime 0 plum 0 z1
XADD Tx0 1-1 f v apple 1
XADD Tx0 5-1 f w
XADD Tx1 3-0 k 1
XADD Tx0 20-1 f x
XGROUP CREATE Tx0 g1 0
XGROUP CREATE Tx1 g1 $ MKSTREAM
XREADGROUP GROUP g1 alice COUNT 2 STREAMS Tx0 >
GEOADD Tg0 13.361389 38.115556 apple 15.087269 37.502669 pear 13.583333 37.316667 fig
GEOADD Tg1 -122.4 37.8 apple 2.35 48.85 plum
PFADD Tp0 a b c d apple
PFADD Tp1 apple fig x y
""".strip().splitlines()


# Those that name keys of any member, or none.
NOT_IN_TRANSACTIONS = ("WATCH", "PUBLISH", "SPUBLISH", "COMMAND")


def make_transaction(maker, forms):
    """On keys of one tag, and without mistakes: a word put in or left out by mistake may make another one the key, and
    the proxy would refuse the whole."""
    random = maker.random
    tag = random.choice(maker.tags)
    watch = [Command([b"WATCH", b"{%b}s1" % tag], "WATCH")] if random.random() < 0.3 else []
    chosen = [random.choice(forms) for _ in range(random.randrange(8))]
    queued = [maker.command(form, tag, right=True) for form in chosen]
    if random.random() < 0.1:
        queued.append(Command([b"MULTI"], "MULTI"))
    end = Command([b"EXEC"] if random.random() < 0.85 else [b"DISCARD"], "EXEC")
    return [*watch, Command([b"MULTI"], "MULTI"), *queued, end]


def tagged(line, tag):
    parts = [re.sub(rb"^T(?=[a-z]\d$)", lambda _: b"{%b}" % tag, part) for part in line.encode().split()]
    return Command(parts, line.split()[0])


def make_batch(maker, forms, size, missing=()):
    """Commands to be sent one after another on one connection: some data first, then single commands and whole
    transactions, and data again now and then. missing: names of commands that are not served."""
    random = maker.random
    data = [tagged(line, tag) for tag in maker.tags for line in DATA if line.split()[0] not in missing]
    batch = random.sample(data, len(data) * 2 // 3)
    weights = [0.3 if form.name in BLOCKING or form.label.endswith("/block") else 1 if form.has_keys else 0.4
               for form in forms]
    transactions = any(form.label == "EXEC" for form in forms)
    keyed = [form for form in forms if form.has_keys and not form.forget and form.name not in NOT_IN_TRANSACTIONS]
    while len(batch) < size:
        if transactions and random.random() < 0.04:
            batch += make_transaction(maker, keyed)
            continue
        if random.random() < 0.06:
            batch.append(random.choice(data))
        form = random.choices(forms, weights)[0]
        command = maker.command(form)
        batch.append(command)
        if form.label == "WATCH":  # What is watched binds the next transaction to its member.
            batch.append(Command([b"UNWATCH"], "UNWATCH"))
        if form.forget and len(command.arguments) > 1:
            batch.append(Command([b"DEL", command.arguments[1]], "DEL"))
    return batch


def make_batches_apart(maker, forms, clients, size):
    """A batch for each of several clients that work at the same time: each on keys of a tag of its own, and none asks
    what depends on the others."""
    keyed = [form for form in forms if form.has_keys and form.label.split("/")[0] not in NOT_IN_TRANSACTIONS
             and form.name not in BLOCKING and not form.label.endswith("/block")]
    batches = []
    for number in range(clients):
        tag = b"client-%d" % number
        batch = [Command([b"ECHO", tag], "ECHO")]
        while len(batch) < size:
            form = maker.random.choice(keyed)
            batch.append(maker.command(form, tag, right=not form.one_key))
            if form.forget and len(batch[-1].arguments) > 1:
                batch.append(Command([b"DEL", batch[-1].arguments[1]], "DEL"))
            if maker.random.random() < 0.1:
                batch.append(Command([b"ECHO", b"%b at %d" % (tag, len(batch))], "ECHO"))
        batches.append(batch)
    return batches
