"""Redis's own behaviour, command by command, side by side: the same generated commands go to one plain redis-server
and to a proxy over five members; replies are the same byte for byte, but for what the tables of differential/known.py
list with its reason; and the members then hold together what the plain server holds.

RINGSHIFT_SEED          the seed (printed with every failure); by default a fixed one, so that CI is repeatable
RINGSHIFT_DIFF_COUNT    how many commands (20000); a long search: RINGSHIFT_SEED=$RANDOM RINGSHIFT_DIFF_COUNT=1000000
RINGSHIFT_DIFF_ONLY     only these forms of differential/commands.txt, such as "SORT,XREAD/one"
RINGSHIFT_DIFF_STRICT   1: an entry of NOT_YET that is served is a failure
"""
import os
import random
import time

import pytest

from differential import known
from differential.batch import make_batch, make_batches_apart
from differential.bench import Bench
from differential.dialogues import hold, read_dialogues, words
from differential.fixtures import sides  # noqa: F401
from differential.grammar import Command, Maker, read_forms
from differential.resp import Connection, encode, parse

SEED = int(os.environ.get("RINGSHIFT_SEED") or 20240607)
COUNT = int(os.environ.get("RINGSHIFT_DIFF_COUNT") or 20000)
ONLY = [label for label in (os.environ.get("RINGSHIFT_DIFF_ONLY") or "").split(",") if label]
BATCH = 500
SHOWN = int(os.environ.get("RINGSHIFT_DIFF_SHOWN") or 8)  # So many differences are shown; the search ends there.
FORMS = read_forms()
DIALOGUES = read_dialogues()
STRICT = os.environ.get("RINGSHIFT_DIFF_STRICT") == "1"


def still_missing(bench, forms):
    """The labels of NOT_YET that this build indeed refuses."""
    missing = set()
    bench.flush()
    sides = [Connection(bench.plain_port), Connection(bench.proxy_port)]
    maker = Maker(random.Random(1))
    for form in forms:
        if form.label not in known.NOT_YET or form.label in missing:
            continue
        for _ in range(12):
            arguments = maker.command(form, tag=b"a", right=True).arguments
            replies = [side.ask(*arguments) for side in sides]
            if known.refused(replies[1]) and not known.compare(arguments, *replies):
                missing.add(form.label)
                break
    for side in sides:
        side.close()
    return missing


def payloads(bench):
    """Of DUMP, for RESTORE: good ones of several types, and broken ones."""
    bench.flush()
    plain = bench.plain_admin
    for command in ("SET p:s text", "RPUSH p:l a b c", "SADD p:t 1 2 3", "HSET p:h f v", "ZADD p:z 1 a 2.5 b",
                    "PFADD p:p x", "XADD p:x 1-1 f v"):
        plain.ask(*command.split())
    good = [parse(plain.ask("DUMP", "p:" + kind))[1] for kind in "slthzpx"]
    return good + [good[0][:-1] + b"\x00", b"", b"\x00" * 12]


def search(bench, forms, count, seed):
    """Batches of commands until so many were sent or enough differences found. Returns those, as texts."""
    dumps, done, found = payloads(bench), 0, []
    began = time.monotonic()
    while done < count and len(found) < SHOWN:
        dice = random.Random(seed + done)
        batch = make_batch(Maker(dice, dumps), forms, min(BATCH, count - done), bench.missing)
        protocol = dice.choice((2, 3))
        mismatch = bench.run(batch, protocol, seed + done)
        if mismatch:
            mismatch = bench.shorten(mismatch.before, protocol, seed + done) or mismatch
            label = mismatch.before[-1].label
            forms = [form for form in forms if form.label != label]  # The next difference is another one.
            found.append(f"{label}, batch of seed {seed + done}, RESP{protocol}:\n{mismatch.show()}")
        done += len(batch)
    print(f"seed {seed}: {done} commands of {len(forms)} forms in {time.monotonic() - began:.1f} s, "
          f"{len(found)} differences")
    return found


def test_generated_commands(sides):
    missing = still_missing(sides, FORMS)
    sides.missing = {label.split("/")[0] for label in missing}
    if landed := sorted(known.NOT_YET - missing):
        print("served, and still in NOT_YET:", *landed)
    forms = [f for f in FORMS if f.label not in missing]
    if ONLY:
        forms = [f for f in forms if f.label in ONLY or f.name in ONLY]
    known.seen_defects.clear()
    found = search(sides, forms, COUNT, SEED)
    print(f"known defects met: {dict(known.seen_defects)}; "
          f"not met: {[text for text, _ in known.DEFECTS if text not in known.seen_defects]}")
    assert not found, "\n\n".join([f"{len(found)} differences, seed {SEED} (RINGSHIFT_SEED)", *found])
    assert sides.cluster.proxies[0].alive()


def test_two_redis_servers_do_not_differ(sides):
    """The comparison itself, over every form: what it excuses is enough to call Redis equal to Redis."""
    members = sides.cluster.members
    redis = Bench(members[5].port, members[0].port, [members[0].port])
    try:
        found = search(redis, FORMS, min(COUNT, 6000), SEED)
        together = redis.run_together(make_batches_apart(Maker(random.Random(SEED)), FORMS, 12, 150), [2, 3] * 6, SEED)
        found += [together.show()] if together else []
        texts = [(name, differing(redis, name, 2)) for name in DIALOGUES]
        found += [f"{name}, {text}" for name, text in texts if text]
    finally:
        redis.close()
    assert not found, "\n\n".join(found)


def test_clients_at_once(sides):
    """Twelve clients, of both protocols, with pipelines on their way at the same time: each hears its own answers."""
    missing = still_missing(sides, FORMS)
    sides.missing = {label.split("/")[0] for label in missing}
    forms = [form for form in FORMS if form.label not in missing]
    for seed in range(SEED, SEED + max(1, COUNT // 4000)):
        batches = make_batches_apart(Maker(random.Random(seed)), forms, 12, 150)
        found = sides.run_together(batches, [2, 3] * 6, seed)
        assert found is None, f"seed {seed}:\n{found.show()}"


@pytest.mark.parametrize("change", [
    "SET {a}s0 changed", "DEL {a}s0", "PEXPIRE {a}s0 5000000", "SADD {a}t0 more", "SET other 1", "RPUSH {a}l0 x",
    "HSET {a}h0 f1 changed"])
def test_a_difference_of_data_is_found(sides, change):
    """The comparison itself: one member's data changed behind the proxy's back."""
    commands = ["SET {a}s0 v EX 9000", "SADD {a}t0 a b c", "RPUSH {a}l0 a", "HSET {a}h0 f1 v f2 w"]
    batch = [Command(text.encode().split(), "x") for text in commands]
    assert sides.run(batch) is None
    owner = next(m for m in sides.members if m.ask("EXISTS", "{a}s0") == b":1\r\n")
    owner.ask(*change.split())
    assert sides.states_differ()


def test_every_command_is_covered(sides):
    """Each command of Redis, and each subcommand, has a form in commands.txt, or is refused, or has a dialogue."""
    everything = {name.decode().upper() for _, name in parse(sides.plain_admin.ask("COMMAND", "LIST"))[1]}
    ours = {form.name for form in FORMS} | known.REFUSED.keys() | known.ELSEWHERE.keys()
    ours |= {f"{form.name}|{form.pattern[0][1]}" for form in FORMS if form.pattern and form.pattern[0][0] == "word"}
    uncovered = {name for name in everything - ours if name.split("|")[0] not in known.REFUSED}
    assert not uncovered, f"without a test: {sorted(uncovered)}"
    unknown = {name for name in (known.REFUSED.keys() | known.ELSEWHERE.keys()) - everything}
    assert not unknown, f"no commands of this Redis: {sorted(unknown)}"
    assert known.NOT_YET <= {form.label for form in FORMS}, "labels of no form"


def test_not_yet_is_true(sides):
    """With RINGSHIFT_DIFF_STRICT=1, what is served must not be listed as missing, nor what is mended as a defect."""
    landed = sorted(known.NOT_YET - still_missing(sides, FORMS))
    if landed and not STRICT:
        pytest.skip(f"served by now, take these out of NOT_YET: {' '.join(landed)}")
    assert not landed


@pytest.mark.parametrize("protocol", [2, 3])
def test_refused_commands(sides, protocol):
    """An error each, nothing done, and the connection goes on."""
    arguments = {"DEBUG": ["SLEEP", "5"], "MIGRATE": ["127.0.0.1", "1", "{a}k", "0", "1"], "CLUSTER": ["SLOTS"],
                 "REPLICAOF": ["NO", "ONE"], "SLAVEOF": ["127.0.0.1", "1"], "PSYNC": ["?", "-1"],
                 "REPLCONF": ["ACK", "1"], "MODULE": ["LOAD", "x.so"], "SWAPDB": ["0", "1"], "ACL": ["DELUSER", "default"],
                 "PFDEBUG": ["GETREG", "{a}k"], "SCRIPT|DEBUG": ["YES"], "RESTORE-ASKING": ["{a}k", "0", "x"]}
    sides.flush()
    proxy = Connection(sides.proxy_port)
    proxy.ask("HELLO", protocol)
    proxy.ask("SET", "{a}k", "kept")
    for name in known.REFUSED:
        proxy.send(encode([*name.split("|"), *arguments.get(name, [])]) + encode(["GET", "{a}k"]))
        reply = proxy.reply()
        assert reply.startswith(b"-ERR") and len(reply) < 400, (name, reply)
        assert proxy.reply() == b"$4\r\nkept\r\n", name
    proxy.close()
    assert all(member.process.alive() for member in sides.cluster.members)


def is_reply(answer):
    return answer[:1] in (b"+", b"-", b":", b"$", b"*", b"%", b"~", b">", b"_", b"#", b",")


def differing(bench, name, protocol):
    """Where a dialogue goes another way with the proxy; empty when it does not."""
    bench.flush()
    for (line, arguments, a), (_, _, b) in zip(*(hold(DIALOGUES[name], port, protocol)
                                                 for port in (bench.plain_port, bench.proxy_port))):
        if a != b and not (is_reply(a) and is_reply(b) and known.compare(arguments, a, b)):
            return f"RESP{protocol} at: {line}\n  redis: {a[:300]!r}\n  proxy: {b[:300]!r}"
    return ""


def test_dialogues(sides):
    """Several connections in turn: transactions that others disturb, who is woken, who hears what."""
    different = {name: "\n".join(filter(None, (differing(sides, name, protocol) for protocol in (2, 3))))
                 for name in DIALOGUES}
    wrong = [f"{name}, {text}" for name, text in different.items() if text and name not in known.NOT_YET_DIALOGUES]
    landed = [name for name in known.NOT_YET_DIALOGUES if not different[name]]
    if landed:
        print("held as by Redis, and still in NOT_YET_DIALOGUES:", *sorted(landed))
    assert not wrong, "\n".join([f"{len(wrong)} dialogues differ", *wrong])
    assert not (STRICT and landed)


# Commands over keys of two members, which one server does and a cluster cannot: {1} and {2} are on different members.
OVER_TWO_MEMBERS = """
MSETNX {1}s v {2}s v
RENAME {1}s {2}s
RENAMENX {1}s {2}n
COPY {1}s {2}n
SDIFF {1}t {2}t
SINTER {1}t {2}t
SUNION {1}t {2}t
SINTERCARD 2 {1}t {2}t
SDIFFSTORE {1}n {1}t {2}t
SINTERSTORE {1}n {1}t {2}t
SUNIONSTORE {2}n {1}t {1}t
SMOVE {1}t {2}t a
LMOVE {1}l {2}l LEFT RIGHT
RPOPLPUSH {1}l {2}l
LMPOP 2 {1}l {2}l LEFT
BLPOP {1}l {2}l 0.01
BRPOP {1}l {2}l 0.01
BLMOVE {1}l {2}l LEFT RIGHT 0.01
BRPOPLPUSH {1}l {2}l 0.01
BLMPOP 0.01 2 {1}l {2}l LEFT
BZPOPMIN {1}z {2}z 0.01
BZPOPMAX {1}z {2}z 0.01
BZMPOP 0.01 2 {1}z {2}z MIN
ZMPOP 2 {1}z {2}z MIN
ZDIFF 2 {1}z {2}z
ZINTER 2 {1}z {2}z
ZUNION 2 {1}z {2}z
ZINTERCARD 2 {1}z {2}z
ZDIFFSTORE {1}n 2 {1}z {2}z
ZINTERSTORE {1}n 2 {1}z {2}z
ZUNIONSTORE {2}n 2 {1}z {1}z
ZRANGESTORE {1}n {2}z 0 -1
BITOP AND {1}n {1}s {2}s
PFMERGE {1}p {2}p
PFCOUNT {1}p {2}p
LCS {1}s {2}s
SORT {1}l ALPHA STORE {2}n
GEOSEARCHSTORE {1}n {2}g FROMLONLAT 0 0 BYRADIUS 1 km
GEORADIUS {1}g 0 0 1 km STORE {2}n
GEORADIUSBYMEMBER {1}g m 1 km STOREDIST {2}n
XREAD STREAMS {1}x {2}x 0 0
XREADGROUP GROUP g c STREAMS {1}x {2}x > >
EVAL "return 1" 2 {1}s {2}s
EVALSHA ffffffffffffffffffffffffffffffffffffffff 2 {1}s {2}s
FCALL f 2 {1}s {2}s
WATCH {1}s {2}s
""".strip().splitlines()


def everything(member):
    """Key -> its dump."""
    return {key: member.ask("DUMP", key) for _, key in parse(member.ask("KEYS", "*"))[1]}


def test_commands_over_two_members_say_crossslot(sides):
    sides.flush()
    proxy = Connection(sides.proxy_port)
    owners = sides.cluster.owners([b"{%d}" % n for n in range(50)], sides.cluster.spec)
    one = b"{0}"
    two = next(tag for tag in owners if owners[tag] != owners[one])
    for tag in (one, two):
        for command in ("SET Ts v", "SADD Tt a b", "RPUSH Tl a b", "ZADD Tz 1 a", "PFADD Tp a", "GEOADD Tg 0 0 m",
                        "XADD Tx 1-1 f v", "XGROUP CREATE Tx g 0"):
            parts = [p.replace(b"T", tag) if p[:1] == b"T" else p for p in command.encode().split()]
            assert not proxy.ask(*parts).startswith(b"-")
    before = [everything(member) for member in sides.members]
    assert sum(map(len, before)) == 14
    wrong = []
    for line in OVER_TWO_MEMBERS:
        reply = proxy.ask(*(a.replace(b"{1}", one).replace(b"{2}", two) for a in words(line)))
        name = line.split()[0]
        not_yet = any(label.split("/")[0] == name for label in known.NOT_YET)
        if not_yet and known.refused(reply):
            continue
        if not reply.startswith(b"-CROSSSLOT "):
            wrong.append(f"{line}: {reply!r}")
    assert not wrong, "\n".join(wrong)
    assert [everything(member) for member in sides.members] == before, "something was done all the same"
    assert proxy.ask("GET", one + b"s") == b"$1\r\nv\r\n"
    proxy.close()


def whole_scan(connection, *options):
    """All keys that a scan gives, and how many it gave."""
    cursor, keys, given = b"0", set(), 0
    for _ in range(10000):
        (_, cursor), (_, part) = parse(connection.ask("SCAN", cursor, *options))[1]
        keys.update(value for _, value in part)
        given += len(part)
        if cursor == b"0":
            return keys, given
    raise AssertionError("the scan does not end")


def test_a_whole_scan(sides):
    """One cursor over all members: every key, each once, as nothing changes meanwhile."""
    sides.flush()
    proxy, plain = Connection(sides.proxy_port), sides.plain_admin
    if known.refused(proxy.ask("SCAN", "0")) and not STRICT:
        pytest.skip("SCAN is not served yet")
    for side in (proxy, plain):
        for i in range(700):
            assert side.ask(*(["SET", f"s:{i}", "v"] if i % 3 else ["SADD", f"t:{i}", "m"])).startswith((b"+", b":"))
    for options in ([], ["COUNT", "7"], ["COUNT", "1000"], ["MATCH", "s:1*"], ["TYPE", "set", "COUNT", "50"],
                    ["MATCH", "nothing", "TYPE", "hash"], ["MATCH", "t:*", "COUNT", "3"]):
        keys, given = whole_scan(proxy, *options)
        assert keys == whole_scan(plain, *options)[0], options
        assert given == len(keys), f"{given} given, of which {len(keys)} different, {options}"
    for command in (["SCAN"], ["SCAN", "x"], ["SCAN", "0", "COUNT", "0"], ["SCAN", "0", "COUNT", "x"],
                    ["SCAN", "0", "NOSUCH"], ["SCAN", "0", "MATCH"], ["SCAN", "0", "TYPE", "nosuch", "COUNT", "10000"]):
        assert known.compare([b"SCAN"], plain.ask(*command), proxy.ask(*command)), command
    proxy.close()
