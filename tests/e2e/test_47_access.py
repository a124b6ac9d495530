"""A proxy with a configuration file: two pools by prefix, users, limits; and a reload under load."""
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis

from harness.cluster import RINGSHIFT, Cluster
from harness.process import Process, die_with_parent, free_port, wait_until

USERS = """\
users:
  - {name: default, rules: "off"}
  - {name: al, rules: "on >secret ~* &* +@all -@dangerous"}
  - {name: reader, rules: "on >r %R~order:* +@read +@connection"}
  - {name: tenant, rules: "on >t ~* &* +@all"}
"""
ROUTES = """\
routes:
  - {prefix: "order:", cluster: orders}
  - {cluster: pages}
  - {cluster: orders, user: tenant}
"""


class Pools:
    """Clusters "pages" (two members) and "orders" (three), behind one proxy that follows a file."""

    def __init__(self, directory):
        self.directory = directory
        self.cluster = Cluster(directory, members=5, proxies=0, name="pages")
        self.port = free_port()
        self.pages = self.write_spec("pages", self.cluster.members[:2])
        self.orders = self.write_spec("orders", self.cluster.members[2:])
        self.file = directory / "proxy.yaml"
        self.write(USERS + ROUTES)
        self.process = Process("proxy", [str(RINGSHIFT), "proxy", "--config", str(self.file)], directory)
        self.process.start()
        self.process.wait_ready()

    def write_spec(self, name, members):
        document = {**self.cluster.spec_document(members=[m.id for m in members]), "cluster": name}
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps(document))
        return path

    def write(self, rest):
        self.file.write_text(f"listen: 127.0.0.1:{self.port}\nthreads: 2\nclusters:\n"
                             f"  - {{name: pages, spec: pages.json}}\n  - {{name: orders, spec: {self.orders}}}\n" + rest)

    def reload(self, rest, refused=False):
        before = self.process.errors()
        self.write(rest)
        self.process.send(signal.SIGHUP)
        word = "nothing was changed" if refused else "was read anew"
        wait_until("the reload", lambda: self.process.errors().count(word) > before.count(word))
        return self.process.errors()[len(before):]

    def client(self, user, password, **options):
        return redis.Redis(port=self.port, username=user, password=password, **options)

    def keys_of(self, members):
        return {key for m in members for key in m.client.keys("*")}


@pytest.fixture
def pools(tmp_path):
    made = Pools(tmp_path)
    yield made
    assert made.process.alive()
    made.process.end()
    made.cluster.stop()


def test_pools_users_and_routes(pools):
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=pools.port).get("x")
    with pytest.raises(redis.ResponseError, match="invalid username-password pair"):
        pools.client("al", "wrong").get("x")
    al = pools.client("al", "secret")
    assert al.mset({"order:1": "o", "page:1": "p"})
    assert al.mget("order:1", "page:1") == [b"o", b"p"]
    with pytest.raises(redis.exceptions.NoPermissionError, match="no permissions to run the 'flushall' command"):
        al.flushall()
    assert al.acl_whoami() in (b"al", "al")
    assert pools.keys_of(pools.cluster.members[:2]) == {b"page:1"}
    assert pools.keys_of(pools.cluster.members[2:]) == {b"order:1"}
    reader = pools.client("reader", "r")
    assert reader.get("order:1") == b"o"
    for forbidden in (lambda: reader.get("page:1"), lambda: reader.set("order:1", "x")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            forbidden()
    tenant = pools.client("tenant", "t")
    assert tenant.get("page:1") is None and tenant.keys("*") == [b"order:1"] and tenant.dbsize() == 1


def test_redis_cli_and_ioredis_log_in(pools, node_clients):
    cli = ["redis-cli", "-p", str(pools.port), "--no-auth-warning", "--user", "al", "--pass", "secret"]
    for extra in ([], ["-3"]):
        done = subprocess.run(cli + extra + ["SET", "order:cli", "1"], capture_output=True, text=True, timeout=20)
        assert done.stdout.strip() == "OK", done
    done = subprocess.run(cli[:4] + ["GET", "x"], capture_output=True, text=True, timeout=20)
    assert "NOAUTH" in done.stdout + done.stderr
    done = subprocess.run(["node", "ioredis_access.mjs", str(pools.port)], cwd=node_clients, capture_output=True, text=True,
                          timeout=30)
    assert json.loads(done.stdout) == ["7", "al", "NOPERM this user has no permissions to run the 'flushall' command"], done.stderr


def test_limits(pools):
    pools.reload(USERS + ROUTES + "limits: [{user: al, requests_per_second: 200, burst: 20}]\n")
    al = pools.client("al", "secret")
    tenant = pools.client("tenant", "t")
    end = time.monotonic() + 2
    passed = limited = 0
    while time.monotonic() < end:
        try:
            al.get("x")
            passed += 1
        except redis.ResponseError as error:
            assert "rate limit exceeded for user 'al': 200 requests per second; retry after" in str(error)
            limited += 1
        tenant.get("x")
    # Two seconds' worth and the burst; a slow machine may not ask often enough to be limited exactly.
    assert limited > 0 and passed <= 2 * 200 + 20 + 10, (passed, limited)
    assert tenant.info("stats")["errors_limited"] >= limited


def test_a_reload_under_load_loses_no_reply(pools):
    stop = threading.Event()
    faults, counts = [], []

    def load(number):
        # Pipelines over a plain socket: every command has exactly one answer, in order.
        connection = socket.create_connection(("127.0.0.1", pools.port), timeout=20)
        stream = connection.makefile("rb")
        connection.sendall(b"AUTH al secret\r\n")
        assert stream.readline() == b"+OK\r\n"
        done = 0
        while not stop.is_set():
            words = [f"{'order' if i % 2 else 'page'}:{number}:{i} {done}" for i in range(50)]
            connection.sendall("".join(f"SET {w}\r\nGET {w.split()[0]}\r\n" for w in words).encode())
            for word in words:
                value = word.split()[1]
                answers = [stream.readline(), stream.readline(), stream.readline()]
                if answers != [b"+OK\r\n", f"${len(value)}\r\n".encode(), f"{value}\r\n".encode()]:
                    faults.append((word, answers))
                    return
            done += 1
        counts.append(done)

    threads = [threading.Thread(target=load, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    try:
        for i in range(12):
            pools.reload(USERS + ROUTES + f"limits: [{{user: tenant, requests_per_second: {i + 1}}}]\n")
            said = pools.reload(USERS + ROUTES + "limits: [{user: nobody, requests_per_second: 1}]\n", refused=True)
            assert "there is no user 'nobody'" in said
            time.sleep(0.1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults, faults[:3]
    assert len(counts) == 4 and min(counts) > 0


def test_a_reload_changes_open_connections(pools):
    al, tenant = pools.client("al", "secret"), pools.client("tenant", "t")
    assert al.set("k", "1") and tenant.set("k", "2")
    without_tenant = "\n".join(line for line in USERS.splitlines() if "tenant" not in line) + "\n"
    routes = "routes: [{cluster: orders}]\n"
    pools.reload(without_tenant.replace("-@dangerous", "-set") + routes)
    assert al.get("k") == b"2", "by the new route"
    with pytest.raises(redis.exceptions.NoPermissionError):
        al.set("k", "3")
    with pytest.raises((redis.ConnectionError, redis.ResponseError)):
        tenant.get("k")
    # Other clusters need a restart; what is refused changes nothing.
    pools.file.write_text(pools.file.read_text().replace("name: pages", "name: other"))
    before = pools.process.errors().count("nothing was changed")
    pools.process.send(signal.SIGHUP)
    wait_until("the refusal", lambda: pools.process.errors().count("nothing was changed") > before)
    assert al.get("k") == b"2"


def test_check_and_precedence(pools, tmp_path):
    def check(text, *more, env=None):
        path = tmp_path / "checked.yaml"
        path.write_text(text)
        done = subprocess.run([str(RINGSHIFT), "proxy", "--config", str(path), *more], capture_output=True, text=True,
                              timeout=20, env={**os.environ, **(env or {})})
        return done.returncode, done.stdout + done.stderr

    assert check(pools.file.read_text(), "--check")[0] == 0
    status, said = check(pools.file.read_text() + "limts: []\n", "--check")
    assert status != 0 and "checked.yaml:" in said and "did you mean 'limits'?" in said
    status, said = check("clusters: [{name: a, spec: none.json}]\n", "--check")
    assert status != 0 and "none.json" in said
    status, said = check("threads: 1\n", "--check")
    assert status != 0 and "has no clusters" in said
    assert check("threads: 1\n", "--check", "--spec", str(pools.pages))[0] == 0
    status, said = check(pools.file.read_text(), "--check", "--spec", str(pools.pages))
    assert status != 0 and "has clusters" in said
    # The flag beats the variable, which beats the file.
    flag, variable = free_port(), free_port()
    for more, env, port in (([], {"RINGSHIFT_LISTEN": f"127.0.0.1:{variable}"}, variable),
                            (["--listen", f"127.0.0.1:{flag}"], {"RINGSHIFT_LISTEN": "127.0.0.1:1"}, flag)):
        process = subprocess.Popen([str(RINGSHIFT), "proxy", "--config", str(pools.file), *more],
                                   env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   preexec_fn=die_with_parent)
        try:
            assert process.stdout.readline().strip() == f"ready: proxy listening on 127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(timeout=20) == 0
