"""Odd input at the proxy's socket, beside a plain redis-server: the same bytes come back, the connection is kept where
Redis keeps it, and the process lives. test_60_bad_input.py has what must merely do no harm."""
import socket
import time

import pytest

from differential.bench import Bench
from differential.resp import Connection, encode, encode_inline, parse
from harness.cluster import Cluster

SENTINEL = encode(["ECHO", "the-end-of-this-test"])
SENTINEL_REPLY = b"$20\r\nthe-end-of-this-test\r\n"


def say(port, data, protocol=2, timeout=3.0):
    """What a server answers to these bytes, and whether it then still serves this connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        answer = b""
        if protocol == 3:
            s.sendall(b"HELLO 3\r\n")
            while not answer.endswith(b"modules\r\n*0\r\n"):
                answer += s.recv(4096)
            answer = b""
        try:
            s.sendall(data + SENTINEL)
            while not answer.endswith(SENTINEL_REPLY):
                part = s.recv(65536)
                if not part:
                    return answer, "closed"
                answer += part
        except TimeoutError:
            return answer, "silent"
        except (ConnectionResetError, BrokenPipeError):
            return answer, "closed"
        return answer[:-len(SENTINEL_REPLY)], "open"


def lines(*commands):
    return b"".join(command.encode() + b"\r\n" for command in commands)


LONG = b"y" * 300_000

ODD = {
    "negative count": b"*-5\r\n",
    "count of nothing": b"*0\r\n*0\r\n",
    "nil array": b"*-1\r\n",
    "empty lines": b"\r\n\r\n\n\r\n",
    "blanks": b"   \r\n\t\r\n",
    "bulk of 99999999999 bytes": b"*1\r\n$99999999999\r\n",
    "bulk of one byte too many": b"*2\r\n$3\r\nGET\r\n$536870913\r\n",
    "nil bulk": b"*2\r\n$3\r\nGET\r\n$-1\r\n",
    "count above an int": b"*2147483648\r\n",
    "count above everything": b"*99999999999999999999\r\n",
    "count with a sign": b"*+1\r\n$4\r\nPING\r\n",
    "count with a zero before it": b"*01\r\n$4\r\nPING\r\n",
    "count with a blank": b"* 1\r\n$4\r\nPING\r\n",
    "no count": b"*\r\n",
    "length with a sign": b"*1\r\n$+4\r\nPING\r\n",
    "length with a zero before it": b"*1\r\n$04\r\nPING\r\n",
    "no length": b"*1\r\n$\r\n",
    "not a bulk": b"*1\r\nPING\r\n",
    "an integer as argument": b"*2\r\n$4\r\nECHO\r\n:1\r\n",
    "an array within": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "a reply as request": b"+OK\r\n:1\r\n-ERR x\r\n",
    "bulk without array": b"$4\r\nPING\r\n",
    "line feed only": b"PING\nECHO x\n",
    "blanks around": b"  PING  \r\n\tECHO\t a \r\n",
    "quotes": b"SET 'a b' \"c\\x00\\n\\\"d\"\r\nGET \"a b\"\r\nECHO ''\r\nECHO 'it\\'s'\r\n",
    "quotes that do not close": b"ECHO \"abc\r\n",
    "text after a quote": b"ECHO \"abc\"def\r\n",
    "wrong escape": b"ECHO \"\\xzz\\q\"\r\n",
    "no name": b"*1\r\n$0\r\n\r\n" + b"\"\"\r\n",
    "name with line ends": b"*1\r\n$8\r\nA\r\nB\r\nC\n\r\n",
    "long name": b"*2\r\n$300\r\n" + b"N" * 300 + b"\r\n$1\r\nx\r\n",
    "long arguments of an unknown command": encode(["NOSUCH", "a" * 100, "b" * 100, "c"]),
    "many arguments of an unknown command": encode(["NOSUCH", *range(100)]),
    "line ends in arguments of an unknown command": encode(["NOSUCH", "a\r\nb", "c\nd"]),
    "unknown subcommand": encode(["OBJECT", "NOSUCH", "k"]) + encode(["CLIENT", "no\r\nsuch"]),
    "inline line that is too long": b"ECHO " + LONG + b"\r\n",
    "count line that is too long": b"*" + b"1" * 300_000,
    "length line that is too long": b"*1\r\n$" + b"1" * 300_000,
    "MSET of an odd number": lines("MSET a 1 b", "GET a", "MSET a", "MSET"),
    "too few arguments": lines("GET", "SET a", "MGET", "DEL", "EXISTS", "TOUCH", "UNLINK", "HSET h f", "HMSET h f",
                               "XADD", "ZADD z 1", "ECHO", "SELECT", "CLIENT", "CLIENT SETNAME", "OBJECT",
                               "OBJECT ENCODING", "EXPIRE k", "SETEX k 1", "BITFIELD", "GEOADD g 1 2"),
    "too many arguments": lines("GET a b", "PING a b", "ECHO a b", "STRLEN a b", "INCR a 1", "TTL a b", "TYPE a b",
                                "HGETALL a b", "CLIENT GETNAME x", "CLIENT ID x", "LLEN a b"),
    "options that contradict": lines("SET a b EX", "SET a b EX 0", "SET a b EX -1", "SET a b NX XX",
                                     "SET a b EX 1 PX 1", "SET a b KEEPTTL EX 1", "GETEX a EX 1 PERSIST",
                                     "EXPIRE a 1 NX XX", "ZADD z GT LT 1 a", "SET a b EX 9223372036854775807"),
    "names of clients": encode(["CLIENT", "SETNAME", "two words"]) + encode(["CLIENT", "SETNAME", "a\nb"]) +
    lines("CLIENT SETNAME fine", "CLIENT GETNAME", "CLIENT SETNAME \"\"", "CLIENT GETNAME"),
    "in capitals, in small letters": lines("ping", "Echo x", "client getname", "Set a 1 eX 100", "tTl none"),
    "wrong types": lines("SET s x", "LPUSH s x", "INCR s", "HGET s f", "APPEND s y", "GET s", "SETRANGE s 536870912 x",
                         "SETBIT s 4294967296 1", "GETRANGE s x y"),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A proxy over five members and the plain server, for all tests that leave the members as they are."""
    cluster = Cluster(tmp_path_factory.mktemp("odd"), members=6, proxies=1)
    bench = Bench.of_six(cluster)
    yield bench
    bench.close()
    assert cluster.stop() == []


@pytest.mark.parametrize("name", ODD)
def test_odd_bytes(pair, name):
    for protocol in (2, 3):
        pair.flush()
        plain, proxy = (say(port, ODD[name], protocol) for port in (pair.plain_port, pair.proxy_port))
        assert proxy == plain, f"RESP{protocol}"
    assert pair.cluster.proxies[0].alive()


@pytest.mark.parametrize("request_line", [
    pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="page"),
    pytest.param(b"POST / HTTP/1.1\r\n\r\n", id="form"),
])
def test_a_browser_is_shown_the_door(pair, request_line):
    """Redis closes without a word, so that a web page cannot make a browser speak to it; what came before may be
    answered."""
    answer, end = say(pair.proxy_port, request_line + encode(["SET", "by-a-web-page", "x"]))
    assert end == "closed" and answer in (b"", b"-ERR wrong number of arguments for 'get' command\r\n")
    assert Connection(pair.proxy_port).ask("EXISTS", "by-a-web-page") == b":0\r\n"


def ask_both(pair, data, replies, timeout=20):
    """The replies of each to these bytes, which are the same."""
    answers = []
    for port in (pair.plain_port, pair.proxy_port):
        connection = Connection(port, timeout)
        connection.send(data)
        answers.append([connection.reply() for _ in range(replies)])
        connection.close()
    assert answers[0] == answers[1]
    return answers[1]


@pytest.mark.parametrize("form", [encode, encode_inline])
@pytest.mark.parametrize("keys", [["k"], [f"k{n}" for n in range(20)]], ids=["one key", "keys of all members"])
def test_set_del_exists_200_times_in_one_write(pair, form, keys):
    pair.flush()
    data = b"".join(form(command) for _ in range(200) for key in keys
                    for command in (["SET", key, "v"], ["DEL", key], ["EXISTS", key]))
    answers = ask_both(pair, data, 600 * len(keys))
    assert answers == [b"+OK\r\n", b":1\r\n", b":0\r\n"] * 200 * len(keys)


def test_split_and_single_commands_on_one_key_keep_their_order(pair):
    pair.flush()
    keys = [f"key-{n}" for n in range(12)]
    commands = []
    for turn in range(100):
        commands += [["MSET", *[x for key in keys for x in (key, turn)]], ["GET", keys[turn % 12]], ["MGET", *keys],
                     ["DEL", *keys[:6]], ["EXISTS", *keys, keys[0]], ["INCR", keys[7]], ["UNLINK", keys[8], "none"],
                     ["TOUCH", *keys], ["MGET", *keys]]
    ask_both(pair, b"".join(map(encode, commands)), len(commands))


def test_values_around_the_sizes_of_buffers(pair):
    """Each through SET and GET, as an element of MGET, and beside small commands in one pipeline."""
    pair.flush()
    edges = [edge + off for edge in (16384, 32768, 65536) for off in (-80, -17, -2, -1, 0, 1, 2, 17)]
    sizes = sorted({*range(16306, 65315, 1021), 65314, *edges})
    connections = [Connection(port, 20) for port in (pair.plain_port, pair.proxy_port)]
    for number, size in enumerate(sizes):
        value = (b"%08d" % size) * (size // 8) + b"e" * (size % 8)
        assert len(value) == size
        data = encode(["SET", f"v{number}", value]) + encode(["GET", f"v{number}"]) + b"PING\r\n" + \
            encode(["MGET", f"v{number}", f"v{max(0, number - 1)}", "none"]) + encode(["STRLEN", f"v{number}"])
        for connection in connections:
            connection.send(data)
        for _ in range(5):
            plain, proxy = (connection.reply() for connection in connections)
            assert proxy == plain, f"{size} bytes: {len(plain)} and {len(proxy)} bytes of answer"
    for connection in connections:
        connection.close()


def test_a_key_of_20_kb(pair):
    pair.flush()
    key = b"k" * 20_000
    ask_both(pair, encode(["SET", key, "v"]) + encode(["MGET", "a", key, b"x" + key]) + encode(["EXISTS", key, key]) +
             encode(["APPEND", key, "w"]) + encode(["GET", key]) + encode(["DEL", key, b"x" + key]), 6)


def test_a_value_of_16_mb(pair):
    pair.flush()
    value = bytes(range(256)) * (1 << 16)
    answers = ask_both(pair, encode(["SET", "big", value]) + encode(["STRLEN", "big"]) + encode(["GET", "big"]) +
                       encode(["MGET", "none", "big", "a", "big"]) + encode(["DEL", "big"]) + encode(["GET", "big"]), 6)
    assert parse(answers[2]) == ("$", value)


def test_commands_of_very_many_arguments(pair):
    """Tens of thousands of keys over all members in one command, and as many members of one key."""
    pair.flush()
    keys = [f"many:{i}" for i in range(30_000)]
    began = time.monotonic()
    ask_both(pair, encode(["MSET", *[x for key in keys for x in (key, key[-3:])]]) +
             encode(["MGET", *keys, "none", *keys[:9]]) + encode(["EXISTS", *keys, *keys]) +
             encode(["TOUCH", *keys]) + encode(["SADD", "set", *keys]) +
             encode(["SMISMEMBER", "set", *keys]) + encode(["DEL", *keys[::2]]) + encode(["UNLINK", *keys]) +
             encode(["MGET", *keys]), 9)
    assert time.monotonic() - began < 15, "some work grows faster than the number of arguments"


def test_a_pipeline_that_is_written_whole_before_it_is_read(pair):
    """As redis-py does it, whatever its size."""
    pair.flush()
    turns = 20_000
    data = b"".join(encode(["SET", f"k{i % 1000}", b"x" * 1000]) + encode(["GET", f"k{i % 1000}"])
                    for i in range(turns))
    bulk = b"$1000\r\n" + b"x" * 1000 + b"\r\n"
    connection = Connection(pair.proxy_port, 3)
    try:
        connection.send(data)
        for _ in range(turns):
            assert connection.reply() == b"+OK\r\n" and connection.reply() == bulk
    finally:
        connection.close()


SCRIPT = encode(["SET", "a", "1\r\n2"]) + b"GET a\r\n" + encode(["MSET", "b", "x", "c", "y", "d", ""]) + \
    encode(["MGET", "a", "b", "c", "d", "e"]) + b"NOSUCH \"q\"\r\n" + encode(["DEL", "a", "b"]) + b"PING\r\n" + \
    encode(["EXISTS", "a", "c", "c"]) + b"*0\r\n" + encode(["GET"]) + encode(["TYPE", "c"])
SCRIPT_REPLIES = 10


def test_one_byte_at_a_time(pair):
    pair.flush()
    whole = ask_both(pair, SCRIPT, SCRIPT_REPLIES)
    for client in (pair.plain_port, pair.proxy_port):
        pair.flush()
        connection = Connection(client)
        for byte in SCRIPT:
            connection.send(bytes([byte]))
            time.sleep(0.0003)
        assert [connection.reply() for _ in range(SCRIPT_REPLIES)] == whole
        assert connection.ask("PING") == b"+PONG\r\n"
        connection.close()


def test_cut_in_two_anywhere(pair):
    pair.flush()
    whole = ask_both(pair, SCRIPT, SCRIPT_REPLIES)
    connection = Connection(pair.proxy_port)
    for cut in range(1, len(SCRIPT)):
        pair.flush()
        connection.send(SCRIPT[:cut])
        time.sleep(0.0005)
        connection.send(SCRIPT[cut:])
        assert [connection.reply() for _ in range(SCRIPT_REPLIES)] == whole, f"cut at {cut}"
    connection.close()


@pytest.mark.parametrize("tail", [b"", b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$100\r\nonly", b"GET a"],
                         ids=["whole", "half", "no end"])
def test_half_close_gets_every_answer_however_big(pair, tail):
    """`printf ... | nc`: also when the answers are far more than the sockets hold, and a command is left unfinished."""
    pair.flush()
    value = b"v" * (1 << 20)
    pair.plain_admin.ask("SET", "big", value)
    with socket.create_connection(("127.0.0.1", pair.proxy_port), timeout=10) as s:
        s.sendall(encode(["SET", "big", value]) + encode(["GET", "big"]) * 12 + encode(["MGET", "big", "none"]) + tail)
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.1)
        answer = bytearray()
        while part := s.recv(1 << 18):
            answer += part
    bulk = b"$%d\r\n%b\r\n" % (len(value), value)
    assert answer == b"+OK\r\n" + bulk * 12 + b"*2\r\n" + bulk + b"$-1\r\n"
    assert Connection(pair.proxy_port).ask("EXISTS", "half") == b":0\r\n", "half a command is not executed"


def test_hello_3_in_the_middle_of_a_pipeline(pair):
    """Answers before it are RESP2, those after it RESP3, though the members answer on other connections."""
    pair.flush()
    data = encode(["HSET", "h", "f", "v"])
    commands = [encode(["HGETALL", "h"]), encode(["GET", "none"]), encode(["MGET", "none", "h2"]),
                encode(["SMISMEMBER", "s", "a"])]
    data += b"".join([*commands, encode(["HELLO", "3"]), *commands, encode(["HELLO", "2"]), *commands])
    answers = []
    for port in (pair.plain_port, pair.proxy_port):
        connection = Connection(port)
        connection.send(data)
        got = [connection.reply() for _ in range(15)]
        answers.append(got[:5] + got[6:10] + got[11:])
        connection.close()
    assert answers[0] == answers[1]


def test_a_stopped_member_under_a_pipeline_and_mget(make_cluster):
    """One of five is stopped. Whoever does not ask it is answered at once; whoever does, at the deadline and not
    later, in order, with an error and never a nil; a late answer reaches nobody."""
    deadline = 0.8
    cluster = make_cluster(members=5, proxies=1).start_static(options=["--request-timeout-ms", int(deadline * 1000)])
    written = cluster.fill(200)
    keys = list(written)
    owners = cluster.owners(keys, cluster.spec)
    stalled = [key for key in keys if owners[key] == "cache-3"]
    healthy = [key for key in keys if owners[key] != "cache-3"]
    assert len(stalled) > 10
    port = cluster.proxies[0].port
    pipeline, bystander, reader = (Connection(port, 6) for _ in range(3))
    first_stalled = next(n for n, key in enumerate(keys) if owners[key] == "cache-3")
    cluster.members[2].process.pause()
    try:
        began = time.monotonic()
        pipeline.send(b"".join(encode(["GET", key]) for key in keys) + encode(["MGET", *healthy]) +
                      encode(["MGET", *keys]) + encode(["PING"]))
        reader.send(encode(["MGET", *healthy[:30]]) + encode(["MGET", healthy[0], stalled[0]]) +
                    encode(["GET", healthy[1]]))
        # Those in front of the first that is stalled, and everyone on another connection, at once.
        for key in keys[:first_stalled]:
            assert parse(pipeline.reply()) == ("$", written[key])
        assert parse(reader.reply())[1] == [("$", written[key]) for key in healthy[:30]]
        for key in healthy[:50]:
            assert parse(bystander.ask("GET", key)) == ("$", written[key])
        assert time.monotonic() - began < deadline * 0.6
        # The rest at the deadline, in order.
        for key in keys[first_stalled:]:
            kind, text = parse(pipeline.reply())
            if owners[key] == "cache-3":
                assert kind == "-" and text.startswith((b"TIMEOUT ", b"TRYAGAIN ")) and b"cache-3" in text, (key, text)
            else:
                assert (kind, text) == ("$", written[key])
        assert parse(pipeline.reply())[1] == [("$", written[key]) for key in healthy]
        kind, text = parse(pipeline.reply())
        assert kind == "-" and b"cache-3" in text, text
        assert pipeline.reply() == b"+PONG\r\n"
        kind, text = parse(reader.reply())
        assert kind == "-" and b"cache-3" in text, text
        assert parse(reader.reply()) == ("$", written[healthy[1]])
        took = time.monotonic() - began
        assert deadline * 0.8 < took < deadline * 2, f"{took:.2f} s for a deadline of {deadline} s"
    finally:
        cluster.members[2].process.resume()
    # What the member now still answers is for nobody; new questions get their own answers, on old connections too.
    end = time.monotonic() + 8
    for connection in (pipeline, bystander, reader):
        while True:
            replies = [connection.ask("GET", key) for key in stalled]
            if not any(reply.startswith(b"-") for reply in replies):
                break
            assert time.monotonic() < end, replies[0]
            time.sleep(0.05)
        assert [parse(reply)[1] for reply in replies] == [written[key] for key in stalled]
        assert connection.silent(0.05), "an answer that nobody asked for"
        connection.close()


def test_clients_that_leave_in_the_middle(pair):
    """Of a command, of its answer, of a split command; the next client on the same members gets its own answers."""
    pair.flush()
    Connection(pair.proxy_port).ask("SET", "big", b"b" * (1 << 20))
    for number in range(60):
        connection = Connection(pair.proxy_port)
        connection.send([encode(["GET", "big"]) * 20, encode(["MGET", *range(50)]) * 20,
                         encode(["SET", "x", "y" * 999])[:-500], encode(["MSET", *range(100)]) * 9][number % 4])
        if number % 3 == 0 and number % 4 != 2:
            connection.socket.recv(100)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # A reset, not an end.
        connection.close()
        after = Connection(pair.proxy_port)
        assert after.ask("ECHO", number) == b"$%d\r\n%d\r\n" % (len(str(number)), number)
        assert after.ask("SET", "own", number) == b"+OK\r\n"
        assert parse(after.ask("MGET", "own", "x"))[1] == [("$", b"%d" % number), ("$", None)]
        after.close()
    assert pair.cluster.proxies[0].alive()
