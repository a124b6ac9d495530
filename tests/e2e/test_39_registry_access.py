"""A cluster whose registry asks for tokens and speaks TLS: it grows under load with a controller, operators and proxies
that each have no more than they need; what they may not is refused; a backup taken meanwhile is restored."""
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from harness.cluster import BAD_USAGE, FAILED, RINGSHIFT, run, run_json
from harness.process import Process, wait_until


class Guarded:
    """Who has which token, and the certificates."""

    def __init__(self, cluster, directory, monkeypatch, certified=False, flags=()):
        self.cluster = cluster
        self.directory = directory
        self.ca = directory / "ca"
        run("cert", "init", "--dir", self.ca, check=0)
        run("cert", "issue", "registry", "--dir", self.ca, "--names", "127.0.0.1,localhost", check=0)
        self.files = {}
        self.certified = certified  # Controller and proxies have certificates instead of tokens.

        def server(name, command, *arguments, env=None):
            env = dict(env or {})
            if command == "registry":
                arguments += ("--auth", "--tls-cert", self.ca / "registry.pem", "--tls-key", self.ca / "registry.key")
                if certified:
                    arguments += ("--client-ca", self.ca / "ca.pem", "--client-certs", "verify")
            if command in ("controller", "proxy"):
                env |= self.as_(name)
                arguments += tuple(flags)
            return Process(name, [cluster.binary, command, *arguments], cluster.directory, {**cluster.env, **env})
        cluster._server = server
        monkeypatch.setenv("RINGSHIFT_REGISTRY_CA", str(self.ca / "ca.pem"))
        self.start_registry()
        self.admin = Path(f"{cluster._registry_data}.admin-token")
        self.files["admin"] = self.admin
        self.create("controller", "operate")
        self.create("operator", "operate")
        for variable, value in self.as_("operator").items():
            monkeypatch.setenv(variable, value)
        for number in (1, 2):
            self.create(f"proxy-{number}", "register-own")

    def start_registry(self):
        self.cluster.start_registry()
        self.cluster.registry_url = self.cluster.registry_url.replace("http:", "https:")

    def token(self, name):
        return self.files[name]

    def as_(self, name):
        if self.certified and name not in self.files:
            return {"RINGSHIFT_REGISTRY_AUTH_FILE": "", "RINGSHIFT_REGISTRY_CERT": str(self.ca / f"{name}.pem"),
                    "RINGSHIFT_REGISTRY_KEY": str(self.ca / f"{name}.key")}
        return {"RINGSHIFT_REGISTRY_AUTH_FILE": str(self.token(name))}

    def create(self, name, role, *options):
        if self.certified:
            run("token", "create", name, "--role", role, "--certificate", *options, *self.where(),
                env=self.as_("admin"), check=0)
            run("cert", "issue", name, "--dir", self.ca, "--identity", name, check=0)
            return
        self.files[name] = self.directory / f"{name}.token"
        run("token", "create", name, "--role", role, "--out", self.files[name], *options, *self.where(),
            env=self.as_("admin"), check=0)

    def where(self):
        return ["--registry", self.cluster.registry_url]

    def admins(self, *arguments, **options):
        return run(*arguments, *self.where(), env=self.as_("admin"), **options)

    def secrets(self):
        return [path.read_text().strip().removeprefix("token:") for path in self.files.values() if path.exists()]


def serving(cluster, directory, monkeypatch, certified=False, flags=(), **spec):
    made = Guarded(cluster, directory, monkeypatch, certified, flags)
    cluster.spec = cluster.write_spec(**spec)
    cluster.start_controller()
    cluster.apply(cluster.spec)
    for _ in range(2):
        cluster.add_proxy()
    return made


@pytest.fixture
def guarded(make_cluster, tmp_path, monkeypatch):
    return serving(make_cluster(members=4, proxies=2), tmp_path, monkeypatch)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_growth_backup_and_restore_with_no_more_rights_than_needed(guarded):
    cluster = guarded.cluster
    written = cluster.fill(1500)
    cluster.add_member()
    bigger = cluster.write_spec()
    with cluster.history(rate=600) as load:
        cluster.resize_start(bigger)
    load.assert_clean(least=300)
    cluster.assert_filled(written)

    # Who did it is in the audit; the controller's own bookkeeping is not.
    rows = [json.loads(line) for line in guarded.admins("registry", "audit", "--json", check=0).stdout.splitlines()]
    changed = {(row["who"], row["key"].rsplit("/", 1)[-1]) for row in rows
               if row["outcome"] == "ok" and row["key"].startswith("/ringshift/")}
    assert ("operator", "spec") in changed and ("operator", "request") in changed, changed
    assert ("controller", "topology") in changed, changed
    assert not {key for _, key in changed} & {"status", "controller"}, changed
    assert [row for row in rows if row["verb"] == "token create"], rows

    # What is not theirs is refused, and the refusal says why.
    for name in ("proxy-1", "operator"):
        for command in (["token", "list"], ["registry", "audit"], ["registry", "backup", "--to", "no.db"]):
            done = run(*command, *guarded.where(), env=guarded.as_(name), check=FAILED)
            assert "role admin" in done.stderr, done.stderr
    slower = cluster.write_spec(limits={"move_keys_per_second": 1234})
    done = run("topology", "apply", slower, *guarded.where(), env=guarded.as_("proxy-1"), check=FAILED)
    assert "permission denied" in done.stderr, done.stderr
    guarded.create("elsewhere", "operate", "--namespace", "other")
    done = cluster.cli("resize", "status", env=guarded.as_("elsewhere"), check=FAILED)
    assert "permission denied" in done.stderr, done.stderr

    # Nobody's secret is where others look.
    for process in cluster.processes():
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode(errors="replace")
        for secret in guarded.secrets():
            assert secret not in command and secret not in process.tail(10000), process.name

    backup = guarded.directory / "backup.db"
    told = json.loads(guarded.admins("registry", "backup", "--to", backup, "--json", check=0).stdout)
    assert told["bytes"] == backup.stat().st_size and mode(backup) == 0o600

    done = run("registry", "restore", backup, "--data", cluster._registry_data, "--force", check=FAILED)
    assert "in use" in done.stderr, done.stderr
    cluster.registry.expected_dead = True
    assert cluster.registry.end() == 0
    done = run("registry", "--data", backup, "--listen", "127.0.0.1:0", check=FAILED)
    assert "is a backup" in done.stderr and "ringshift registry restore" in done.stderr, done.stderr
    restored = run_json("registry", "restore", backup, "--data", cluster._registry_data, "--force")
    assert Path(restored["moved_aside"]).exists()
    # On the port that it had: routers and the controller look there.
    cluster.registry.start()
    cluster.registry.wait_ready()
    proxy = cluster.proxies[0]
    wait_until("the router says that the registry is another one", lambda: "rebuilt or restored" in proxy.errors(), 30)
    cluster.assert_filled(written)
    proxy.expected_dead = True
    assert proxy.end() == 0
    proxy.start()
    proxy.wait_ready(30)
    cluster.assert_filled(written)
    run_json("token", "list", *guarded.where(), env=guarded.as_("admin"))


def test_tokens_end_and_certificates_are_checked(guarded, tmp_path, monkeypatch):
    cluster = guarded.cluster
    assert mode(guarded.admin) == 0o600 and mode(guarded.token("operator")) == 0o600
    assert mode(guarded.ca / "ca.key") == 0o600
    url = cluster.registry_url

    # A new secret; the old one ends when its grace does.
    fresh = tmp_path / "fresh.token"
    guarded.admins("token", "rotate", "operator", "--grace", "1s", "--out", fresh, check=0)
    guarded.files["fresh"] = fresh
    cluster.cli("resize", "status", env=guarded.as_("fresh"), check=0)

    def ended():
        done = cluster.cli("resize", "status")
        return done.returncode == FAILED and "401" in done.stderr
    wait_until("the old secret has ended", ended, 20)
    shown = guarded.admins("token", "create", "shown", "--role", "read", check=0).stdout
    assert shown.startswith("token:rs_") and len(shown.splitlines()) == 1
    taken = guarded.admins("token", "create", "late", "--role", "read", "--out", fresh, check=FAILED).stderr
    assert "--force" in taken

    # A router whose token is revoked serves on with what it has.
    guarded.admins("token", "revoke", "proxy-2", check=0)
    proxy = cluster.proxies[1]
    wait_until("the proxy says so", lambda: "invalid auth token" in proxy.errors(), 30)
    cluster.client(1).set("after", "revoked")
    assert cluster.client(0).get("after") == b"revoked"

    # No token, another authority, no TLS.
    operator = guarded.as_("fresh")
    for env, words in (({"RINGSHIFT_REGISTRY_AUTH_FILE": ""}, "asks for a token"),
                       ({**operator, "RINGSHIFT_REGISTRY_CA": ""}, "certificate"),
                       ({**operator, "RINGSHIFT_REGISTRY_CA": str(tmp_path / "none.pem")}, "none.pem")):
        done = cluster.cli("resize", "status", env=env, check=FAILED)
        assert words in done.stderr, done.stderr
    done = run("resize", "status", "--registry", url.replace("https", "http"), "--cluster", cluster.name,
               env={**operator, "RINGSHIFT_REGISTRY_CA": ""}, check=FAILED)
    assert "without TLS" in done.stderr, done.stderr

    # A certificate that is renewed in place is served after SIGHUP.
    old = run_json("cert", "show", guarded.ca / "registry.pem")
    run("cert", "issue", "registry", "--dir", guarded.ca, "--names", "127.0.0.1", check=FAILED)
    run("cert", "issue", "registry", "--dir", guarded.ca, "--names", "127.0.0.1", "--force", check=0)
    new = run_json("cert", "show", guarded.ca / "registry.pem")
    assert old["sha256"] != new["sha256"]
    host, port = url.removeprefix("https://").split(":")

    def served():
        done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20)
        pem = tmp_path / "served.pem"
        begin = done.stdout.find("-----BEGIN CERTIFICATE")
        pem.write_text(done.stdout[begin:done.stdout.find("-----END CERTIFICATE") + 26])
        return run_json("cert", "show", pem)["sha256"]
    assert served() == old["sha256"]
    cluster.registry.send(1)
    wait_until("the new certificate is served", lambda: served() == new["sha256"], 20)
    cluster.cli("resize", "status", env=operator, check=0)


def test_a_new_secret_needs_no_restart(make_cluster, tmp_path, monkeypatch):
    guarded = serving(make_cluster(members=2, proxies=2), tmp_path, monkeypatch)
    cluster = guarded.cluster
    written = cluster.fill(300)
    old = {name: guarded.token(name).read_text() for name in ("proxy-1", "proxy-2", "controller")}
    # One of them in time, the others when the old secret has ended already.
    guarded.admins("token", "rotate", "proxy-1", "--grace", "2s", "--out", guarded.token("proxy-1"), "--force", check=0)
    for name in ("proxy-2", "controller"):
        fresh = tmp_path / "fresh.token"
        guarded.admins("token", "rotate", name, "--out", fresh, check=0)
        process = cluster.controller if name == "controller" else cluster.proxies[1]
        wait_until(f"{name} is refused", lambda: "invalid auth token" in process.errors(), 30)
        os.replace(fresh, guarded.token(name))
    for process in (*cluster.proxies, cluster.controller):
        wait_until(f"{process.name} has the new one", lambda: "says something else now" in process.errors(), 30)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())  # Led by the one, followed by the others.
    cluster.assert_filled(written)
    for name, line in old.items():
        assert guarded.token(name).read_text() != line
        (tmp_path / "old.token").write_text(line)
        done = cluster.cli("topology", "get", env={"RINGSHIFT_REGISTRY_AUTH_FILE": str(tmp_path / "old.token")},
                           check=FAILED)
        assert "401" in done.stderr, done.stderr
    for process in cluster.processes():
        for secret in (*guarded.secrets(), *(line.strip().removeprefix("token:") for line in old.values())):
            assert secret not in process.tail(10000), process.name


def test_a_certificate_says_who_it_is(make_cluster, tmp_path, monkeypatch):
    guarded = serving(make_cluster(members=2, proxies=2), tmp_path, monkeypatch, certified=True)
    cluster = guarded.cluster
    assert set(guarded.files) == {"admin"}, "nobody else has a token"
    written = cluster.fill(300)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    cluster.assert_filled(written)
    rows = [json.loads(line) for line in guarded.admins("registry", "audit", "--json", check=0).stdout.splitlines()]
    changed = {(row["who"], row["key"].rsplit("/", 1)[-1]) for row in rows if row["outcome"] == "ok"}
    assert {("operator", "request"), ("controller", "topology")} <= changed, changed

    # A certificate of the same authority that says nothing, and one whose name has no entry.
    run("cert", "issue", "operator-2", "--dir", guarded.ca, check=0)
    done = cluster.cli("topology", "get", env=guarded.as_("operator-2"), check=FAILED)
    assert "asks for a token" in done.stderr, done.stderr
    run("cert", "issue", "operator-2", "--dir", guarded.ca, "--identity", "operator-2", "--force", check=0)
    done = cluster.cli("topology", "get", env=guarded.as_("operator-2"), check=FAILED)
    assert "token create operator-2 --certificate" in done.stderr, done.stderr
    # No more than its role; and a token beside a certificate is what counts.
    done = run("token", "list", *guarded.where(), check=FAILED)
    assert "role admin" in done.stderr, done.stderr
    listed = run_json("token", "list", *guarded.where(), env=guarded.as_("admin"))["tokens"]
    assert {token["name"] for token in listed if token.get("certificate")} == {"controller", "operator", "proxy-1",
                                                                               "proxy-2"}
    # Revoked: the router serves on, and is back by itself when there is an entry again.
    guarded.admins("token", "revoke", "proxy-2", check=0)
    proxy = cluster.proxies[1]
    wait_until("the proxy says so", lambda: "has no entry here" in proxy.errors(), 30)
    cluster.client(1).set("after", "revoked")
    assert cluster.client(0).get("after") == b"revoked"
    guarded.admins("token", "create", "proxy-2", "--role", "register-own", "--certificate", check=0)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    cluster.assert_filled(written)


def test_a_copy_between_two_that_each_ask_for_their_own_certificates(tmp_path, make_cluster):
    def guarded_registry(name):
        """A registry that lets in certificates of its own authority alone, and knows one copier of them."""
        ca = tmp_path / name
        run("cert", "init", "--dir", ca, check=0)
        run("cert", "issue", "registry", "--dir", ca, "--names", "127.0.0.1", check=0)
        run("cert", "issue", "copier", "--dir", ca, "--identity", "copier", check=0)
        process = Process(name, [RINGSHIFT, "registry", "--listen", "127.0.0.1:0", "--data", tmp_path / f"{name}.db",
                                 "--auth", "--tls-cert", ca / "registry.pem", "--tls-key", ca / "registry.key",
                                 "--client-ca", ca / "ca.pem"], tmp_path)
        keeper.others.append(process)
        process.start()
        host, port = process.wait_ready()
        url = f"https://{host}:{port}"
        env = {"RINGSHIFT_REGISTRY": url, "RINGSHIFT_REGISTRY_CA": ca / "ca.pem", "RINGSHIFT_REGISTRY_CERT":
               ca / "copier.pem", "RINGSHIFT_REGISTRY_KEY": ca / "copier.key"}
        env = {key: str(value) for key, value in env.items()}
        run("token", "create", "copier", "--role", "operate", "--certificate", check=0,
            env={**env, "RINGSHIFT_REGISTRY_AUTH_FILE": f"{tmp_path / name}.db.admin-token"})
        return url, ca, env

    keeper = make_cluster(members=2, proxies=0)
    source, source_ca, of_source = guarded_registry("old")
    target, target_ca, of_target = guarded_registry("new")
    controller = Process("controller", [RINGSHIFT, "controller", "--cluster", keeper.name], tmp_path, of_source)
    keeper.others.append(controller)
    controller.start()
    controller.wait_ready()
    run("topology", "apply", keeper.write_spec(), "--cluster", keeper.name, env=of_source, check=0)
    controller.expected_dead = True
    assert controller.end() == 0
    sides = {f"--{side}-{what}": ca / file for side, ca in (("from", source_ca), ("to", target_ca))
             for what, file in (("ca", "ca.pem"), ("cert", "copier.pem"), ("key", "copier.key"))}

    def copy(check, **changed):
        words = {**sides, **{f"--{key.replace('_', '-')}": value for key, value in changed.items()}}
        given = [word for flag, value in words.items() if value for word in (flag, value)]
        return run("registry", "copy", "--from", source, "--to", target, "--cluster", keeper.name, *given, check=check)

    # Each side's own, and no other's.
    assert "certificate" in copy(FAILED, to_ca=source_ca / "ca.pem").stderr
    for side, other in (("from", target_ca), ("to", source_ca)):
        done = copy(FAILED, **{f"{side}_cert": other / "copier.pem", f"{side}_key": other / "copier.key"})
        assert "certificate" in done.stderr or "TLS" in done.stderr, done.stderr
    assert "--to-key" in copy(BAD_USAGE, to_key=None).stderr
    copy(0)
    shown = [run_json("topology", "get", "--cluster", keeper.name, env=env) for env in (of_source, of_target)]
    for topology in shown:
        topology.pop("version")  # Which begins anew.
    assert shown[0] == shown[1]


def test_what_is_open_to_everybody_is_refused(tmp_path):
    for options in ([], ["--auth"]):
        done = run("registry", "--listen", "0.0.0.0:0", "--data", tmp_path / "r.db", *options, check=FAILED)
        assert "without both authentication and TLS" in done.stderr, done.stderr
    done = run("registry", "--listen", "127.0.0.1:0", "--data", tmp_path / "r.db", "--tls-cert", "x", check=FAILED)
    assert "--tls-key" in done.stderr, done.stderr
    run("token", "create", "x", "--role", "root", check=BAD_USAGE)
    run("token", "create", "x", "--role", "read", "--expires", "soon", check=BAD_USAGE)
    assert "no such file" in run("registry", "restore", tmp_path / "none", "--data", tmp_path / "r.db",
                                 check=FAILED).stderr
