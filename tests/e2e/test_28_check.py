"""`ringshift check` as anybody uses it: against a cluster, against a plain Redis, on a recorded history; and that it
finds what is wrong."""
import json
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis

from harness.cluster import BAD_USAGE, CHECKER, FAILED, Member, run
from harness.process import Process, die_with_parent, free_port, wait_until


def check(*arguments, **options):
    return run("check", *arguments, binary=CHECKER, timeout=60, **options)


@pytest.fixture
def plain(tmp_path):
    member = Member(1, tmp_path)
    yield member
    member.process.kill()


def test_a_cluster_is_clean_and_keeps_none_of_its_keys(static):
    static.client().set("theirs", "1")
    proxies = [f"--proxy=127.0.0.1:{proxy.port}" for proxy in static.proxies]
    done = json.loads(check(*proxies, "--seconds", 1.5, "--rate", 3000, "--max-value", "64KiB", "--json",
                            check=0).stdout)
    assert done["verdict"] == "clean" and done["keys_left"] == 0 and done["errors"] == 0, done
    assert done["operations"] > 500 and len(done["by_kind"]) == 8
    assert set().union(*static.census().values()) == {b"theirs"}


def test_a_history_is_written_and_judged_again(plain, tmp_path):
    file = tmp_path / "seen.jsonl"
    done = json.loads(check("--proxy", plain.address, "--seconds", 1, "--types", "register,expiry", "--seed", 5,
                            "--history", file, "--json", check=0).stdout)
    assert plain.keys() == set() and set(done["by_kind"]) == {"register", "expiry"}
    again = json.loads(check("--read", file, "--json", check=0).stdout)
    assert again["operations"] == done["operations"] and again["seed"] == 5 and again["keys"] == done["keys"]

    # One answer changed: the register that held a value is read as empty.
    lines = file.read_text().splitlines()
    at = next(i for i, line in enumerate(lines[1:], 1) if (op := json.loads(line))["verb"] == "GET"
              and op["kind"] == "register" and "text" in op and op["outcome"] == "answered")
    changed = json.loads(lines[at])
    changed["text"] = "v999.999"
    file.write_text("\n".join([*lines[:at], json.dumps(changed), *lines[at + 1:]]) + "\n")
    bad = check("--read", file, check=FAILED)
    assert "VIOLATED" in bad.stdout and "nobody ever wrote" in bad.stdout and plain.address in bad.stdout
    found = json.loads(check("--read", file, "--json", check=FAILED).stdout)
    assert found["invented"] == 1 and found["violations"][0]["operations"][0]["proxy"] == plain.address


class ForgetfulProxy(threading.Thread):
    """Hands bytes on to a Redis, and says OK to every tenth SET without doing it."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.seen = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            while data := client.recv(1 << 16):
                self.seen += data.startswith(b"*3\r\n$3\r\nSET\r\n")
                if data.startswith(b"*3\r\n$3\r\nSET\r\n") and data.count(b"*") == 1 and self.seen % 10 == 0:
                    client.sendall(b"+OK\r\n")
                    continue
                server.sendall(data)
                client.sendall(server.recv(1 << 16))


def test_a_lost_write_is_shown_with_those_who_saw_it(plain):
    proxy = ForgetfulProxy(plain.port)
    proxy.start()
    done = check("--proxy", proxy.address, "--proxy", plain.address, "--seconds", 1.5, "--types", "register",
                 "--pipeline", 1, "--keys", 4, check=FAILED)
    assert "VIOLATED" in done.stdout and "operations show it" in done.stdout
    # The offending operation and a write that it should have seen, with their proxies and how they overlap.
    assert f"via {plain.address}" in done.stdout or f"via {proxy.address}" in done.stdout
    assert any(line.strip().startswith(">") and "|-" in line for line in done.stdout.splitlines())


def test_ctrl_c_ends_it_in_order(plain):
    process = subprocess.Popen([CHECKER, "check", "--proxy", plain.address, "--seconds", "600", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
    wait_until("keys appear", lambda: plain.client.dbsize() > 10)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=40)
    assert process.returncode == 0 and json.loads(out)["verdict"] == "clean"
    assert plain.keys() == set()


def test_user_and_password(tmp_path):
    port, secret = free_port(), tmp_path / "secret"
    server = Process("with-a-password", ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--user",
                                         "app", "on", ">secret-1", "~*", "+@all", "--requirepass", "other"], tmp_path)
    server.start()
    secret.write_text("secret-1\n")
    client = redis.Redis(port=port, username="app", password="secret-1")

    def answers():
        try:
            return client.ping()
        except redis.ConnectionError:
            return False
    wait_until("it answers", answers)
    arguments = ["--proxy", f"127.0.0.1:{port}", "--seconds", 0.5, "--user", "app"]
    check(*arguments, "--password-file", secret, check=0)
    check(*arguments, check=0, env={"RINGSHIFT_PASSWORD": "secret-1"})
    refused = check(*arguments, check=FAILED, env={"RINGSHIFT_PASSWORD": "secret-2"})
    assert "password" in refused.stderr
    server.kill()


def test_what_cannot_be_done_is_said(tmp_path):
    assert "--proxy" in check(check=BAD_USAGE).stderr
    assert "'rope'" in check("--proxy", "127.0.0.1:1", "--types", "rope", check=BAD_USAGE).stderr
    assert "nonsense" in check("--proxy", "nonsense", check=BAD_USAGE).stderr
    assert "no-such" in check("--read", tmp_path / "no-such", check=BAD_USAGE).stderr
    (tmp_path / "text").write_text("hello\n")
    assert f"{tmp_path}/text:1" in check("--read", tmp_path / "text", check=BAD_USAGE).stderr
    begin = time.monotonic()
    nobody = check("--proxy", f"127.0.0.1:{free_port()}", "--seconds", 0.3, check=FAILED)
    assert "refused" in nobody.stderr and time.monotonic() - begin < 30
