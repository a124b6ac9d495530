"""The embedded registry when things go wrong around it: a file that may not grow, a backup that is asked for at the wrong
place, no descriptor left, an answer that cannot be kept."""
import base64
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from harness.cluster import BAD_USAGE, FAILED, RINGSHIFT, run, run_json
from harness.process import Process, wait_until


class Registry:
    def __init__(self, directory, *options, limits=()):
        self.data = directory / "registry.db"
        self.process = Process("registry", [*limits, RINGSHIFT, "registry", "--listen", "127.0.0.1:0", "--data", self.data,
                                            *options], directory)
        self.process.start()
        self.host, self.port = self.process.wait_ready()
        self.url = f"http://{self.host}:{self.port}"
        self.admin = directory / "registry.db.admin-token"

    def run(self, *arguments, check=0):
        environment = {"RINGSHIFT_REGISTRY": self.url}
        if self.admin.exists():
            environment["RINGSHIFT_REGISTRY_AUTH_FILE"] = str(self.admin)
        return run(*arguments, env=environment, check=check)

    def ask(self, path, body, secret=None):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def put(self, key, value):
        return self.ask("/v3/kv/put", {"key": coded(key), "value": coded(value)})


def coded(text):
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def start(tmp_path):
    made = []

    def begin(*options, limits=()):
        made.append(Registry(tmp_path, *options, limits=limits))
        return made[-1]
    yield begin
    for registry in made:
        registry.process.end()


def test_a_backup_replaces_nothing_but_a_backup(start, tmp_path):
    registry = start()
    assert registry.put("/a", "1")[0] == 200
    for place in (registry.data, tmp_path, "/dev/null"):
        done = registry.run("registry", "backup", "--to", place, check=FAILED)
        assert "is there already" in done.stderr and str(place) in done.stderr, done.stderr
    backup = tmp_path / "backup.db"
    for _ in range(2):  # The second replaces the first.
        registry.run("registry", "backup", "--to", backup)
    # Nor is one made of the file of a registry that runs: its last writes are not in it.
    done = run("registry", "restore", registry.data, "--data", tmp_path / "other.db", check=FAILED)
    assert "in use" in done.stderr and "registry backup" in done.stderr, done.stderr
    assert not (tmp_path / "other.db").exists()
    registry.process.kill()
    restored = run_json("registry", "restore", registry.data, "--data", tmp_path / "other.db")
    assert restored["revision"] == 2, "what a killed one had acknowledged is there"


def test_a_file_that_may_not_grow_ends_no_registry(start):
    registry = start(limits=["prlimit", "--fsize=300000"])
    answers = [registry.put(f"/{i}", "x" * 60_000) for i in range(8)]
    assert answers[0][0] == 200 and answers[-1][0] >= 400, answers
    assert "ulimit -f" in answers[-1][1]["error"], answers[-1]
    status, found = registry.ask("/v3/kv/range", {"key": coded("/"), "range_end": coded("0"), "count_only": True})
    assert status == 200 and int(found["count"]) == sum(status == 200 for status, _ in answers), found
    registry.process.expected_dead = True
    assert registry.process.end() == 0


def test_no_descriptor_left(start):
    """Whoever takes them all keeps out who comes later, no more: no thread spins, no line a try, and it passes."""
    registry = start(limits=["prlimit", "--nofile=64:64"])
    held = [socket.create_connection((registry.host, registry.port), timeout=10) for _ in range(150)]
    before = cpu_seconds(registry.process.pid)
    time.sleep(1.5)
    assert cpu_seconds(registry.process.pid) - before < 0.75
    assert len(registry.process.errors().splitlines()) < 5, registry.process.errors()[:500]
    assert "ulimit -n" in registry.process.errors()
    for connection in held:
        connection.close()
    wait_until("it answers again", lambda: registry.put("/a", "1")[0] == 200, 20)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_answer_that_cannot_be_kept_is_not_asked_for(start, tmp_path):
    """Else the old secret would have ended and nobody would know the new one; of the last admin, say."""
    registry = start("--auth")
    secret = registry.admin.read_text()
    for place, words in ((tmp_path / "none" / "x.token", "No such file or directory"), (registry.admin, "--force"),
                         ("/dev/null", "--force")):
        done = registry.run("token", "rotate", "admin", "--out", place, check=FAILED)
        assert words in done.stderr and str(place) in done.stderr, done.stderr
    done = registry.run("token", "rotate", "admin", "--out", "/dev/null", "--force", check=FAILED)
    assert "is no file" in done.stderr, done.stderr
    registry.run("token", "list")
    # Nor are names that no JSON can hold an error of the JSON library's.
    for arguments in (("a\udcff", "--role", "read"), ("a", "--role", "register-own", "--ids", "\udcff,b")):
        done = registry.run("token", "create", *arguments, check=BAD_USAGE)
        assert "xff" in done.stderr and "json" not in done.stderr, done.stderr
    registry.run("token", "rotate", "admin", "--out", registry.admin, "--force")
    assert registry.admin.read_text() != secret and oct(registry.admin.stat().st_mode)[-3:] == "600"
    registry.run("token", "list")
    assert not list(tmp_path.glob("*.new"))
    # What a full disk does not take is not done.
    with open("/dev/full", "w") as full:
        done = subprocess.run([RINGSHIFT, "token", "list", "--json"], stdout=full, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RINGSHIFT_REGISTRY": registry.url,
                                   "RINGSHIFT_REGISTRY_AUTH_FILE": str(registry.admin)})
    assert done.returncode == FAILED and "No space left" in done.stderr, done


def test_a_start_that_fails_says_where_the_token_is(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("registry", "--auth", "--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--data", tmp_path / "registry.db",
                   check=FAILED)
    assert "in use" in done.stderr and str(tmp_path / "registry.db.admin-token") in done.stderr, done.stderr
    start("--auth").run("token", "list")


def test_watchers_that_do_not_read_take_no_more_than_their_part(start, tmp_path):
    registry = start("--auth", "--token-watches", "150")
    admin = registry.admin.read_text().strip().removeprefix("token:")
    for i in range(8):
        key = coded(f"/ringshift/default/c/{i}")
        assert registry.ask("/v3/kv/put", {"key": key, "value": coded("x" * 1_000_000)}, admin)[0] == 200
    reader = registry.ask("/ringshift/v1/token/create", {"name": "reader", "role": "read"}, admin)[1]["token"]

    def stalled(body):
        one = socket.create_connection((registry.host, registry.port), timeout=10)
        one.sendall((f"POST /v3/watch HTTP/1.1\r\nAuthorization: Bearer {reader}\r\nContent-Length: {len(body)}\r\n\r\n"
                     + body).encode())
        return one
    everything = json.dumps({"create_request": {"key": coded("/ringshift/default/"), "start_revision": 1,
                                                "range_end": coded("/ringshift/default0")}})
    streams = [stalled(everything) for _ in range(150)]
    status, _ = registry.ask("/v3/kv/range", {"key": coded("/ringshift/default/c/0"), "keys_only": True}, admin)
    assert status == 200
    time.sleep(1)
    resident = int(next(line for line in Path(f"/proc/{registry.process.pid}/status").read_text().splitlines()
                        if line.startswith("VmRSS")).split()[1]) // 1024
    assert resident < 350, f"{resident} MiB: 4 MiB a stream would be more than 600"
    for stream in streams:
        stream.close()

    # A stream without a watch has a connection as others have.
    def taken():
        with stalled("") as one:
            return one.recv(12) == b"HTTP/1.1 200"
    wait_until("they are gone", taken, 20)
    streams = [stalled("{}") for _ in range(160)]
    wait_until("no more are taken", lambda: not taken(), 20)
    for stream in streams:
        stream.close()


def test_errors_name_the_flag_that_mends_them(start, tmp_path):
    registry = start("--auth")
    for flag in ("--cluster", "--namespace"):  # They are parts of keys.
        for name in ("a/instances", "", "x\ny"):
            done = registry.run("topology", "get", "--cluster", "c", flag, name, check=BAD_USAGE) \
                if flag == "--namespace" else registry.run("topology", "get", flag, name, check=BAD_USAGE)
            assert flag in done.stderr, done.stderr
    for url in ("http://127.0.0.1:1/?token=SECRET", "http://me:SECRET%40127.0.0.1:1", "http://me:SECRET@127.0.0.1:1",
                "zk://me:SECRET@127.0.0.1:1"):
        for command in (("token", "list"), ("doctor", "--cluster", "c"), ("registry", "backup", "--to", tmp_path / "x")):
            done = run(*command, "--registry", url, check=None)
            assert done.returncode and "SECRET" not in done.stdout + done.stderr, done
    elsewhere = ("--to", "http://127.0.0.1:1", "--cluster", "c")
    done = run("registry", "copy", "--from", registry.url, *elsewhere, check=FAILED)
    assert "--from-auth-file" in done.stderr and "--registry-" not in done.stderr, done.stderr
    done = run("registry", "copy", "--from", registry.url, *elsewhere, "--from-auth-file", tmp_path / "none", check=FAILED)
    assert f"--from-auth-file {tmp_path / 'none'}" in done.stderr, done.stderr
    done = run("token", "list", "--registry", registry.url, "--registry-auth-file", "/dev/zero", check=FAILED, timeout=10)
    assert "more than 4096 bytes" in done.stderr, done.stderr
    done = run("registry", "--listen", "127.0.0.1:0", "--data", tmp_path / "other.db", "--tls-cert", tmp_path / "none",
               "--tls-key", tmp_path / "none", check=FAILED)
    assert "No such file" in done.stderr, done.stderr


def test_a_copy_that_was_cut_off_is_no_controller(start, tmp_path):
    registry = start()
    keys = {"spec": "{}", "topology": json.dumps({"spec": {"cluster": "c", "placement": {"algorithm": "ring"}, "members": [
        {"id": "a", "address": "127.0.0.1:1"}]}}), "controller": "registry-copy-1-1"}
    for name, value in keys.items():
        assert registry.put(f"/ringshift/default/c/{name}", value)[0] == 200
    done = run("registry", "copy", "--from", registry.url, "--to", "http://127.0.0.1:1", "--cluster", "c", check=FAILED)
    assert "another copy" in done.stderr and "20 s" in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_what_root_restores_is_the_registrys_user_s(start, tmp_path):
    registry, home = start(), tmp_path / "home"
    registry.run("registry", "backup", "--to", tmp_path / "backup.db")
    home.mkdir()
    os.chown(home, 65534, 65534)
    for options in ((), ("--force",)):
        run("registry", "restore", tmp_path / "backup.db", "--data", home / "registry.db", *options, check=0)
        assert (home / "registry.db").stat().st_uid == 65534
        assert (home / "registry.db").stat().st_mode & 0o777 == 0o600


def test_no_time_to_live_is_not_for_ever(start):
    done = start("--auth").run("token", "create", "brief", "--role", "read", "--expires", "0s", check=BAD_USAGE)
    assert "--expires 0s" in done.stderr, done.stderr


def test_a_body_has_a_bound_before_anybody_is_asked_who_he_is(start):
    registry = start("--auth")
    for size, answer in ((5_000_000, b"HTTP/1.1 413"), (100, b"HTTP/1.1 401")):
        with socket.create_connection((registry.host, registry.port), timeout=10) as one:
            one.sendall(f"POST /v3/kv/put HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode() + b"{" + b" " * 98 + b"}")
            assert one.recv(12) == answer, size


def test_an_answer_of_something_else_is_no_answer(start, tmp_path):
    """Whatever says 200 with JSON in it: nothing is replaced by what is not there."""
    class Other(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b'{"rows":[{"id":0}],"more":true}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    where = ("--registry", f"http://127.0.0.1:{other.server_port}")
    kept = tmp_path / "kept.token"
    kept.write_text("token:rs_old\n")
    for arguments, words in ((("token", "rotate", "a", "--out", kept, "--force"), "no token in it"),
                             (("registry", "audit"), "no order"),
                             (("registry", "backup", "--to", tmp_path / "x.db"), "no whole backup")):
        done = run(*arguments, *where, check=FAILED, timeout=20)
        assert words in done.stderr, done.stderr
    assert kept.read_text() == "token:rs_old\n" and not (tmp_path / "x.db").exists()
    other.shutdown()


def test_a_backup_of_a_registry_that_hangs_ends(start, tmp_path):
    registry = start()
    registry.process.send(signal.SIGSTOP)
    try:
        done = registry.run("registry", "backup", "--to", tmp_path / "b.db", "--patience", "1s", check=FAILED)
    finally:
        registry.process.send(signal.SIGCONT)
    assert "nothing for 1 s" in done.stderr and not list(tmp_path.glob("b.db*")), done.stderr
    registry.run("registry", "backup", "--to", tmp_path / "b.db")
