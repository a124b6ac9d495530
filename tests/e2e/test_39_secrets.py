"""Nothing secret shows: one deployment with every kind of secret there is, at the most talkative log level, right and
wrong ones; then all that anybody can read of it is searched."""
import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from harness.cluster import FAILED, RINGSHIFT, run
from harness.process import Process, wait_until
from sim.consul import Consul
from sim.kubernetes import Kubernetes, endpoint, slice_of
from sim.nacos import Nacos
from test_39_registry_access import serving
from test_60_discovery_sources import secret, simulate  # noqa: F401 (a fixture)

MEMBERS = "w0rd-of-the-members"
CONSUL, NACOS, KUBERNETES = "c0nsul-t0ken-1", "nac0s:pass&w0rd", "kube-t0ken-1234"
ADMIN = "adm1n-t0ken-for-the-port-0123456789"
WRONG = "wr0ng-secret-word"


def spellings(one):
    """A secret as it might show: as it is, in base64 at any place of a longer text, and escaped for a URL or JSON."""
    yield one
    yield urllib.parse.quote(one, safe="")
    yield json.dumps(one)[1:-1]
    for before in range(3):
        text = base64.b64encode(b"x" * before + one.encode() + b"xxx").decode()
        yield text[4 if before else 0:-8]


class Shown:
    """All that was seen, by where."""

    def __init__(self):
        self.texts = {}

    def add(self, place, text):
        self.texts[f"{len(self.texts)} {place}"] = text

    def search(self, secrets):
        return [(place, one) for place, text in self.texts.items() for one in secrets
                for spelled in spellings(one) if spelled in text]


@pytest.fixture
def deployment(make_cluster, tmp_path, monkeypatch, simulate):  # noqa: F811
    monkeypatch.setenv("RINGSHIFT_LOG_LEVEL", "debug")
    consul = simulate(Consul, token=CONSUL)
    consul.register("cache-9", "127.0.0.1", 7009)
    cluster = make_cluster(members=0, proxies=2)
    add_member = cluster.add_member
    cluster.add_member = lambda *options: add_member("--user", "rs", "on", f">{MEMBERS}", "~*", "&*", "+@all", *options)
    for _ in range(3):
        cluster.add_member()
    cluster.controller_options = ["--admin-listen", "127.0.0.1:0", "--admin-token-file",
                                  secret(tmp_path / "admin", ADMIN)]
    made = serving(cluster, tmp_path, monkeypatch,
                   flags=["--member-user", "rs", "--member-password-file", secret(tmp_path / "member", MEMBERS)],
                   discovery={"source": {"kind": "consul", "url": consul.url, "service": "cache", "token_file":
                                         str(secret(tmp_path / "consul", CONSUL)), "wait": "1s"}, "admit": "manual"})
    made.consul = consul
    return made


def test_no_secret_shows_anywhere(deployment, simulate, tmp_path):  # noqa: F811
    cluster, shown = deployment.cluster, Shown()
    where = ["--registry", cluster.registry_url, "--cluster", cluster.name]
    members = ["--member-user", "rs", "--member-password-file", tmp_path / "member"]

    def command(*arguments, env=None, check=0):
        done = run(*arguments, env=env, check=check)
        shown.add(" ".join(map(str, arguments)), done.stdout + done.stderr)
        return done

    # An agent, a resize, and a router whose token ends and is replaced.
    deployment.create("agent-1", "register-own", "--ids", "cache-1")
    agent = Process("agent", [RINGSHIFT, "agent", *where, "--id", "cache-1", "--address", cluster.members[0].address,
                              *members, "--lease-seconds", 2, "--drain-timeout-ms", 1000], tmp_path,
                    deployment.as_("agent-1"))
    cluster.others.append(agent)
    agent.start()
    agent.wait_ready(30)
    cluster.fill(200)
    cluster.add_member()
    spec = cluster.write_spec()
    command("plan", *where, spec)
    for member in cluster.members:
        member.hang_up()
    command("resize", "start", *where, "--spec", spec, "--yes", "--wait", "--json")
    before = deployment.token("proxy-1").read_text().strip().removeprefix("token:")
    fresh = tmp_path / "fresh.token"
    deployment.admins("token", "rotate", "proxy-1", "--out", fresh, check=0)
    wait_until("it is refused", lambda: "invalid auth token" in cluster.proxies[0].errors(), 30)
    fresh.replace(deployment.token("proxy-1"))
    wait_until("it has the new one", lambda: "says something else now" in cluster.proxies[0].errors(), 30)

    # What commands print, right and wrong.
    admin = deployment.as_("admin")
    for words in (["token", "list"], ["registry", "audit"]):
        command(*words, *where[:2], "--json", env=admin)
    for words in (["topology", "get", "--json"], ["resize", "status", "--json"], ["resize", "log"],
                  ["member", "candidates", "--json"], ["member", "policy", "--json"]):
        command(*words, *where)
    command("doctor", *where, *members, "--json", check=None)
    wrong = secret(tmp_path / "wrong", WRONG)
    bad = {"RINGSHIFT_REGISTRY_AUTH_FILE": str(secret(tmp_path / "bad", f"token:{WRONG}"))}
    command("topology", "get", *where, env=bad, check=FAILED)
    command("topology", "get", *where, env={"RINGSHIFT_REGISTRY_AUTH_FILE": str(wrong)}, check=FAILED)
    command("topology", "get", *where[2:], "--registry", f"https://me:{WRONG}@127.0.0.1:1", check=FAILED)
    command("doctor", *where, *members[:2], "--member-password-file", wrong, "--json", check=FAILED)
    nacos, kubernetes = simulate(Nacos, user=("reader", NACOS)), simulate(Kubernetes, token=KUBERNETES)
    nacos.put("10.0.0.1", 6379)
    kubernetes.put(slice_of("cache-a", [endpoint("cache-0", "10.0.0.1")]))
    sources = [("consul", deployment.consul, ["--token-file"], "{}", CONSUL),
               ("nacos", nacos, ["--auth-file"], "user:reader:{}", NACOS),
               ("kubernetes", kubernetes, ["--source-namespace", "shop", "--token-file"], "{}", KUBERNETES)]
    for kind, server, flags, line, word in sources:
        for one, check in ((word, 0), (WRONG, FAILED)):
            command("discovery", "show", "--source", kind, "--url", server.url, "--service", "cache", *flags,
                    secret(tmp_path / f"{kind}-auth", line.format(one)), "--json", "--within", "3s", check=check)
        assert server.requests, kind
        shown.add(f"URLs of {kind}", "\n".join(target for _, _, target, _ in server.requests))

    # The admin port; logs and process lists, of our programs; and what the registry keeps.
    for path in ("/metrics", "/api/v1/overview", "/api/v1/members", "/api/v1/registry", "/api/v1/nowhere"):
        request = urllib.request.Request(cluster.controller.admin_url() + path,
                                         headers={"Authorization": f"Bearer {ADMIN}"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                shown.add(path, answer.read().decode())
        except urllib.error.HTTPError as error:
            assert path.endswith("nowhere"), (path, error)
            shown.add(path, error.read().decode())
    servers = [process for process in cluster.processes() if process not in [m.process for m in cluster.members]]
    assert len(servers) == 5
    for process in servers:
        shown.add(f"log of {process.name}", process.tail(1_000_000))
        shown.add(f"process list, {process.name}", Path(f"/proc/{process.pid}/cmdline").read_bytes().decode())
    backup = tmp_path / "backup.db"
    command("registry", "backup", "--to", backup, *where[:2], env=admin)
    shown.add("what the registry keeps", backup.read_bytes().decode("latin-1"))

    tokens = [*deployment.secrets(), before]
    assert len(tokens) == 7 and all(one.startswith("rs_") for one in tokens)
    assert shown.search([*tokens, MEMBERS, CONSUL, NACOS, KUBERNETES, ADMIN, WRONG]) == []
    # It would be found: these stand in logs, lists and the database for certain.
    for known in (cluster.name, "proxy-1", f"{cluster.members[0].port}"):
        assert shown.search([known]), known


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_the_search_finds_what_is_encoded(before):
    shown = Shown()
    shown.add("base64", base64.b64encode(f"{before}{NACOS} and more".encode()).decode())
    shown.add("url", "http://h/?password=" + urllib.parse.quote(NACOS, safe=""))
    shown.add("nothing", "nacos")
    assert {place.split(" ", 1)[1] for place, _ in shown.search([NACOS])} == {"base64", "url"}
