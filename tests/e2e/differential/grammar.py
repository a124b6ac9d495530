"""Commands made from commands.txt: valid ones, and such with something wrong.

Keys are few and named by the type they mostly hold, so that commands meet data; one key in twelve is of another type.
All keys of a command share a hash tag, one key alone may be any bytes."""
import re
from dataclasses import dataclass
from pathlib import Path

TAGS = [b"a", b"b", b"c", b"user:7", b"\x00\xff", b"with space", b"\r\n", b"\xc3\xa9"]
ODD_KEYS = [b"", b"{", b"}{", b"{}x", b"a{", b"\r\n$-1\r\n", b"*3\r\n", b"x" * 300, bytes(range(256)), b"{a", b"{{a}}",
            b"plain", b"GET", b"-", b"0"]
TYPES = "sbnhltzxgp"
WORDS = [b"apple", b"pear", b"fig", b"lime", b"date", b"plum", b"kiwi", b"7", b"8", b"10", b"-3", b"007", b"1.5", b"",
         b"\x00", b"\xff\xfe", b"two words", b"a\r\nb", b"nan", b"Apple", b"m" * 70]
INTEGERS = [0, 1, -1, 7, 100, 127, 128, -129, 255, 65536, 2**31, 2**32 + 1, 2**63 - 1, -2**63, 2**62]
FLOATS = [b"0", b"1", b"-1", b"1.5", b"3.0e3", b"-2.25", b"1e-7", b"0.1", b"123456789.123", b"inf", b"-inf", b"+inf",
          b"1e300", b"17179869184", b"-0"]
# Instead of a number, and of a count of keys nothing that is one: the keys would be others then.
BAD_NUMBERS = [b"-1", b"0", b"9223372036854775808", b"-9223372036854775809", b"1.5", b"nan", b"1e400", b"", b" 1",
               b"1 ", b"+1", b"01", b"0x10", b"(1", b"text"]

ANY_SCRIPTS = [
    b"return 1", b"return {KEYS, ARGV}", b"return redis.call('TYPE', KEYS[1])", b"return redis.call('NOSUCH')",
    b"return {1, 'two', false, {ok='fine'}, 3.9}", b"return {err='MINE of my own'}", b"return redis.status_reply('S')",
    b"return redis.pcall('INCR', KEYS[1])", b"syntax error here", b"error('raised')",
    b"return redis.call('GET', KEYS[1])",
    b"return #ARGV", b"return redis.sha1hex(ARGV[1])", b"return cjson.encode({a=1})", b"return nil",
    b"redis.setresp(3); return redis.call('ZSCORE', KEYS[1], 'apple')", b"return {double=1.5}", b"return true",
]
NOKEY_SCRIPTS = [b"return 1", b"return ARGV", b"return redis.call('PING')", b"return {1,{2,{3}}}", b"return 'x'"]
SET_SCRIPTS = [b"return redis.call('SET', KEYS[1], ARGV[1])",
               b"redis.call('APPEND', KEYS[1], ARGV[1]); return redis.call('STRLEN', KEYS[1])"]
BLOCKING = {"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT"}

# Commands over several keys that change nothing.
READERS = set("ZUNION ZINTER ZDIFF SINTER SUNION SDIFF SINTERCARD ZINTERCARD PFCOUNT XREAD LCS MGET EXISTS TOUCH "
              "EVAL_RO EVALSHA_RO FCALL_RO WATCH SORT_RO".split())


@dataclass
class Form:
    """A line of commands.txt."""
    label: str
    name: str
    pattern: list
    has_keys: bool
    one_key: bool
    forget: bool


@dataclass
class Command:
    arguments: list
    label: str
    wrong: bool = False   # Made so that it may be an error.
    inline: bool = False

    def show(self):
        text = " ".join(show(a) for a in self.arguments[:24]) + (" ..." if len(self.arguments) > 24 else "")
        return text + ("   (inline)" if self.inline else "")


def show(argument):
    text = argument if len(argument) <= 120 else argument[:100] + b"...%d bytes" % len(argument)
    if text and re.fullmatch(rb"[!#-&(-\[\]-~]+", text):
        return text.decode()
    return '"' + "".join({10: "\\n", 13: "\\r", 34: '\\"', 92: "\\\\"}.get(c) or
                         (chr(c) if 32 <= c < 127 else f"\\x{c:02x}") for c in text) + '"'


def _parse(tokens):
    """A sequence up to a closing bracket or a bar: list of (kind, content, repeated)."""
    items = []
    while tokens and tokens[0] not in ("]", ")", "|"):
        token = tokens.pop(0)
        if token in ("[", "("):
            branches = [_parse(tokens)]
            while tokens[0] == "|":
                tokens.pop(0)
                branches.append(_parse(tokens))
            tokens.pop(0)
            repeated = bool(tokens) and tokens[0] == "+"
            if repeated:
                tokens.pop(0)
            items.append(("maybe" if token == "[" else "one", branches, repeated))
            continue
        repeated = bool(tokens) and tokens[0] == "+" and hasattr(Maker, "make_" + token)
        if repeated:
            tokens.pop(0)
        items.append(("make" if hasattr(Maker, "make_" + token) else "word", token, repeated))
    return items


def read_forms():
    forms = []
    for line in Path(__file__).with_name("commands.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        label, *_ = line.split(" ", 1)
        tokens = re.findall(r"[\[\]()|]|[^\s\[\]()|+]+|\+", line[len(label):])
        forget = bool(tokens) and tokens[-1] == "!"
        tokens = tokens[:-1] if forget else tokens
        keys = [i for i, t in enumerate(tokens) if t in list(TYPES + "ek")]
        several = any(t in ("sv", "nz", "nl", "nt", "nk") for t in tokens) or \
            any(tokens[i + 1:i + 2] == ["+"] for i in keys)
        forms.append(Form(label, label.split("/")[0], _parse(list(tokens)), bool(keys) or several,
                          len(keys) == 1 and not several, forget))
    return forms


class Maker:
    """Makes arguments; `random` decides all. A make_ function returns one argument or a list."""

    def __init__(self, random, payloads=()):
        self.random, self.payloads = random, list(payloads) or [b"\x00junk"]
        self.tags = random.sample(TAGS, 3)  # Few, so that commands meet each other's data.
        self.tag, self.alone, self.fixed, self.keys_made, self.lives = b"a", False, False, 0, 0

    def command(self, form, tag=None, right=False):
        """tag: that of every key, even where a command may have keys of several. right: nothing is made wrong."""
        self.fixed = tag is not None
        self.tag = tag if self.fixed else self.random.choice(self.tags)
        self.alone = form.one_key and not self.fixed
        arguments = [self._case(form.name)] + self._sequence(form.pattern)
        command = Command([a if isinstance(a, bytes) else str(a).encode() for a in arguments], form.label)
        if not right:
            if self.random.random() < 0.07:
                self._spoil(command, form)
            command.inline = self.random.random() < 0.04 and sum(map(len, command.arguments)) < 8000 and \
                command.arguments[0] != b""
        return command

    def _case(self, name):
        return (name if self.random.random() < 0.8 else
                "".join(self.random.choice((c, c.lower())) for c in name))

    def _sequence(self, items):
        out = []
        for kind, content, repeated in items:
            for _ in range(self.random.choice((1, 1, 2, 3)) if repeated else 1):
                if kind == "word":
                    out.append(self._case(content))
                elif kind == "make":
                    made = getattr(self, "make_" + content)()
                    out += made if isinstance(made, list) else [made]
                elif kind == "one" or self.random.random() < 0.4:
                    out += self._sequence(self.random.choice(content))
        return out

    def _spoil(self, command, form):
        """Leaves out, adds or replaces an argument. What is put in carries the tag: as a key it is on the same member
        (unless its number is wrong)."""
        command.wrong = True
        arguments, junk = command.arguments, b"{" + self.tag + b"}junk"
        at = self.random.randrange(1, len(arguments)) if len(arguments) > 1 else 0
        numbers = [i for i, a in enumerate(arguments) if i and re.fullmatch(rb"-?[0-9.]+", a)]
        name = arguments[0].upper().decode()
        waits = name in BLOCKING or b"BLOCK" in (a.upper() for a in arguments)
        counts_keys = name.startswith(("EVAL", "FCALL")) or \
            name in ("ZUNION", "ZINTER", "ZDIFF", "SINTERCARD", "ZINTERCARD", "LMPOP", "ZMPOP", "ZUNIONSTORE",
                     "ZINTERSTORE", "ZDIFFSTORE", "COMMAND")
        choice = self.random.randrange(4)
        # Without one of its keys, a command would take the next word for one, and change what the proxy must refuse.
        if choice == 0 and at and (form.one_key or not form.has_keys or form.name in READERS):
            del arguments[at]
        elif choice == 1:
            arguments.append(junk)
        elif choice == 2 and numbers and not waits and not counts_keys:
            arguments[self.random.choice(numbers)] = self.random.choice(BAD_NUMBERS)
        elif at:
            arguments[at] = junk
        else:
            arguments.append(junk)

    # Keys.

    def _key(self, kind, tag):
        if self.random.random() < 1 / 12:
            kind = self.random.choice(TYPES)
        return b"{%b}%b%d" % (tag, kind.encode(), self.random.randrange(2))

    def key(self, kind):
        if self.alone and self.random.random() < 0.15:
            return self.random.choice(ODD_KEYS)
        return self._key(kind, self.tag)

    def make_k(self):
        return self.key(self.random.choice(TYPES))

    def make_e(self):
        if self.random.random() < 0.05:
            return self._key("l", self.tag)
        return b"{%b}e%d" % (self.tag, self.random.randrange(2))

    def make_Kk(self):
        if self.fixed:
            return self._key(self.random.choice(TYPES), self.tag)
        if self.random.random() < 0.1:
            return self.random.choice(ODD_KEYS)
        return self._key(self.random.choice(TYPES), self.random.choice(self.tags))

    def make_Ksv(self):
        return [self._key("s", self.tag if self.fixed else self.random.choice(self.tags)), self.make_v()]

    def make_sv(self):
        return [self._key("s", self.tag), self.make_v()]

    def _numbered(self, kind):
        self.keys_made = self.random.choice((1, 2, 2, 3))
        return [self.keys_made] + [self._key(kind, self.tag) for _ in range(self.keys_made)]

    def make_nz(self):
        return self._numbered("z")

    def make_nl(self):
        return self._numbered("l")

    def make_nt(self):
        return self._numbered("t")

    def make_nk(self):
        return self._numbered(self.random.choice(TYPES))

    # Values.

    def make_v(self):
        roll = self.random.random()
        if roll < 0.4:
            return self.random.choice(WORDS)
        if roll < 0.6:
            return self.random.randrange(-50, 1000)
        if roll < 0.7:
            return self.random.choice(FLOATS)
        if roll < 0.95:
            return self.random.randbytes(self.random.randrange(40))
        return self.random.randbytes(1) * self.random.choice((64, 129, 1000, 5000, 20000))

    def make_m(self):
        return self.random.choice(WORDS[:8] if self.random.random() < 0.6 else WORDS)

    make_fld = make_m

    def make_many_fields(self):
        """More than fits a listpack, so that the encoding changes."""
        return [x for i in range(140) for x in (f"f{i}", i)]

    def make_many_scores(self):
        return [x for i in range(140) for x in (i % 40, f"z{i}")]

    def make_many_equals(self):
        return [x for i in range(140) for x in (0, f"z{i}")]

    def make_int(self):
        return self.random.choice(INTEGERS) if self.random.random() < 0.3 else self.random.randrange(-20, 100)

    def make_float(self):
        return self.random.choice(FLOATS)

    make_score = make_float

    def make_weights(self):
        return [self.random.choice((b"1", b"2", b"-1", b"0.5", b"0", b"inf")) for _ in range(self.keys_made)]

    def make_idx(self):
        return self.random.choice((0, 0, 1, 2, 3, 5, 10, -1, -1, -2, -3, 100, -100))

    def make_small(self):
        return self.random.randrange(0, 6)

    def make_small1(self):
        return self.random.randrange(1, 6)

    def make_rank(self):
        return self.random.choice((1, 2, -1, -2, 0))

    def make_count(self):
        return self.random.choice((0, 1, 2, 5, 50, -1, -5, -20))

    def make_off(self):
        return self.random.choice((0, 1, 5, 7, 8, 63, 100, 1023, 4000))

    def make_bit(self):
        return self.random.choice((0, 1, 1, 2))

    def make_bt(self):
        return self.random.choice((b"u8", b"i8", b"u4", b"i16", b"u63", b"i64", b"u1", b"i5", b"u64"))

    def make_bo(self):
        return self.random.choice((b"0", b"1", b"8", b"#0", b"#3", b"100", b"#10"))

    def make_zmin(self):
        return self.random.choice((b"-inf", b"(1", b"0", b"-5", b"(-1.5", b"1e3", b"3"))

    def make_zmax(self):
        return self.random.choice((b"+inf", b"inf", b"(10", b"100", b"2", b"(3", b"0"))

    def make_lmin(self):
        return self.random.choice((b"-", b"[apple", b"(fig", b"[", b"(", b"[z1"))

    def make_lmax(self):
        return self.random.choice((b"+", b"[plum", b"(lime", b"[zz", b"-"))

    def make_glob(self):
        return self.random.choice((b"*", b"*s*", b"{a}*", b"*[hlz]?", b"nothing*", b"*\\**"))

    def make_pat_m(self):
        return self.random.choice((b"*", b"a*", b"*e*", b"?", b"f[0-9]", b"[^a]*"))

    # Times to live are all far from each other and from now: EXPIRE ... GT of two nearly equal ones would be a race.

    def _life(self):
        self.lives += 1
        return 2000 + self.lives * 13

    def make_ttl(self):
        return self._life() if self.random.random() < 0.93 else self.random.choice((-1, 0, -5000))

    def make_pttl(self):
        return self._life() * 1000 + self.random.randrange(300) if self.random.random() < 0.93 else 0

    def make_at(self):
        return 4_000_000_000 + self._life() if self.random.random() < 0.93 else 1

    def make_pat(self):
        return self.make_at() * 1000

    def make_tiny(self):
        return b"0.002"

    # Streams and places.

    def make_id(self):
        return self.random.choice((b"0", b"0-1", b"1-1", b"2", b"3-0", b"5-1", b"7-7", b"20", b"100-1"))

    def make_id_new(self):
        return self.random.choice((b"1-*", b"%d-%d", b"%d-*", b"%d", b"0-0", b"x-y")).replace(
            b"%d", b"%d" % self.random.choice((1, 2, 3, 5, 8, 13, 20, 50)))

    def make_xmin(self):
        return self.random.choice((b"-", b"1", b"(2", b"3-1", b"0-1"))

    def make_xmax(self):
        return self.random.choice((b"+", b"5", b"(7", b"20-1", b"(50-2"))

    def make_grp(self):
        return self.random.choice((b"g1", b"g1", b"g1", b"g1", b"g2", b"no group"))

    def make_con(self):
        return self.random.choice((b"alice", b"bob", b"c\x00"))

    def make_lon(self):
        return self.random.choice((b"13.361389", b"15.087269", b"13.6", b"15.0", b"-122.4", b"0", b"179.9", b"181"))

    def make_lat(self):
        return self.random.choice((b"38.115556", b"37.502669", b"38.0", b"37.5", b"-33.86", b"0", b"85.0", b"86"))

    def make_radius(self):
        return self.random.choice((b"1", b"200", b"200", b"5000", b"5000", b"0", b"30000", b"30000", b"-1"))

    def make_unit(self):
        return self.random.choice((b"m", b"km", b"km", b"km", b"ft", b"mi", b"KM", b"parsec"))

    # Others.

    def make_payload(self):
        return self.random.choice(self.payloads)

    def make_any_script(self):
        return self.random.choice(ANY_SCRIPTS)

    def make_nokey_script(self):
        return self.random.choice(NOKEY_SCRIPTS)

    def make_set_script(self):
        return self.random.choice(SET_SCRIPTS)

    def make_absent_sha(self):
        return self.random.choice((b"f" * 40, b"0123456789abcdef0123456789abcdef01234567", b"short"))


for _kind in TYPES:
    setattr(Maker, "make_" + _kind, lambda self, kind=_kind: self.key(kind))
