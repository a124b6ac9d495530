"""TLS and passwords, end to end: real clients over TLS, members with TLS and a password, a resize of such members under
load, and certificates that change while clients are served."""
import os
import random
import socket
import ssl
import subprocess
import threading
import time

import pytest
import redis

from harness.cluster import BAD_USAGE, FAILED, Member, run
from harness.process import READY, Process, free_port, wait_until

PASSWORD = "correct-horse-of-the-members"


class Authority:
    """A CA and the certificates it signs, made by the openssl command."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", "/CN=Test CA", "-keyout", "ca.key", "-out", "ca.pem")

    def _run(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, capture_output=True)

    def issue(self, name, names="DNS:localhost,IP:127.0.0.1", file=None):
        file = file or name
        self._run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                  "-keyout", f"{file}.key.new", "-out", f"{file}.csr")
        (self.directory / f"{file}.ext").write_text(f"subjectAltName={names}")
        self._run("x509", "-req", "-in", f"{file}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                  "2", "-extfile", f"{file}.ext", "-out", f"{file}.pem.new")
        for kind in ("key", "pem"):
            os.replace(self.directory / f"{file}.{kind}.new", self.directory / f"{file}.{kind}")

    def __getitem__(self, file):
        return str(self.directory / file)


@pytest.fixture
def ca(tmp_path):
    authority = Authority(tmp_path / "ca")
    authority.issue("proxy")
    authority.issue("client", "DNS:client")
    return authority


def tls_flags(ca, listen="127.0.0.1:0"):
    return ["--tls-listen", listen, "--tls-cert", ca["proxy.pem"], "--tls-key", ca["proxy.key"]]


def tls_port(proxy):
    """Of the second listener."""
    def look():
        found = [m for m in READY.finditer(proxy.output()) if m.group(1) == "proxy-tls"]
        return found and int(found[0].group(3))
    return wait_until("the TLS listener is ready", look)


def tls_client(ca, port, **options):
    return redis.Redis(host="127.0.0.1", port=port, ssl=True, ssl_ca_certs=ca["ca.pem"], ssl_cert_reqs="required",
                       ssl_check_hostname=True, socket_timeout=20, **options)


class TlsMember(Member):
    """A redis-server that speaks TLS alone, and wants a password."""

    def __init__(self, number, directory, ca):
        self.id = f"cache-{number}"
        self.port = free_port()
        self.ca = ca
        self.process = Process(self.id, [
            "redis-server", "--port", "0", "--tls-port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly",
            "no", "--loglevel", "warning", "--dir", directory, "--tls-cert-file", ca["member.pem"], "--tls-key-file",
            ca["member.key"], "--tls-ca-cert-file", ca["ca.pem"], "--tls-auth-clients", "yes", "--requirepass",
            PASSWORD], directory)
        self.start()

    def connect(self):
        return tls_client(self.ca, self.port, password=PASSWORD, ssl_certfile=self.ca["client.pem"],
                          ssl_keyfile=self.ca["client.key"])


@pytest.fixture
def secured(make_cluster, ca, tmp_path, monkeypatch):
    """Four members with TLS, client certificates and a password; registry, controller, two proxies with both kinds of
    listener."""
    ca.issue("member")
    password = tmp_path / "password"
    password.write_text(PASSWORD + "\n")
    flags = ["--tls-members", "--tls-members-ca", ca["ca.pem"], "--tls-members-cert", ca["client.pem"],
             "--tls-members-key", ca["client.key"], "--member-password-file", str(password)]
    cluster = make_cluster(members=0, proxies=0)
    cluster.member_flags = flags

    def add_member():
        cluster.members.append(TlsMember(len(cluster.members) + 1, cluster.directory, ca))
        return cluster.members[-1]

    def server(name, command, *arguments, env=None):
        if command == "controller":
            arguments += tuple(flags)
        if command == "proxy":
            arguments += tuple(flags) + tuple(tls_flags(ca))
        return Process(name, [cluster.binary, command, *arguments], cluster.directory, {**cluster.env, **(env or {})})

    cluster.add_member, cluster._server = add_member, server
    for _ in range(4):
        add_member()
    cluster.start()
    for _ in range(2):
        cluster.add_proxy()
    return cluster


def test_clients_over_tls(make_cluster, ca):
    cluster = make_cluster(members=3, proxies=0).start_static()
    proxy = cluster.add_proxy(*tls_flags(ca), spec=cluster.spec)
    port = tls_port(proxy)
    client = tls_client(ca, port)
    assert client.set("a", "1") and client.get("a") == b"1"
    assert redis.Redis(port=proxy.port).get("a") == b"1", "the plain listener serves the same"
    big = os.urandom(16 << 20)
    assert client.set("big", big) and client.get("big") == big
    pipeline = client.pipeline(transaction=False)
    for i in range(5000):
        pipeline.set(f"k{i}", i).get(f"k{i}")
    answers = pipeline.execute()
    assert answers[1::2] == [str(i).encode() for i in range(5000)]
    assert client.mget([f"k{i}" for i in range(100)]) == [str(i).encode() for i in range(100)]
    said = subprocess.run(["redis-cli", "-p", str(port), "--tls", "--cacert", ca["ca.pem"], "get", "a"],
                          capture_output=True, text=True, timeout=10)
    assert said.stdout.strip() == "1", said
    bench = subprocess.run(["redis-benchmark", "-p", str(port), "--tls", "--cacert", ca["ca.pem"], "-n", "5000", "-P",
                            "20", "-t", "set,get", "-q"], capture_output=True, text=True, timeout=30)
    assert bench.returncode == 0 and "GET:" in bench.stdout, bench


def test_ioredis_over_tls(make_cluster, ca, node_clients):
    cluster = make_cluster(members=2, proxies=0).start_static()
    proxy = cluster.add_proxy(*tls_flags(ca), spec=cluster.spec)
    program = """
      import fs from 'fs'; import Redis from 'ioredis';
      const [port, ca] = process.argv.slice(1);
      const client = new Redis({host: 'localhost', port: Number(port), tls: {ca: fs.readFileSync(ca)}});
      await client.set('x', 'y'.repeat(100000));
      console.log((await client.get('x')).length);
      await client.quit();
    """
    done = subprocess.run(["node", "--input-type=module", "-e", program, str(tls_port(proxy)), ca["ca.pem"]],
                          cwd=node_clients, capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "100000", done


def test_only_tls_when_only_tls_is_asked_for(make_cluster, ca):
    cluster = make_cluster(members=1, proxies=0).start_static()
    proxy = Process("proxy-tls-only", [cluster.binary, "proxy", "--spec", cluster.spec, *tls_flags(ca)],
                    cluster.directory)
    cluster.proxies.append(proxy)
    proxy.start()
    _, port = proxy.wait_ready()
    assert tls_client(ca, port).ping()
    with pytest.raises(redis.ConnectionError):
        redis.Redis(port=port, socket_timeout=5).ping()
    assert len(READY.findall(proxy.output())) == 1


def test_client_certificates(make_cluster, ca):
    cluster = make_cluster(members=1, proxies=0).start_static()
    proxy = cluster.add_proxy(*tls_flags(ca), "--tls-ca", ca["ca.pem"], "--tls-auth-clients", "yes", spec=cluster.spec)
    port = tls_port(proxy)
    with pytest.raises((redis.ConnectionError, ssl.SSLError)):
        tls_client(ca, port).ping()
    wait_until("the log says why", lambda: "peer did not return a certificate" in proxy.errors())
    assert tls_client(ca, port, ssl_certfile=ca["client.pem"], ssl_keyfile=ca["client.key"]).ping()


def test_resize_of_tls_members_with_a_password(secured, ca):
    written = secured.fill(3000, ttl_every=3)
    secured.add_member()
    five = secured.write_spec()
    with secured.history() as load:
        secured.resize_start(five)
    load.assert_clean()
    secured.assert_placed(five)
    secured.assert_filled(written, ttl_every=3)
    client = tls_client(ca, tls_port(secured.proxies[0]))
    assert client.get("fill:1") is not None
    # The password is in no log and no process list.
    for process in [secured.controller, *secured.proxies]:
        assert PASSWORD not in process.tail(100000)
        with open(f"/proc/{process.pid}/cmdline") as file:
            assert PASSWORD not in file.read()


def test_large_values_of_tls_members(secured, ca):
    """In pieces both ways, TLS towards the member and, the second time, towards the client as well."""
    plain = secured.client()
    over_tls = tls_client(ca, tls_port(secured.proxies[0]))
    for number, size in enumerate((1 << 20, (5 << 20) + 1, 40_000_003)):
        value = random.Random(size).randbytes(size)
        for written, read in ((plain, over_tls), (over_tls, plain)):
            key = f"large:{number}:{written is plain}"
            pipe = written.pipeline(transaction=False)
            pipe.set(key, value).strlen(key).set("small", number)
            assert pipe.execute() == [True, size, True]
            pipe = read.pipeline(transaction=False)
            pipe.get("small").get(key).get("small")
            small = str(number).encode()
            assert pipe.execute() == [small, value, small]


def test_a_resize_needs_the_password(secured):
    """A controller without it says so, instead of waiting for ever without a word."""
    secured.controller.end()
    secured.controller.expected_dead = True
    bare = Process("controller-bare", [secured.binary, "controller", "--registry", secured.registry_url, "--cluster",
                                       secured.name, "--tls-members", "--tls-members-ca", secured.members[0].ca["ca.pem"],
                                       "--tls-members-cert", secured.members[0].ca["client.pem"], "--tls-members-key",
                                       secured.members[0].ca["client.key"]], secured.directory)
    bare.start()
    bare.wait_ready()
    secured.controller = bare
    secured.add_member()
    refused = secured.resize_start(secured.write_spec(), wait=False, check=None)
    text = refused.stdout + refused.stderr
    if "NOAUTH" not in text:  # Accepted; then its status says what it waits for.
        wait_until(lambda: f"the status says NOAUTH: {secured.status()}",
                   lambda: "NOAUTH" in str(secured.status()) + bare.errors())


def test_plan_live_of_tls_members(secured):
    secured.fill(500)
    done = run("plan", secured.spec, "remove", "cache-4", "--live", *secured.member_flags, "--json")
    assert '"measured"' in done.stdout, done
    bare = run("plan", secured.spec, "remove", "cache-4", "--live", "--json", check=FAILED)
    assert "cache-1" in bare.stderr


def test_the_doctor_gets_in_as_everybody_does(secured):
    secured.fill(200)
    for member in secured.members:
        member.hang_up()
    done = secured.cli("doctor", *secured.member_flags, check=0).stdout
    assert "permissions: 4 are well" in done and "reachable: 4 are well" in done, done
    no_password = secured.cli("doctor", *secured.member_flags[:-2], check=FAILED).stdout
    assert "NOAUTH" in no_password and "fix: give the members' user and password" in no_password, no_password
    plain = secured.cli("doctor", *secured.member_flags[-2:], check=FAILED).stdout
    assert "0 problems" not in plain, plain


def test_certificates_are_reloaded_without_a_dropped_reply(make_cluster, ca):
    cluster = make_cluster(members=2, proxies=0).start_static()
    proxy = cluster.add_proxy(*tls_flags(ca), spec=cluster.spec)
    port = tls_port(proxy)
    stop, faults, counts = threading.Event(), [], [0] * 4

    def load(number):
        client = tls_client(ca, port)
        try:
            while not stop.is_set():
                pipeline = client.pipeline(transaction=False)
                for i in range(20):
                    pipeline.set(f"l{number}:{i}", counts[number]).get(f"l{number}:{i}")
                answers = pipeline.execute()
                assert answers[1::2] == [str(counts[number]).encode()] * 20
                counts[number] += 1
                if counts[number] % 10 == 0:
                    client.connection_pool.disconnect()  # A new connection, with what is loaded now.
        except Exception as error:  # noqa: BLE001: whatever it is, the test tells it.
            faults.append(repr(error))

    def serial():
        context = ssl.create_default_context(cafile=ca["ca.pem"])
        with socket.create_connection(("127.0.0.1", port)) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as wrapped:
                return wrapped.getpeercert()["serialNumber"]

    threads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    seen = {serial()}
    for _ in range(5):
        ca.issue("proxy")
        proxy.send(1)  # SIGHUP
        before = set(seen)
        wait_until("the new certificate is shown", lambda: seen.add(serial()) or seen - before)
    # A bad file: the old certificate goes on, and the log says why.
    with open(ca["proxy.pem"], "w") as file:
        file.write("garbage")
    proxy.send(1)
    wait_until("the log names the file", lambda: f"certificate {ca['proxy.pem']}" in proxy.errors())
    assert serial() in seen
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults, faults
    assert min(counts) > 20, counts


def test_unix_sockets(make_cluster, tmp_path):
    """Members and clients by unix sockets; permissions; a stale file is replaced, a live one is not."""
    cluster = make_cluster(members=0, proxies=0)
    inside = tmp_path / "member.sock"
    member = Process("member", ["redis-server", "--port", "0", "--unixsocket", inside, "--save", "", "--dir", tmp_path],
                     tmp_path).start()
    wait_until("the member's socket is there", inside.exists)
    spec = tmp_path / "unix.yaml"
    spec.write_text('{"cluster": "cache", "placement": {"algorithm": "ring", "hash": "xxh3", "points": 16}, '
                    f'"members": [{{"id": "one", "address": "unix:{inside}"}}]}}')
    path = tmp_path / "proxy.sock"

    def proxy(name):
        return Process(name, [cluster.binary, "proxy", "--spec", spec, "--listen", f"unix:{path}", "--unix-permissions",
                              "0770", "--threads", "2"], tmp_path).start()
    first = proxy("first")
    wait_until("the proxy's socket is there", path.exists)
    assert path.stat().st_mode & 0o777 == 0o770
    client = redis.Redis(unix_socket_path=str(path))
    wait_until("the proxy answers", lambda: client.set("k", "v"))
    second = proxy("second")
    assert second.popen.wait(10) == FAILED
    assert "stop what listens there" in second.errors()
    assert client.get("k") == b"v"
    first.kill()
    assert path.exists()
    third = proxy("third")
    wait_until("the stale file is replaced", lambda: "ready" in third.output())
    assert redis.Redis(unix_socket_path=str(path)).get("k") == b"v"
    assert third.end() == 0 and not path.exists()
    member.end()


def test_bad_flags(make_cluster, ca):
    cluster = make_cluster(members=1, proxies=0)
    spec = cluster.write_spec()

    def refused(*flags, status):
        done = run("proxy", "--spec", spec, "--listen", "127.0.0.1:0", *flags, timeout=10)
        assert done.returncode == status, done
        return done.stderr
    assert "--tls-cert" in refused("--tls-listen", "127.0.0.1:0", status=BAD_USAGE)
    assert "--tls-ca" in refused(*tls_flags(ca), "--tls-auth-clients", "yes", status=BAD_USAGE)
    assert "/no/such.pem" in refused("--tls-listen", "127.0.0.1:0", "--tls-cert", "/no/such.pem", "--tls-key",
                                     ca["proxy.key"], status=BAD_USAGE)
    assert "proxy.key" in refused("--tls-listen", "127.0.0.1:0", "--tls-cert", ca["client.pem"], "--tls-key",
                                  ca["proxy.key"], status=BAD_USAGE)
    assert "tls-members" in refused("--tls-members-insecure", status=BAD_USAGE)
    assert "/no/such" in refused("--member-password-file", "/no/such", status=FAILED)
    assert "password" in refused("--member-user", "rs", status=FAILED)
    assert "octal" in refused("--unix-permissions", "999", status=BAD_USAGE)
