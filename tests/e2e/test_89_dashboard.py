"""The dashboard in a real browser (Debian's Chromium, headless) over a real cluster: web/test/browser/growth.mjs clicks, this
starts what it clicks on and checks what came of it."""
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest

from harness.cluster import ROOT, run_json
from harness.process import Process, die_with_parent, free_port, wait_until

ADMIN = re.compile(r"^ready: admin listening on (\S+)$", re.MULTILINE)


@pytest.fixture(scope="session")
def browser_packages():
    """playwright-core and axe-core, installed as the lock file says."""
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed: scripts/setup installs it")
    done = subprocess.run([ROOT / "scripts/web", "--tests"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "web"


FOUR = ["cache-1", "cache-2", "cache-3", "cache-4"]


@pytest.fixture
def served(make_cluster):
    """Five members, four of them served by `ringshift serve`; its dashboard's address as cluster.dashboard."""
    cluster = make_cluster(members=5, proxies=0)
    four = cluster.write_spec(members=FOUR, limits={"move_keys_per_second": 100, "move_bytes_per_second": "50MiB"})
    data = cluster.directory / "data"
    server = Process("serve", [cluster.binary, "serve", "--spec", four, "--data", data, "--listen", "127.0.0.1:0",
                               "--registry-listen", f"127.0.0.1:{free_port()}", "--admin-listen", "127.0.0.1:0"],
                     cluster.directory)
    cluster.proxies.append(server)
    server.start()
    said = wait_until(lambda: f"serve is ready\n{server.tail()}", lambda: ADMIN.search(server.output()), timeout=30)
    output = server.output()
    server.port = int(re.search(r"^ready: proxy listening on \S+:(\d+)", output, re.MULTILINE).group(1))
    cluster.registry_url = re.search(r"^ready: registry listening on (\S+)", output, re.MULTILINE).group(1)
    if not cluster.registry_url.startswith("http"):
        cluster.registry_url = "http://" + cluster.registry_url
    cluster.server, cluster.dashboard = server, said.group(1).rstrip("/") + "/"
    cluster.token = (data / "admin.token").read_text().split()[-1]
    return cluster


def fetch(url, headers=None):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=10) as answer:
        return answer.status, dict(answer.headers), answer.read()


def test_its_files(served):
    status, headers, body = fetch(served.dashboard)
    assert status == 200 and body.startswith(b"<!doctype html>"), body[:100]
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    for name in re.findall(rb'(?:src|href)="\./([^"]+)"', body):
        status, headers, plain = fetch(served.dashboard + name.decode())
        assert status == 200 and plain
        status, headers, packed = fetch(served.dashboard + name.decode(), {"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] == "gzip" and len(packed) < len(plain)
        with pytest.raises(urllib.error.HTTPError) as unchanged:
            fetch(served.dashboard + name.decode(), {"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})
        assert unchanged.value.code == 304
    # A page of somebody else's makes a browser ask by a name that points here: refused.
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(served.dashboard, {"Host": "evil.example"})
    assert refused.value.code == 403


def test_a_growth_by_clicks(served, browser_packages):
    cluster = served
    written = cluster.fill(6000)
    for member in cluster.members:
        member.hang_up()
    newcomer = cluster.members[4]
    clicker = subprocess.Popen(
        ["node", browser_packages / "test/browser/growth.mjs", cluster.dashboard, cluster.token, newcomer.id, newcomer.address],
        stdout=subprocess.PIPE, stderr=open(cluster.directory / "clicker.err", "w"), text=True, preexec_fn=die_with_parent)
    said = []
    try:
        for line in clicker.stdout:
            said.append(line.strip())
            if said[-1].startswith("user:1000 is on "):
                spec = cluster.directory / "spec-1.yaml"
                owner = run_json("route", "user:1000", "--spec", spec)["member"]
                assert said[-1].endswith(owner), f"{said[-1]}, and the command line says {owner}"
            if said[-1] == "lose the server":
                cluster.assert_filled(written)
                for member in cluster.members:
                    member.hang_up()
                cluster.assert_placed(cluster.write_spec())
                status = run_json("resize", "status", "--registry", cluster.registry_url, "--cluster", cluster.name)
                assert status["state"] == "finished" and not status["rolled_back"], status
                assert cluster.server.end() == 0
                cluster.server.expected_dead = True
        clicker.wait(60)
    finally:
        if clicker.poll() is None:
            clicker.kill()
            clicker.wait()
    errors = (cluster.directory / "clicker.err").read_text()
    assert clicker.returncode == 0 and said[-1] == "done", f"{said}\n{errors}"
    states = [line for line in said if line.startswith("state: ")]
    assert states == [f"state: {name}" for name in
                      ("Running", "Paused", "Running", "Rolled back", "Running", "Finished")], states


def test_membership_by_clicks(served, browser_packages):
    """test/browser/membership.mjs: what the source says is changed when it asks for it."""
    cluster = served
    found = cluster.directory / "instances.yaml"

    def find(addresses):
        fresh = found.with_suffix(".new")
        fresh.write_text(json.dumps([{"id": name, "address": at} for name, at in addresses.items()]))
        fresh.rename(found)
    instances = {member.id: member.address for member in cluster.members}
    for member in cluster.members:
        member.hang_up()
    find({**instances, "stranger": "127.0.0.1:1"})
    rules = {"source": {"kind": "file", "path": str(found), "poll": "1s"}, "match": {"ids": ["cache-*"]}, "cooldown": "1s",
             "remove": {"after": "1h"}}
    cluster.cli("member", "policy", cluster.write_spec(FOUR, limits={"move_keys_per_second": 100000}, discovery=rules), check=0)
    clicker = subprocess.Popen(
        ["node", browser_packages / "test/browser/membership.mjs", cluster.dashboard, cluster.token, "cache-5"],
        stdout=subprocess.PIPE, stderr=open(cluster.directory / "clicker.err", "w"), text=True, preexec_fn=die_with_parent)
    said = []
    try:
        for line in clicker.stdout:
            said.append(line.strip())
            if said[-1] == "admitted":
                members = cluster.cli_json("topology", "get")["topology"]["spec"]["members"]
                assert [member["id"] for member in members] == [*FOUR, "cache-5"]
                find({name: at for name, at in instances.items() if name != "cache-2"})
            if said[-1] == "gone":
                find({})
        clicker.wait(60)
    finally:
        if clicker.poll() is None:
            clicker.kill()
            clicker.wait()
    errors = (cluster.directory / "clicker.err").read_text()
    assert clicker.returncode == 0 and said[-1] == "done", f"{said}\n{errors}"
