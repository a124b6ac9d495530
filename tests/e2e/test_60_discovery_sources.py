"""Sources of instances, as `ringshift discovery show` sees them: a real DNS server and a real registry, and simulators of
Consul, Nacos and Kubernetes (tests/e2e/sim) with the faults that the real ones show. What the simulators answer is
checked by clients that others wrote."""
import base64
import json
import os
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from harness.cluster import BAD_USAGE, FAILED, RINGSHIFT, run, run_json
from harness.process import Process, die_with_parent, free_port, wait_until
from sim.consul import Consul
from sim.kubernetes import Kubernetes, endpoint, slice_of
from sim.nacos import Nacos

SIM_CLIENTS = Path(__file__).parent / "sim" / "clients"
long_one = pytest.mark.skipif(not os.environ.get("RINGSHIFT_LONG"), reason="long: set RINGSHIFT_LONG=1")


class Show:
    """`ringshift discovery show --watch --json`, and what it has said."""

    def __init__(self, directory, *arguments):
        number = len(list(directory.glob("show-*.out")))
        self.process = Process(f"show-{number}", [RINGSHIFT, "discovery", "show", *arguments, "--watch", "--json"],
                               directory).start()

    def said(self):
        lines = self.process.output().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def lists(self):
        return [{one["id"]: one for one in line["instances"]} for line in self.said() if "instances" in line]

    def troubles(self):
        return [line["trouble"] for line in self.said() if "trouble" in line]

    def ids(self):
        lists = self.lists()
        return sorted(lists[-1]) if lists else None

    def wait_ids(self, *ids):
        wait_until(lambda: f"ids {ids}; {self.said()[-3:]} {self.process.errors()}", lambda: self.ids() == sorted(ids), 30)

    def wait_state(self, ident, state):
        wait_until(lambda: f"{ident} {state}; {self.said()[-3:]}",
                   lambda: self.lists() and self.lists()[-1].get(ident, {}).get("state") == state, 30)

    def wait_trouble(self, part, after=0):
        return wait_until(lambda: f"trouble '{part}'; {self.said()[-3:]}",
                          lambda: [one for one in self.troubles()[after:] if part in one["message"]], 30)


@pytest.fixture
def show(tmp_path):
    shown = []

    def make(*arguments):
        shown.append(Show(tmp_path, *arguments))
        return shown[-1]
    yield make
    for one in shown:
        if one.process.alive():
            assert one.process.end() == 0, one.process.errors()


@pytest.fixture
def simulate():
    made = []

    def make(kind, **options):
        made.append(kind(**options))
        return made[-1]
    yield make
    for one in made:
        one.stop()


def secret(path, text):
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


# --- The command, and lists ---

def test_show_once(tmp_path):
    path = tmp_path / "list.yaml"
    path.write_text("- {id: b, address: '10.0.0.2:6379', state: draining, labels: {zone: a}}\n"
                    "- {id: a, address: '10.0.0.1:6379'}\n")
    seen = run_json("discovery", "show", "--source", "file", "--path", path)
    assert [one["id"] for one in seen["instances"]] == ["a", "b"]
    assert seen["instances"][1] == {"id": "b", "address": "10.0.0.2:6379", "protocol": "redis", "state": "draining",
                                    "labels": {"zone": "a"}}
    table = run("discovery", "show", "--source", "static", "--instances", "x=10.0.0.1:1,y=[::1]:2", check=0).stdout
    assert table.splitlines()[0].split() == ["ID", "ADDRESS", "PROTOCOL", "STATE", "LABELS"]
    assert table.splitlines()[2].split() == ["y", "[::1]:2", "redis", "ready"]
    path.write_text("- {id: a, address: '10.0.0.1'}")
    broken = run("discovery", "show", "--source", "file", "--path", path, check=FAILED).stderr
    assert f"{path}:1: instances[0]: address '10.0.0.1' has no port" in broken
    usage = run("discovery", "show", "--source", "consul", "--id-from", "x", "--service", "s", check=BAD_USAGE).stderr
    assert "--id-from: 'x' is none of service, node, both" in usage
    usage = run("discovery", "show", "--source", "kubernetes", "--service", "s", check=BAD_USAGE,
                env={"KUBERNETES_SERVICE_HOST": ""}).stderr
    assert "url: is missing" in usage


# --- DNS ---

class Dnsmasq:
    def __init__(self, directory):
        self.directory, self.port = directory, free_port()
        self.hosts = directory / "hosts"
        self.hosts.mkdir()
        (self.hosts / "list").write_text("")
        self.process, self.records = None, []

    def start(self, *records):
        self.records = records or self.records
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.process = Process("dnsmasq", [
            shutil.which("dnsmasq") or "/usr/sbin/dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null",
            "--pid-file=", f"--user={user}", f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces",
            "--no-resolv", "--no-hosts", f"--hostsdir={self.hosts}", "--local-ttl=1", "--local=/test/", *self.records],
            self.directory).start()

        def answers():
            assert self.process.alive(), self.process.tail()
            with open(f"/proc/{self.process.pid}/net/udp", encoding="ascii") as table:
                return f"0100007F:{self.port:04X}" in table.read()
        wait_until(lambda: f"dnsmasq\n{self.process.tail()}", answers)
        return self

    def write(self, *addresses, name="cache.test"):
        new = self.directory / "new"
        new.write_text("".join(f"{address} {name}\n" for address in addresses))
        new.rename(self.hosts / "list")
        if self.process:  # A full reload: what is gone from the file is gone from the answers.
            self.process.send(signal.SIGHUP)


@pytest.fixture
def dnsmasq(tmp_path):
    server = Dnsmasq(tmp_path)
    yield server
    if server.process and server.process.alive():
        server.process.kill()


def test_dns_addresses(dnsmasq, show):
    dnsmasq.write("127.0.0.2", "127.0.0.1")
    dnsmasq.start()
    ask = ["--source", "dns", "--name", "cache.test", "--port", "6379", "--servers", f"127.0.0.1:{dnsmasq.port}",
           "--poll", "300ms", "--timeout", "500ms"]
    plain = show(*ask)
    plain.wait_ids("127.0.0.1:6379", "127.0.0.2:6379")
    # More than a datagram holds: by TCP.
    many = [f"127.0.1.{i}" for i in range(1, 101)]
    dnsmasq.write("127.0.0.1", "127.0.0.2", *many)
    plain.wait_ids("127.0.0.1:6379", "127.0.0.2:6379", *[f"{one}:6379" for one in many])
    dnsmasq.write("127.0.0.1", "127.0.0.2", "::1")
    plain.wait_ids("127.0.0.1:6379", "127.0.0.2:6379", "::1:6379")
    # Nobody answers: the list stands. It is told again when somebody does.
    dnsmasq.process.kill()
    plain.wait_trouble("cache.test")
    lists = len(plain.lists())
    assert plain.lists()[-1]
    dnsmasq.start()
    wait_until("told again", lambda: len(plain.lists()) > lists, 30)
    # The name is gone: an empty list, which the guard holds.
    guarded = show(*ask, "--guarded", "--confirm-after", "1h")
    guarded.wait_ids("127.0.0.1:6379", "127.0.0.2:6379", "::1:6379")
    dnsmasq.write("127.0.0.1", name="other.test")
    plain.wait_ids()
    guarded.wait_trouble("the source shows 0 instances")
    assert guarded.lists()[-1]


def test_dns_services(dnsmasq):
    dnsmasq.start("--srv-host=_redis._tcp.test,spare.test,6379,20,5", "--srv-host=_redis._tcp.test,b.test,6380,10,0",
                  "--srv-host=_redis._tcp.test,a.test,6379,10,5", "--srv-host=_none._tcp.test")
    ask = ["discovery", "show", "--source", "dns", "--servers", f"127.0.0.1:{dnsmasq.port}", "--timeout", "1s"]
    seen = run_json(*ask, "--name", "_redis._tcp.test")["instances"]
    assert [(one["id"], one["address"], one["labels"]["dns.weight"]) for one in seen] == [
        ("a.test:6379", "a.test:6379", "5"), ("b.test:6380", "b.test:6380", "0")]
    assert run_json(*ask, "--name", "_none._tcp.test")["instances"] == []
    assert run_json(*ask, "--name", "nobody.test", "--port", "1")["instances"] == []
    refused = run(*ask, "--name", "refused.example", "--port", "1", check=FAILED).stderr  # dnsmasq asks nobody else.
    assert "DNS name refused.example" in refused


# --- The registry's agents ---

def etcd(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def b64(text):
    return base64.b64encode(text.encode()).decode()


def test_registry_agents(tmp_path, show):
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def start(number, data):
        registry = Process(f"registry-{number}", [RINGSHIFT, "registry", "--listen", f"127.0.0.1:{port}", "--data",
                                                  tmp_path / data], tmp_path).start()
        registry.wait_ready()
        return registry

    def write(ident, state="ready", lease="0"):
        record = {"id": ident, "address": f"10.0.0.1:{7000 + int(ident[-1])}", "protocol": "redis", "state": state,
                  "started_at": 1, "labels": {"zone": "a"}, "health": {"used_memory": 1}}
        etcd(url, "/v3/kv/put", {"key": b64(f"/ringshift/default/cache/instances/{ident}"),
                                 "value": b64(json.dumps(record)), "lease": lease})

    registry = start(1, "one.db")
    write("cache-1")
    lease = etcd(url, "/v3/lease/grant", {"TTL": "2"})["ID"]
    write("cache-2", lease=lease)
    shown = show("--source", "registry", "--registry", url, "--cluster", "cache")
    shown.wait_ids("cache-1", "cache-2")
    assert shown.lists()[0]["cache-1"]["labels"] == {"zone": "a"}
    shown.wait_ids("cache-1")  # The lease ran out.
    write("cache-1", "draining")
    shown.wait_state("cache-1", "draining")
    etcd(url, "/v3/kv/put", {"key": b64("/ringshift/default/cache/instances/odd"), "value": b64("{")})
    write("cache-3")
    shown.wait_ids("cache-1", "cache-3")
    registry.kill()
    shown.wait_trouble(str(port))
    assert shown.ids() == ["cache-1", "cache-3"]
    registry = start(2, "two.db")  # Another registry at the same address: what it has is all there is.
    write("cache-9")
    shown.wait_ids("cache-9")
    assert registry.end() == 0


# --- Consul ---

def consul_show(show, server, tmp_path, *more):
    token = secret(tmp_path / "token", server.token or "none")
    return show("--source", "consul", "--url", server.url, "--service", "cache", "--token-file", token, "--wait", "1s",
                "--timeout", "1s", *more)


def test_consul(simulate, show, tmp_path):
    server = simulate(Consul, token="s3cret")
    server.register("cache-1", "10.0.0.1", 6379, meta={"zone": "a"})
    server.register("cache-2", "", 6380)
    shown = consul_show(show, server, tmp_path)
    shown.wait_ids("cache-1", "cache-2")
    first = shown.lists()[0]
    assert first["cache-1"]["labels"]["zone"] == "a" and first["cache-2"]["address"] == "127.0.0.1:6380"
    for check, status, state in [(None, "critical", "unhealthy"), (None, "warning", "ready"),
                                 ("_service_maintenance:cache-1", "critical", "draining")]:
        server.check("cache-1", status, check)
        shown.wait_state("cache-1", state)
    server.deregister("cache-2")
    shown.wait_ids("cache-1")
    lists = len(shown.lists())
    for _ in range(5):  # The index moves, and nothing else.
        server.touch()
    asked = server.count("/v1/health/")
    wait_until("it asked again", lambda: server.count("/v1/health/") > asked, 30)
    assert len(shown.lists()) == lists
    # The token's file is read anew, and the token is in headers alone.
    server.token = "an0ther"
    shown.wait_trouble("refuses us (403)")
    secret(tmp_path / "token", "an0ther")
    server.register("cache-3", "10.0.0.3", 6379)
    shown.wait_ids("cache-1", "cache-3")
    assert not [target for _, _, target, _ in server.requests if "s3cret" in target or "an0ther" in target]
    assert "s3cret" not in json.dumps(shown.said()) and "an0ther" not in json.dumps(shown.said())


def test_consul_faults_keep_the_list(simulate, show, tmp_path):
    server = simulate(Consul)
    for number in range(1, 5):
        server.register(f"cache-{number}", "10.0.0.1", 7000 + number)
    four = [f"cache-{number}" for number in range(1, 5)]
    shown = consul_show(show, server, tmp_path, "--stale", "true", "--guarded", "--confirm-after", "1h")
    shown.wait_ids(*four)
    troubles = {"500": "answered 500", "garbage": "not JSON", "no-index": "without an X-Consul-Index",
                "no-leader": "knows no leader", "filtered": "hides entries", "hang": "did not answer within"}
    for fault, message in troubles.items():
        server.faults[fault] = None  # It strikes when the question that waits comes back.
        shown.wait_trouble(message)
        with server.changed:
            del server.faults[fault]
            server.changed.notify_all()
        assert shown.ids() == four, fault
        wait_until("well again", lambda: "index=0&" not in server.requests[-1][2], 30)
    # Backwards: the answer, which is old, is dropped, and the list read anew.
    server.check("cache-1", "critical")
    shown.wait_state("cache-1", "unhealthy")
    lists = len(shown.lists())
    with server.changed:
        server.faults["backwards"] = 1
        server.changed.notify_all()
    wait_until("read from 0", lambda: "index=0&" in [target for _, _, target, _ in server.requests][-1] or
               server.count("index=0&") > 1 and "backwards" not in server.faults, 30)
    server.check("cache-2", "critical")
    shown.wait_state("cache-2", "unhealthy")
    assert all(one["cache-1"]["state"] == "unhealthy" for one in shown.lists()[lists:])
    # Half the list is believed (the policy sees it), less than half is not.
    server.deregister("cache-1"), server.deregister("cache-2")
    shown.wait_ids("cache-3", "cache-4")
    server.faults["half"] = None
    wait_until("half of it, which is half", lambda: len(shown.ids()) == 1, 60)
    del server.faults["half"]
    server.deregister("cache-3"), server.deregister("cache-4")
    shown.wait_trouble("the source shows 0 instances")
    assert shown.ids() == ["cache-3"]
    # Zero counts as 1, and the pace keeps it from asking in circles.
    server.faults["zero"] = None
    server.touch()
    asked = server.count("/v1/health/")
    server.register("cache-1", "10.0.0.1", 7001), server.register("cache-2", "10.0.0.1", 7002), server.register("cache-3", "10.0.0.1", 7003)
    shown.wait_ids("cache-1", "cache-2", "cache-3")
    assert server.count("/v1/health/") - asked < 20


# --- Nacos ---

def test_nacos(simulate, show, tmp_path):
    server = simulate(Nacos, user=("reader", "pa:ss&word"), token_ttl=5)
    server.put("10.0.0.1", 6379, metadata={"id": "cache-1", "zone": "a"})
    server.put("10.0.0.2", 6379)
    server.put("10.0.0.9", 6379, group="OTHER")
    auth = secret(tmp_path / "auth", "user:reader:pa:ss&word")
    shown = show("--source", "nacos", "--url", server.url, "--service", "cache", "--id-label", "id", "--poll", "200ms",
                 "--auth-file", auth)
    shown.wait_ids("10.0.0.2:6379", "cache-1")
    assert shown.lists()[0]["cache-1"]["labels"]["zone"] == "a"
    server.put("10.0.0.2", 6379, healthy=False)
    shown.wait_state("10.0.0.2:6379", "unhealthy")
    server.put("10.0.0.2", 6379, healthy=True, enabled=False)
    shown.wait_state("10.0.0.2:6379", "draining")
    # A token that the server forgot is replaced without a word; one that ends is renewed before.
    logins = server.logins
    server.faults["forget"] = 1
    wait_until("logged in again", lambda: server.logins > logins, 30)
    logins = server.logins
    wait_until("renewed early", lambda: server.logins > logins, 30)
    assert not shown.troubles()
    for fault, message in {"500": "answered 500", "garbage": "", "protect": "Nacos protects the service"}.items():
        told = len(shown.troubles())
        server.faults[fault] = None
        shown.wait_trouble(message, after=told)  # Of the list or the login, whichever it struck.
        del server.faults[fault]
    assert shown.ids() == ["10.0.0.2:6379", "cache-1"]
    server.remove("10.0.0.2", 6379)
    shown.wait_ids("cache-1")
    said = json.dumps(shown.said()) + "".join(target for _, _, target, _ in server.requests)
    assert "pa:ss" not in said and "pa%3Ass" not in said and "signature" not in said
    assert "udpPort" not in said
    secret(auth, "user:reader:wrong")
    server.faults["forget"] = 1
    shown.wait_trouble("refuses us (403)")
    v2 = run_json("discovery", "show", "--source", "nacos", "--url", server.url, "--service", "cache", "--api", "v2",
                  "--auth-file", secret(tmp_path / "right", "user:reader:pa:ss&word"))
    assert [one["id"] for one in v2["instances"]] == ["10.0.0.1:6379"]


# --- Kubernetes ---

@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A CA, and a certificate of 127.0.0.1 by it."""
    directory = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        done = subprocess.run(["openssl", *map(str, arguments)], cwd=directory, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new_key, "-days", 2, "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.crt")
    openssl("req", *new_key, "-subj", "/CN=api", "-keyout", "api.key", "-out", "api.csr")
    (directory / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2,
            "-extfile", "ext", "-out", "api.crt")
    return directory


def kubernetes_show(show, server, tmp_path, *more):
    token = secret(tmp_path / "token", server.token or "none")
    return show("--source", "kubernetes", "--url", server.url, "--service", "cache", "--source-namespace", "shop",
                "--token-file", token, "--timeout", "5s", *more)


def test_kubernetes(simulate, show, tmp_path, certificates):
    server = simulate(Kubernetes, token="t0ken", tls=(certificates / "api.crt", certificates / "api.key"))
    server.put(slice_of("cache-a", [endpoint("cache-0", "10.0.0.1"), endpoint("cache-1", "10.0.0.2")]))
    server.put(slice_of("cache-b", [endpoint("cache-2", "10.0.0.3")]))
    server.put(slice_of("web-a", [endpoint("web-0", "10.0.0.9")], service="web"))
    shown = kubernetes_show(show, server, tmp_path, "--ca-file", certificates / "ca.crt", "--wait", "1s")
    shown.wait_ids("cache-0", "cache-1", "cache-2")
    server.put(slice_of("cache-a", [endpoint("cache-0", "10.0.0.1"),
                                    endpoint("cache-1", "10.0.0.2", ready=False, serving=True, terminating=True)]))
    shown.wait_state("cache-1", "draining")
    server.put(slice_of("cache-c", [endpoint("cache-0", "10.0.0.1"), endpoint("cache-3", "10.0.0.4")]))
    shown.wait_ids("cache-0", "cache-1", "cache-2", "cache-3")
    server.delete("cache-b")
    shown.wait_ids("cache-0", "cache-1", "cache-3")
    # A watch that ended goes on where it was, with bookmarks: no second list.
    lists = server.count("&limit=")
    watches = server.count("watch=true")
    wait_until("watched anew", lambda: server.count("watch=true") > watches + 1, 30)
    assert server.count("&limit=") == lists and not shown.troubles(), shown.troubles()
    server.token = "an0ther"
    shown.wait_trouble("refuses us (401)")
    secret(tmp_path / "token", "an0ther")
    server.put(slice_of("cache-d", [endpoint("cache-4", "10.0.0.5")]))
    shown.wait_ids("cache-0", "cache-1", "cache-3", "cache-4")
    stranger = run("discovery", "show", "--source", "kubernetes", "--url", server.url, "--service", "cache", check=FAILED)
    assert "certificate" in stranger.stderr
    assert "t0ken" not in json.dumps(shown.said())


def test_kubernetes_faults_keep_the_list(simulate, show, tmp_path):
    server = simulate(Kubernetes)
    for number in range(120):  # Three pages.
        server.put(slice_of(f"cache-{number:03}", [endpoint(f"cache-{number}", f"10.0.1.{number + 1}")]))
    everyone = [f"cache-{number}" for number in range(120)]
    shown = kubernetes_show(show, server, tmp_path)
    shown.wait_ids(*everyone)
    # 410 in both its forms: listed again, and no trouble.
    for fault in ("expire", "gone"):
        if fault == "gone":
            server.faults["cut"] = 1
        lists = server.count("&limit=")
        server.faults[fault] = 1
        wait_until(f"listed again after {fault}", lambda before=lists: server.count("&limit=") >= before + 3, 30)
    # An older version of a slice that comes after the newer one changes nothing.
    server.faults["reordered"] = None
    for ip in ("10.0.2.1", "10.0.2.2"):
        server.put(slice_of("cache-000", [endpoint("cache-0", ip)]))
    wait_until("moved", lambda: shown.lists()[-1]["cache-0"]["address"] == "10.0.2.2:6379", 30)
    server.put(slice_of("cache-001", [endpoint("cache-1", "10.0.2.3")]))
    wait_until("moved", lambda: shown.lists()[-1]["cache-1"]["address"] == "10.0.2.3:6379", 30)
    assert shown.lists()[-1]["cache-0"]["address"] == "10.0.2.2:6379"
    del server.faults["reordered"]
    troubles = len(shown.troubles())
    server.faults["cut"] = 1
    shown.wait_trouble("127.0.0.1", after=troubles)
    for fault, message in {"500": "answered 500", "garbage": "not JSON"}.items():
        with server.changed:
            server.faults[fault] = None
            server.faults["cut"] = 1
        shown.wait_trouble(message)
        del server.faults[fault]
    assert len(shown.ids()) == 120
    server.delete("cache-119")
    shown.wait_ids(*everyone[:-1])


# --- What others' clients make of the simulators ---

def test_consul_simulator_with_python_consul(simulate):
    consul = pytest.importorskip("consul", reason="python3-consul is not installed")
    server = simulate(Consul, token="s3cret")
    client = consul.Consul(port=int(server.url.rsplit(":", 1)[1]), token="s3cret")
    assert client.agent.service.register("cache", service_id="cache-1", address="10.0.0.1", port=6379, tags=["a"],
                                         check=consul.Check.ttl("15s"))
    index, entries = client.health.service("cache")
    assert entries[0]["Service"]["Address"] == "10.0.0.1" and entries[0]["Checks"][-1]["Status"] == "critical"
    assert client.health.service("cache", passing=True)[1] == []

    def put(path, **parameters):  # This client says GET here, which Consul refuses since 1.0, and forgets its token.
        return client.http.put(lambda reply: reply.code == 200, path, params={"token": "s3cret", **parameters})
    assert put("/v1/agent/check/pass/service:cache-1")
    later, entries = client.health.service("cache", index=index, wait="10s", passing=True)
    assert int(later) > int(index) and entries[0]["Service"]["ID"] == "cache-1"
    assert client.health.service("cache", index=later, wait="100ms")[0] == later
    assert put("/v1/agent/service/maintenance/cache-1", enable="true")
    states = {check["CheckID"]: check["Status"] for check in client.health.service("cache")[1][0]["Checks"]}
    assert states["_service_maintenance:cache-1"] == "critical"
    seen = run_json("discovery", "show", "--source", "consul", "--url", server.url, "--service", "cache", "--token-file",
                    "/dev/stdin", stdin="s3cret\n")
    assert seen["instances"][0]["state"] == "draining"
    assert put("/v1/agent/service/deregister/cache-1")
    assert client.health.service("cache")[1] == []
    with pytest.raises(consul.ACLPermissionDenied):
        consul.Consul(port=int(server.url.rsplit(":", 1)[1])).health.service("cache")


def test_kubernetes_simulator_with_python_kubernetes(simulate):
    kubernetes = pytest.importorskip("kubernetes", reason="python3-kubernetes is not installed")
    server = simulate(Kubernetes, token="t0ken")
    configuration = kubernetes.client.Configuration(host=server.url)
    configuration.api_key["authorization"] = "Bearer t0ken"
    api = kubernetes.client.DiscoveryV1Api(kubernetes.client.ApiClient(configuration))
    first = api.create_namespaced_endpoint_slice("shop", slice_of("cache-a", [endpoint("cache-0", "10.0.0.1")]))
    for number in range(3):
        api.create_namespaced_endpoint_slice("shop", slice_of(f"more-{number}", []))
    listed = api.list_namespaced_endpoint_slice("shop", label_selector="kubernetes.io/service-name=cache", limit=2)
    assert len(listed.items) == 2 and listed.metadata._continue
    rest = api.list_namespaced_endpoint_slice("shop", label_selector="kubernetes.io/service-name=cache",
                                              _continue=listed.metadata._continue)
    assert [one.metadata.name for one in listed.items + rest.items] == ["cache-a", "more-0", "more-1", "more-2"]
    assert listed.items[0].endpoints[0].conditions.ready and listed.items[0].ports[0].port == 6379
    api.replace_namespaced_endpoint_slice("cache-a", "shop", slice_of("cache-a", [endpoint("cache-0", "10.0.0.2")]))
    api.delete_namespaced_endpoint_slice("more-2", "shop")
    watch = kubernetes.watch.Watch()
    events = list(watch.stream(api.list_namespaced_endpoint_slice, "shop", timeout_seconds=1,
                               resource_version=first.metadata.resource_version))
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "MODIFIED", "DELETED"]
    assert events[3]["object"].endpoints[0].addresses == ["10.0.0.2"]
    server.compact()
    with pytest.raises(kubernetes.client.exceptions.ApiException) as gone:
        list(watch.stream(api.list_namespaced_endpoint_slice, "shop", timeout_seconds=1, resource_version="101"))
    assert gone.value.status == 410


@pytest.fixture(scope="module")
def sim_clients():
    if not (SIM_CLIENTS / "node_modules" / ".package-lock.json").exists():
        done = subprocess.run(["npm", "ci", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"],
                              cwd=SIM_CLIENTS, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    return SIM_CLIENTS


def node(clients, script, argument):
    done = subprocess.run(["node", script, argument], cwd=clients, capture_output=True, text=True, timeout=60,
                          preexec_fn=die_with_parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@long_one
def test_simulators_with_clients_from_npm(simulate, sim_clients):
    server = simulate(Nacos)
    seen = node(sim_clients, "nacos.mjs", server.url.removeprefix("http://"))
    assert seen == {"both": ["10.0.0.1:7001:true", "10.0.0.1:7002:true"], "one": ["10.0.0.1:7001:true"]}
    assert server.count("/nacos/v1/ns/instance/beat") >= 1
    seen = node(sim_clients, "consul.mjs", simulate(Consul).url.rsplit(":", 1)[1])
    assert seen == {"states": ["critical", "passing"], "left": 0}
