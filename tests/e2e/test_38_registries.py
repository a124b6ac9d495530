"""Cluster state in other registries than ours: ZooKeeper and etcd drive whole resizes, and lose their leader while
they do; the state moves from any registry to any other. The longest needs RINGSHIFT_LONG=1."""
import json
import os
import signal
import threading

import etcd3gw
import pytest
from kazoo.client import KazooClient

from harness.cluster import BAD_USAGE, FAILED, run, run_json
from harness.process import wait_until
from harness.registries import Etcd, ZooKeeper

long_one = pytest.mark.skipif(not os.environ.get("RINGSHIFT_LONG"), reason="long: set RINGSHIFT_LONG=1")
FILLED = 4000
SLOW = {"move_keys_per_second": 700, "move_bytes_per_second": "50MiB"}


@pytest.fixture
def start_ensemble(tmp_path):
    made = []

    def start(kind, count=1):
        made.append(kind(tmp_path, count))
        return made[-1]
    yield start
    for ensemble in made:
        ensemble.stop()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    """One server for the short tests, each at a place of its own: it takes seconds to start."""
    server = ZooKeeper(tmp_path_factory.mktemp("ensemble"))
    yield server
    server.stop()


def start_on(make_cluster, url):
    """A cluster whose state is there."""
    cluster = make_cluster(members=4, proxies=2)
    cluster.registry_url = url
    cluster.spec = cluster.write_spec()
    cluster.start_controller()
    cluster.apply(cluster.spec)
    for _ in range(2):
        cluster.add_proxy()
    return cluster


def grow(cluster, meanwhile=None):
    written = cluster.fill(FILLED, ttl_every=3)
    cluster.add_member()
    five = cluster.write_spec(limits=SLOW if meanwhile else None)
    with cluster.history() as load:
        cluster.resize_start(five, wait=meanwhile is None)
        if meanwhile:
            cluster.wait_status("some moved", lambda s: s["keys_moved"] > 100)
            meanwhile()
            wait_until("the resize is over", lambda: settled(cluster), 120, 0.5)
    load.assert_clean()
    cluster.assert_placed(five)
    cluster.assert_filled(written, ttl_every=3)


def settled(cluster):
    done = cluster.cli("resize", "status", "--json")
    return done.returncode == 0 and json.loads(done.stdout)["state"] in ("idle", "finished")


def test_growth_on_zookeeper_and_what_kazoo_sees(make_cluster, zookeeper):
    cluster = start_on(make_cluster, zookeeper.at("growth"))
    grow(cluster)
    kazoo = KazooClient(zookeeper.hosts)
    kazoo.start(timeout=15)
    base = "/growth/ringshift/default/cache"
    topology, stat = kazoo.get(f"{base}/topology")
    assert len(json.loads(topology)["spec"]["members"]) == 5
    routers = sorted(kazoo.get_children(f"{base}/routers"))  # ID and a process' own suffix.
    assert [router.split(".")[0] for router in routers] == ["proxy-1", "proxy-2"]
    for router in routers:
        path = f"{base}/routers/{router}"
        assert kazoo.exists(path).ephemeralOwner != 0, "a record that dies with its router"
        wait_until("the version is the node's mzxid",
                   lambda: json.loads(kazoo.get(path)[0])["revision"] == stat.mzxid)
    assert kazoo.exists(f"{base}/controller").ephemeralOwner != 0
    # Its record goes with a router that stops.
    cluster.proxies[1].expected_dead = True
    assert cluster.proxies[1].end() == 0
    assert kazoo.get_children(f"{base}/routers") == routers[:1]
    kazoo.stop()


@pytest.mark.parametrize("kind", ["digest", "user"])
def test_only_who_knows_the_password(make_cluster, start_ensemble, request, tmp_path, kind):
    if kind == "digest":
        url = request.getfixturevalue("zookeeper").at("secret")
    else:
        etcd = start_ensemble(Etcd)
        etcd.only_for("ringshift", "s3cret-word")
        url = etcd.url
    secret = tmp_path / "secret"
    secret.write_text(f"{kind}:ringshift:s3cret-word\n")
    cluster = make_cluster(members=2, proxies=1, env={"RINGSHIFT_REGISTRY_AUTH_FILE": str(secret)})
    cluster.registry_url = url
    cluster.start_controller()
    run("topology", "apply", cluster.write_spec(), "--registry", url, env=cluster.env, check=0)
    cluster.add_proxy()
    cluster.client().set("a", "1")
    get = ("topology", "get", "--cluster", "cache", "--registry", url)
    assert "2 members" in run(*get, env=cluster.env, check=0).stdout
    stranger = run(*get, check=FAILED)
    assert "--registry-auth-file" in stranger.stderr, stranger.stderr
    secret.write_text(f"{kind}:ringshift:wrong-word\n")
    wrong = run(*get, env=cluster.env, check=FAILED)
    for text in (stranger.stderr, wrong.stderr, cluster.controller.errors(), cluster.proxies[0].errors()):
        assert "s3cret-word" not in text and "wrong-word" not in text
    scheme = url.split(":")[0]
    in_url = run("topology", "get", "--cluster", "cache", "--registry", f"{scheme}://me:s3cret-word@127.0.0.1:1",
                 check=None)
    assert in_url.returncode != 0 and "s3cret-word" not in in_url.stderr + in_url.stdout


def test_another_language_speaks_to_the_embedded_registry(make_cluster):
    """Python's etcd3gw, written for etcd and knowing nothing of us."""
    cluster = make_cluster(members=2, proxies=0)
    cluster.start_registry()
    host, port = cluster.registry_url.removeprefix("http://").split(":")
    etcd = etcd3gw.Etcd3Client(host=host, port=int(port), api_path="/v3/", timeout=20)
    events, cancel = etcd.watch_prefix("/ringshift/")
    late = threading.Timer(60, cancel)  # An event that does not come fails the test instead of holding it.
    late.start()
    cluster.start_controller()
    cluster.apply(cluster.write_spec())

    def next_of(key):
        while (event := next(events))["kv"]["key"] != key:
            assert event["kv"]["key"].startswith(b"/ringshift/")
        return event["kv"]
    for name in ("controller", "spec", "topology"):
        seen = next_of(b"/ringshift/default/cache/" + name.encode())
        value, about = etcd.get(seen["key"], metadata=True)[0]
        assert value == seen["value"] and about["mod_revision"] == seen["mod_revision"]
    assert [member["id"] for member in json.loads(value)["spec"]["members"]] == ["cache-1", "cache-2"]

    assert etcd.create("/other/a", "1") and not etcd.create("/other/a", "2")
    assert etcd.replace("/other/a", "1", b"\x00\xff") and not etcd.replace("/other/a", "1", "3")
    assert etcd.get("/other/a") == [b"\x00\xff"]
    for name in ("c", "b"):
        etcd.put(f"/other/{name}", name)
    found = etcd.get_prefix("/other/", sort_order="descend", sort_target="key")
    assert [about["key"] for _, about in found] == [b"/other/c", b"/other/b", b"/other/a"]

    lease = etcd.lease(ttl=60)
    etcd.put("/other/leased", "x", lease)
    assert lease.refresh() == 60 and 0 < lease.ttl() <= 60 and lease.keys() == [b"/other/leased"]
    lease.revoke()
    assert etcd.get("/other/leased") == [] and lease.refresh() == -1
    first, second = etcd.lock("only-one", ttl=60), etcd.lock("only-one", ttl=60)
    assert first.acquire() and not second.acquire()
    assert first.is_acquired() and not second.is_acquired()
    assert first.release() and second.acquire()
    assert etcd.delete_prefix("/other/") and etcd.get_prefix("/other/") == []
    assert not etcd.delete("/other/a")

    etcd.put("/ringshift/odd", "last")
    assert next_of(b"/ringshift/odd")["value"] == b"last"
    late.cancel()
    cancel()


@pytest.mark.parametrize("kind", [ZooKeeper, Etcd])
def test_the_leader_is_killed_while_a_growth_runs(make_cluster, start_ensemble, kind):
    ensemble = start_ensemble(kind, 3)
    cluster = start_on(make_cluster, ensemble.url)

    def kill_the_leader():
        before = ensemble.leader()
        before.kill()
        wait_until("another one leads", ensemble.leader, 60, 0.2)
    grow(cluster, kill_the_leader)


def test_state_moves_from_registry_to_registry(make_cluster, zookeeper, start_ensemble):
    etcd = start_ensemble(Etcd)
    cluster = make_cluster(members=3, proxies=1).start()
    ours = cluster.registry_url
    written = cluster.fill(300)

    def copy(source, target, *options, check=0):
        return run("registry", "copy", "--from", source, "--to", target, "--cluster", "cache", *options, check=check)

    def state(url):
        got = run_json("topology", "get", "--cluster", "cache", "--registry", url)
        got.pop("version")
        return got

    running = copy(ours, etcd.url, check=FAILED)
    assert "proxy-1" in running.stderr or "controller" in running.stderr, running.stderr
    for process in (*cluster.proxies, cluster.controller):
        process.expected_dead = True
        assert process.end() == 0
    before = state(ours)
    for source, target in ((ours, etcd.url), (etcd.url, zookeeper.url), (zookeeper.url, ours)):
        if target == ours:
            assert "--force" in copy(source, target, check=FAILED).stderr
        copy(source, target, *(["--force"] if target == ours else []))
        assert state(target) == before
        lines = run("topology", "history", "--cluster", "cache", "--registry", target, "--json", check=0).stdout
        assert lines.splitlines(), "the history went along"
    assert copy(ours, ours, check=None).returncode == BAD_USAGE
    # The cluster goes on where its state is now: the same data, and another resize.
    cluster.registry_url = zookeeper.url
    cluster.controller.command[cluster.controller.command.index(ours)] = zookeeper.url
    cluster.start_controller()
    proxy = cluster.proxies[0]
    proxy.command[proxy.command.index(ours)] = zookeeper.url
    proxy.start()
    proxy.wait_ready()
    cluster.assert_filled(written)
    cluster.add_member()
    four = cluster.write_spec()
    cluster.resize_start(four)
    cluster.assert_placed(four)
    cluster.assert_filled(written)


@long_one
def test_an_etcd_that_is_cut_off(make_cluster, start_ensemble):
    """A server that is stopped keeps its connections and says nothing: the watches there must go elsewhere. With two of
    three stopped there is no leader: traffic goes on, and so do changes when they are back."""
    ensemble = start_ensemble(Etcd, 3)
    cluster = start_on(make_cluster, ensemble.url)
    written = cluster.fill(FILLED)
    first, second, _ = ensemble.servers  # Programs look at the first one first.
    os.kill(first.pid, signal.SIGSTOP)
    cluster.add_member()
    cluster.resize_start(cluster.write_spec(), timeout=180)
    cluster.assert_filled(written)

    said = {proxy: len(proxy.errors()) for proxy in cluster.proxies}
    os.kill(second.pid, signal.SIGSTOP)
    wait_until("the routers notice",
               lambda: all("registry unreachable" in proxy.errors()[at:] for proxy, at in said.items()), 60)
    cluster.assert_filled(written)
    assert cluster.cli("resize", "status", check=None, timeout=60).returncode == FAILED
    for server in (first, second):
        os.kill(server.pid, signal.SIGCONT)
    wait_until("etcd leads again", ensemble.leader, 60, 0.2)
    wait_until("the registry answers", lambda: cluster.cli("resize", "status", check=None).returncode == 0, 60, 0.5)
    four = cluster.write_spec(members=[f"cache-{n}" for n in range(1, 5)])
    cluster.resize_start(four, timeout=180)
    cluster.assert_filled(written)
