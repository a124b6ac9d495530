"""Ten thousand clients connect, ask, idle and leave: the proxy's memory does not grow, an idle client costs little even
after it used a lot, and idle clients cost no CPU."""
import os
import resource
import socket
import ssl
import time

import pytest

from differential.resp import encode
from harness.process import wait_until
from test_46_tls import ca, tls_flags, tls_port  # noqa: F401  (ca is a fixture)

CLIENTS = 10_000
TLS_CLIENTS = 1_000
SPARE = 200  # Descriptors for everything else.
AT_ONCE = 250
VALUE = b"v" * 65_536
IDLE_CLIENT_BYTES = 4096
IDLE_TLS_CLIENT_BYTES = 24_576  # Most of it OpenSSL's, and what its handshakes left in between.
GROWTH = 1.10  # What the allocator keeps in other places each time is no leak.


@pytest.fixture
def how_many():
    """CLIENTS, or as many as this machine lets one process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CLIENTS + SPARE
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        yield CLIENTS
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        print(f"{hard} descriptors are allowed, so {hard - SPARE} clients and not {CLIENTS}")
        yield hard - SPARE
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rss(proxy):
    with open(f"/proc/{proxy.pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def cpu_seconds(proxy):
    with open(f"/proc/{proxy.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(proxy):
    return len(os.listdir(f"/proc/{proxy.pid}/fd"))


def receive(s, size):
    got = bytearray()
    while len(got) < size:
        part = s.recv(size - len(got))
        assert part, "closed"
        got += part
    return bytes(got)


def all_ask(sockets, command, reply, at_once=AT_ONCE):
    for start in range(0, len(sockets), at_once):
        some = sockets[start:start + at_once]
        for s in some:
            s.sendall(command)
        for s in some:
            assert receive(s, len(reply)) == reply


def all_connect(port, count, wrap=None):
    sockets = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port), timeout=20)
        sockets.append(wrap(s) if wrap else s)
        if len(sockets) % AT_ONCE == 0:
            all_ask(sockets[-AT_ONCE:], encode(["GET", "small"]), b"$5\r\nvalue\r\n")
    return sockets


def all_leave(proxy, sockets, before, with_a_reset=False):
    for s in sockets:
        if with_a_reset:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    wait_until("all sessions are gone", lambda: descriptors(proxy) <= before + 4, interval=0.2)


def settled(proxy, above, count, limit, what):
    """Bytes of an idle client. Buffers go back after a second of silence."""
    def of_each():
        return (rss(proxy) - above) / count
    try:
        wait_until("idle clients rest", lambda: of_each() <= limit, timeout=4, interval=0.1)
    except AssertionError:
        pass  # Said below, with the figure.
    print(f"{what}: {of_each():.0f} bytes for each idle client")
    assert of_each() <= limit, f"{what}: {of_each():.0f} bytes for each of {count} idle clients, not {limit}"


def test_ten_thousand_clients_come_and_go(make_cluster, how_many):
    # More than there are of them: those of the last round may not all be gone when the next begins.
    config_limit = ["--max-clients", how_many + 500]
    proxy = make_cluster(members=2, proxies=1).start_static(options=config_limit).proxies[0]
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as s:
        all_ask([s], encode(["SET", "small", "value"]) + encode(["SET", "big", VALUE]), b"+OK\r\n+OK\r\n")
        all_ask([s], encode(["GET", "big"]), b"$65536\r\n" + VALUE + b"\r\n")
    time.sleep(0.2)
    empty, nobody = rss(proxy), descriptors(proxy)
    after = []
    for round_number in (1, 2, 3):
        sockets = all_connect(proxy.port, how_many)
        if round_number == 1:
            settled(proxy, empty, how_many, IDLE_CLIENT_BYTES, "after one GET each")
            began, used = time.monotonic(), cpu_seconds(proxy)
            time.sleep(3)
            share = (cpu_seconds(proxy) - used) / (time.monotonic() - began)
            print(f"CPU with {how_many} idle clients: {share:.2%}")
            assert share < 0.01, f"{share:.2%} of a CPU for clients that do nothing"
            all_ask(sockets, encode(["SET", "big", VALUE]) + encode(["GET", "big"]),
                    b"+OK\r\n$65536\r\n" + VALUE + b"\r\n", at_once=50)
            settled(proxy, empty, how_many, IDLE_CLIENT_BYTES, "after a value of 64 KB each")
        all_leave(proxy, sockets, nobody, with_a_reset=round_number == 2)
        after.append(rss(proxy))
    print("MiB when all have left:", [round(size / (1 << 20), 1) for size in [empty, *after]])
    assert after[2] <= after[0] * GROWTH, f"memory grows: {after}"
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as s:
        all_ask([s], encode(["GET", "small"]), b"$5\r\nvalue\r\n")


def test_idle_clients_with_half_a_command_or_a_long_pipeline_give_back(make_cluster, how_many):
    """What made them need buffers is over; so are the buffers."""
    count = min(how_many, 2000)
    proxy = make_cluster(members=2, proxies=1).start_static().proxies[0]
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as s:
        all_ask([s], encode(["SET", "small", "value"]), b"+OK\r\n")
    empty = rss(proxy)
    sockets = all_connect(proxy.port, count)
    half = encode(["SET", "half", "h" * 12_000])
    for s in sockets:
        s.sendall(half[:-50])
    time.sleep(0.2)
    all_ask(sockets, half[-50:], b"+OK\r\n")
    pipeline = encode(["MGET", *["small"] * 100]) + encode(["GET", "small"]) * 60 + b"PING " + b"p" * 400 + b"\r\n"
    value = b"$5\r\nvalue\r\n"
    all_ask(sockets, pipeline, b"*100\r\n" + value * 160 + b"$400\r\n" + b"p" * 400 + b"\r\n", at_once=50)
    settled(proxy, empty, count, IDLE_CLIENT_BYTES, "after long pipelines and commands in two parts")
    for s in sockets:
        s.close()


def test_a_thousand_tls_clients_come_and_go(make_cluster, how_many, ca):  # noqa: F811
    count = min(how_many, TLS_CLIENTS)
    proxy = make_cluster(members=2, proxies=1).start_static(options=tls_flags(ca)).proxies[0]
    port = tls_port(proxy)
    context = ssl.create_default_context(cafile=ca["ca.pem"])
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as s:
        all_ask([s], encode(["SET", "small", "value"]) + encode(["SET", "big", VALUE]), b"+OK\r\n+OK\r\n")

    def wrap(s):
        return context.wrap_socket(s, server_hostname="localhost")
    with wrap(socket.create_connection(("127.0.0.1", port), timeout=20)) as s:
        all_ask([s], encode(["GET", "small"]), b"$5\r\nvalue\r\n")
    time.sleep(0.2)
    empty, nobody, after = rss(proxy), descriptors(proxy), []
    for round_number in (1, 2, 3):
        sockets = all_connect(port, count, wrap)
        if round_number == 1:
            settled(proxy, empty, count, IDLE_TLS_CLIENT_BYTES, "TLS, after one GET each")
            all_ask(sockets, encode(["GET", "big"]), b"$65536\r\n" + VALUE + b"\r\n", at_once=10)
            settled(proxy, empty, count, IDLE_TLS_CLIENT_BYTES, "TLS, after a value of 64 KB each")
        all_leave(proxy, sockets, nobody)
        after.append(rss(proxy))
    print("MiB when all have left:", [round(size / (1 << 20), 1) for size in [empty, *after]])
    assert after[2] <= after[0] * GROWTH, f"memory grows: {after}"
