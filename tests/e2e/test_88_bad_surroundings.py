"""What is around the proxy is broken: clients that hardly read, a disk that is full, members that accept and are silent,
no descriptors left. The process lives, does not spin, keeps its bounds, and serves whoever is well."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis

from differential.resp import Closed, Connection, encode
from harness.cluster import RINGSHIFT
from harness.process import Process, free_port, wait_until
from test_87_many_clients import cpu_seconds, rss

MIB = 1 << 20


def start_proxy(cluster, redirect="", limit="", options=""):
    """Through a shell, for what only a shell sets."""
    port = free_port()
    proxy = Process("proxy-1", ["bash", "-c", f"{limit} exec '{RINGSHIFT}' proxy --spec '{cluster.write_spec()}' "
                                f"--listen 127.0.0.1:{port} --threads 1 {options} {redirect}"], cluster.directory)
    cluster.proxies.append(proxy)
    proxy.start()
    _, proxy.port = proxy.wait_ready()
    return proxy


def busy_share(proxy, seconds=2.0):
    used, began = cpu_seconds(proxy), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(proxy) - used) / (time.monotonic() - began)


def test_clients_that_read_a_byte_a_second(make_cluster):
    """Ten of them ask for as much as they may. All together may hold 32 MiB of answers; beyond that they are not read from, and
    whoever takes nothing for two seconds is cut. Others are served all the while."""
    cluster = make_cluster(members=2, proxies=1).start_static(
        options=["--max-total-output", "32mb", "--slow-client-timeout", 2, "--request-timeout-ms", 5000])
    proxy = cluster.proxies[0]
    admin = Connection(proxy.port)
    assert admin.ask("SET", "big", b"b" * 4096) == b"+OK\r\n"
    before = rss(proxy)
    stop, slow, highest = threading.Event(), [], 0
    for _ in range(10):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", proxy.port))
        s.setblocking(False)
        slow.append(s)

    def behave_badly():
        questions = encode(["GET", "big"]) * 100
        while not stop.is_set():
            for s in slow:
                for act in (lambda: s.recv(1), lambda: s.send(questions)):
                    try:
                        act()
                    except OSError:
                        pass
            stop.wait(0.05)
    clients = threading.Thread(target=behave_badly)
    clients.start()
    try:
        began, slowest = time.monotonic(), 0.0

        def cut():
            info = admin.ask("INFO", "clients") + admin.ask("INFO", "stats")
            return b"clients_cut:10\r\n" in info
        while time.monotonic() - began < 12 and not cut():
            asked = time.monotonic()
            assert admin.ask("GET", "other") == b"$-1\r\n"
            slowest = max(slowest, time.monotonic() - asked)
            highest = max(highest, rss(proxy))
            time.sleep(0.02)
        print(f"at most {(highest - before) / MIB:.0f} MiB more, others waited {slowest * 1000:.0f} ms at most, all cut "
              f"after {time.monotonic() - began:.1f} s")
        assert cut(), admin.ask("INFO", "stats").decode()
        assert highest - before < 250 * MIB, "a bound of 32 MiB and what was in flight"
        assert slowest < 2, f"others wait {slowest:.2f} s"
    finally:
        stop.set()
        clients.join()
    assert busy_share(proxy, 0.5) < 0.1


def test_no_room_for_the_log(make_cluster):
    """Standard error is a full disk."""
    cluster = make_cluster(members=2, proxies=1)
    proxy = start_proxy(cluster, redirect="2>/dev/full", options="--verbose --request-timeout-ms 300")
    client = Connection(proxy.port)
    assert client.ask("SET", "a", "1") == b"+OK\r\n"
    cluster.members[1].process.kill()  # It has much to say.
    errors = 0
    for n in range(60):
        errors += client.ask("SET", f"k{n}", n) != b"+OK\r\n"
        Connection(proxy.port).send(b"POST / HTTP/1.1\r\n\r\n")
    assert 0 < errors < 60
    cluster.members[1].start()
    wait_until("the member is used again", lambda: all(client.ask("SET", f"k{n}", n) == b"+OK\r\n" for n in range(60)))
    assert proxy.alive()


def test_a_member_that_accepts_and_is_silent(make_cluster):
    """Its keys have an error at the deadline; the others are answered at once; nothing spins or grows."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(64)
        taken = []

        def accept():
            while True:
                try:
                    taken.append(mute.accept()[0])
                except OSError:
                    return
        threading.Thread(target=accept, daemon=True).start()
        cluster = make_cluster(members=2, proxies=1)
        document = cluster.spec_document()
        document["members"][1]["address"] = f"127.0.0.1:{mute.getsockname()[1]}"

        spec = cluster.directory / "mute.yaml"
        spec.write_text(json.dumps(document))
        cluster.start_static(spec=spec, options=["--request-timeout-ms", 300, "--connect-timeout-ms", 300])
        proxy = cluster.proxies[0]
        owners = cluster.owners([b"key:%d" % n for n in range(50)], spec)
        good = [key for key in owners if owners[key] == "cache-1"]
        bad = [key for key in owners if owners[key] == "cache-2"]
        client = Connection(proxy.port)
        end, count = time.monotonic() + 4, 0
        while time.monotonic() < end:
            began = time.monotonic()
            client.send(encode(["SET", good[0], "1"]) + encode(["GET", bad[0]]) + encode(["MGET", good[0], bad[1]]))
            assert client.reply() == b"+OK\r\n"
            assert time.monotonic() - began < 0.2
            for _ in range(2):
                answer = client.reply()
                assert answer.startswith((b"-TRYAGAIN", b"-TIMEOUT")) and b"cache-2" in answer, answer
            assert time.monotonic() - began < 1.5
            count += 1
        assert busy_share(proxy, 1.0) < 0.1
        assert len(taken) < 200, f"{len(taken)} connections in some seconds: no rest between attempts"
        mute.shutdown(socket.SHUT_RDWR)
        for s in taken:
            s.close()


def test_idle_clients_leave_descriptors_for_the_members(make_cluster):
    """With few of them the proxy takes fewer clients, and says so; members that restart are reached all the same; the loop does
    not spin, nor fill the log."""
    cluster = make_cluster(members=2, proxies=1)
    proxy = start_proxy(cluster, limit="ulimit -n 80;")
    wait_until("it says so", lambda: "maxclients has been reduced from 10000 to" in proxy.errors())
    first = cluster.client()
    most = int(first.config_get("maxclients")["maxclients"])
    assert 1 <= most < 80 and first.info("clients")["maxclients"] == most
    with pytest.raises(redis.ResponseError, match=f"The operating system is not able.*try with {most}"):
        first.config_set("maxclients", 1000)
    assert first.set("a", "1")
    waiting = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(120)]
    for member in cluster.members:
        member.process.kill()
        member.start()

    def reached():
        try:
            return all(first.set(f"k{n}", n) for n in range(40)) and first.set("a", "1")
        except redis.RedisError:
            return False
    wait_until("the members are reached again", reached)
    said = len(proxy.errors())
    share = busy_share(proxy)
    print(f"{most} clients; CPU: {share:.1%}; {len(proxy.errors()) - said} bytes of log in two seconds")
    assert share < 0.1
    assert len(proxy.errors()) - said < 1000
    assert first.get("a") == b"1"
    for s in waiting:
        s.close()

    def serves():
        try:
            return cluster.client(socket_timeout=1).get("a") == b"1"
        except redis.RedisError:
            return False
    wait_until("the proxy takes clients again", serves)


def test_nobody_waits_for_who_reads_the_log(make_cluster):
    """Standard error is a pipe that nobody empties, as of a supervisor that hangs: clients are served, and the end comes in time."""
    cluster = make_cluster(members=2, proxies=1)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 4096)
    os.set_blocking(writer, True)
    port = free_port()
    proxy = subprocess.Popen([RINGSHIFT, "proxy", "--spec", cluster.write_spec(), "--listen", f"127.0.0.1:{port}", "--threads",
                              "1", "--verbose", "--request-timeout-ms", "300"], stderr=writer, stdout=subprocess.PIPE)
    os.close(writer)
    try:
        assert b"ready" in proxy.stdout.readline()
        client = Connection(port)
        assert client.ask("SET", "a", "1") == b"+OK\r\n"
        cluster.members[1].process.kill()  # It has much to say of that, and of those who speak HTTP.
        for n in range(20):
            client.ask("SET", f"k{n}", n)
            with pytest.raises(Closed):
                Connection(port).ask("POST", "/", "HTTP/1.1")
            assert client.ask("PING") == b"+PONG\r\n"
        began = time.monotonic()
        proxy.send_signal(signal.SIGTERM)
        assert proxy.wait(timeout=20) == 0
        print(f"ended after {time.monotonic() - began:.1f} s")
    finally:
        proxy.kill()
        proxy.wait()
        os.close(reader)
