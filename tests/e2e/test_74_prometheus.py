"""Metrics of every role: docs/metrics.md describes them, all of them and no others; and a Prometheus that scrapes a running
cluster and warns when something is wrong."""
import json
import re
import shutil
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

from harness.cluster import RINGSHIFT, ROOT
from harness.process import Process, free_port, wait_until
from test_46_tls import ca, tls_flags  # pylint: disable=unused-import
from test_71_admin_port import PORT, ask, metrics, start_serve, value

sys.path.insert(0, str(ROOT / "tests" / "packaging"))
import metrics_table  # noqa: E402


def test_every_metric_is_described_and_shown(make_cluster, ca):
    """All families of all roles, in a resize that is under way, against docs/metrics.md: both ways."""
    cluster = make_cluster(members=3, proxies=0)
    cluster.controller_options = PORT
    cluster.start_registry()
    cluster.registry.end()
    cluster.registry.command += PORT
    cluster.registry.command[cluster.registry.command.index("--listen") + 1] = cluster.registry_url[len("http://"):]
    cluster.registry.start().wait_ready()
    cluster.start_controller()
    found = cluster.directory / "instances.yaml"

    def find(*members):
        fresh = found.with_suffix(".new")
        fresh.write_text(json.dumps([{"id": m.id, "address": m.address} for m in members]))
        fresh.rename(found)
    find(*cluster.members)
    cluster.apply(cluster.write_spec(members=["cache-1", "cache-2"],
                                     discovery={"source": {"kind": "file", "path": str(found), "poll": "1s"}}))
    proxy = cluster.add_proxy(*PORT, *tls_flags(ca), "--listen", f"127.0.0.1:{free_port()}")
    proxy.port = int(re.findall(r"ready: proxy listening on \S+:(\d+)", proxy.output())[0])
    written = cluster.fill(3000)
    hot = list(written)[0]
    for _ in range(300):
        assert cluster.client().get(hot) == written[hot]
    assert cluster.client().get("nothing") is None
    agent = Process("agent", [RINGSHIFT, "agent", "--registry", cluster.registry_url, "--cluster", cluster.name, "--id",
                              "cache-1", "--address", cluster.members[0].address, "--drain-timeout-ms", "0", *PORT],
                    cluster.directory)
    cluster.others.append(agent)
    agent.start()
    urls = [process.admin_url() for process in (cluster.registry, cluster.controller, proxy, agent)]
    for url in urls:
        wait_until(f"{url} ready", lambda url=url: ask(url + "/readyz")[0] == 200)

    # One member goes, another comes.
    slowly = cluster.write_spec(members=["cache-1", "cache-3"],
                                limits={"move_keys_per_second": 100, "move_bytes_per_second": "200MiB"})
    cluster.resize_start(slowly, wait=False, steps="100")
    shown = {}

    def look():
        for url in urls:
            for name, (kind, samples) in metrics(url).items():
                shown.setdefault(name, (kind, []))[1].extend(samples)
        cluster.client().get(hot)
        return {"ringshift_resize_eta_seconds", "ringshift_resize_pair_keys_left",
                "ringshift_router_hot_key_requests_per_second"} <= shown.keys()
    wait_until("a resize that moves keys", look, timeout=30, interval=0.3)
    controller = metrics(urls[1])
    assert value(controller, "ringshift_controller_leading", cluster="cache") == 1
    assert value(controller, "ringshift_resize_state", state="running") == 1
    assert value(controller, "ringshift_resize_phase", phase="dual") == 1
    assert value(controller, "ringshift_cluster_routers") == 1
    assert value(controller, "ringshift_cluster_digests") == 1
    pairs = {(labels["from"], labels["to"]) for _, labels, _ in controller["ringshift_resize_pair_keys_left"][1]}
    assert {("cache-2", "cache-1"), ("cache-2", "cache-3")} <= pairs
    router = metrics(urls[2])
    assert value(router, "ringshift_router_requests_total") >= 3302
    assert value(router, "ringshift_router_lookups_total", result="hit") >= 301
    assert value(router, "ringshift_router_lookups_total", result="miss") == 1
    shares = {labels["member"]: v for _, labels, v in router["ringshift_router_member_share"][1]}
    assert shares.keys() == {"cache-1", "cache-2"} and sum(shares.values()) == pytest.approx(1)
    cluster.cli("resize", "set-rate", "100000", check=0)
    cluster.wait_resized()
    controller = metrics(urls[1])
    # All that was on the member that left, about a half, and what the new one gets of the other's.
    assert 1200 < value(controller, "ringshift_resize_keys_moved_total") < 2800
    moved = sum(v for _, _, v in controller["ringshift_resize_pair_keys_moved_total"][1])
    assert moved == value(controller, "ringshift_resize_keys_moved_total")
    assert sum(v for _, _, v in controller["ringshift_resize_pair_keys_left"][1]) == 0
    assert value(controller, "ringshift_resize_hold_seconds_count") == 1
    assert value(controller, "ringshift_membership_source_healthy", source="file") == 1
    assert value(controller, "ringshift_membership_source_age_seconds", cluster="cache") == 0
    assert value(controller, "ringshift_membership_instances", state="ready") == 3
    assert value(controller, "ringshift_membership_candidates", fit="yes") == 1
    assert value(controller, "ringshift_membership_candidates", fit="no") == 0
    # What the policy goes by is what was, when the source says what cannot be, and when it says nothing.
    for name, trouble in (("guard_holding", find), ("source_healthy", found.unlink)):
        before = value(metrics(urls[1]), f"ringshift_membership_{name}")
        trouble()
        wait_until(name, lambda name=name, was=before: value(metrics(urls[1]), f"ringshift_membership_{name}") != was,
                   interval=0.3)
    assert value(metrics(urls[1]), "ringshift_membership_source_age_seconds", source="file") > 0
    assert value(metrics(urls[1]), "ringshift_membership_instances", state="ready") == 3
    find(cluster.members[0], cluster.members[2])
    wait_until("the candidate is gone", lambda: value(metrics(urls[1]), "ringshift_membership_candidates", fit="yes") == 0,
               interval=0.3)
    assert value(metrics(urls[1]), "ringshift_membership_members_gone") == 0
    find(cluster.members[1], cluster.members[2])
    wait_until("a member is gone", lambda: value(metrics(urls[1]), "ringshift_membership_members_gone") == 1, interval=0.3)
    assert value(metrics(urls[1]), "ringshift_membership_guard_holding") == 0
    registry = metrics(urls[0])
    assert value(registry, "ringshift_registry_requests_total", verb="txn", outcome="ok") > 3
    assert value(registry, "ringshift_registry_commit_seconds_count") > 3
    assert value(registry, "ringshift_registry_watches") >= 2
    assert value(metrics(urls[3]), "ringshift_agent_registered") == 1

    described = metrics_table.read(ROOT)
    assert set(shown) == set(described), (f"not in docs/metrics.md: {sorted(set(shown) - set(described))}; "
                                          f"not shown: {sorted(set(described) - set(shown))}")
    for name, (kind, samples) in shown.items():
        assert kind == described[name][0], name
        for _, labels, _ in samples:
            assert labels.keys() - {"le"} == described[name][1], (name, labels)


class Prometheus:
    """Debian's own, with the rules of packaging/ whose patience is a second."""

    def __init__(self, directory, targets):
        self.directory = directory / "prometheus"
        self.directory.mkdir()
        rules = (ROOT / "packaging/prometheus/rules.yml").read_text()
        (self.directory / "rules.yml").write_text(re.sub(r"for: \w+", "for: 1s", rules))
        (self.directory / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "ringshift", "static_configs": [
                {"targets": [url[len("http://"):]], "labels": {"role": role}} for role, url in targets]}]}))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = Process("prometheus", [
            "prometheus", f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / 'data'}", f"--web.listen-address={self.url[len('http://'):]}",
            "--log.level=warn"], directory)
        self.process.start()

    def __enter__(self):
        def up():
            assert self.process.alive(), self.process.tail()
            try:
                return ask(self.url + "/-/ready")[0] == 200
            except OSError:
                return False
        wait_until("Prometheus is ready", up, 30)
        return self

    def __exit__(self, *_):
        self.process.end()

    def query(self, expression):
        """[(labels, value)]."""
        status, text = ask(f"{self.url}/api/v1/query?query={urllib.request.quote(expression)}")
        assert status == 200, text
        return [(one["metric"], float(one["value"][1])) for one in json.loads(text)["data"]["result"]]

    def firing(self):
        """Alert -> its labels."""
        found = json.loads(ask(self.url + "/api/v1/alerts")[1])["data"]["alerts"]
        return {alert["labels"]["alertname"]: alert["labels"] for alert in found if alert["state"] == "firing"}

    def wait_firing(self, name, timeout=45):
        return wait_until(lambda: f"{name} fires: {sorted(self.firing())}\n{self.process.tail()}",
                          lambda: self.firing().get(name), timeout, 0.3)

    def wait_silent(self, name, timeout=45):
        wait_until(lambda: f"{name} is silent: {self.firing()}", lambda: name not in self.firing(), timeout, 0.3)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed: scripts/setup")
def test_prometheus_scrapes_and_warns(make_cluster):
    cluster = make_cluster(members=3, proxies=0)
    serve = start_serve(cluster, spec=cluster.write_spec(members=["cache-1", "cache-2"]))
    cluster.add_proxy(*PORT)
    other = cluster.proxies[-1]
    cluster.fill(2000)
    with Prometheus(cluster.directory, [("serve", serve.admin), ("proxy", other.admin_url())]) as prometheus:
        wait_until("both are scraped", lambda: prometheus.query('sum(up{job="ringshift"})') == [({}, 2.0)], 30, 0.3)
        wait_until("two routers are seen", lambda: [v for _, v in prometheus.query("ringshift_cluster_routers")] == [2.0],
                   30, 0.3)
        assert prometheus.query("sum(ringshift_router_requests_total)")[0][1] >= 2000
        assert {m["severity"] for m in prometheus.firing().values()} <= {"warning"}, prometheus.firing()

        slowly = cluster.write_spec(limits={"move_keys_per_second": 50, "move_bytes_per_second": "200MiB"})
        cluster.resize_start(slowly, wait=False, steps="100")
        cluster.wait_status("keys move", lambda s: s["keys_moved"] > 0)
        cluster.pause()
        assert prometheus.wait_firing("RingshiftResizePaused")["cluster"] == "cache"
        cluster.cli("resize", "set-rate", "100000", check=0)
        cluster.resume()
        cluster.wait_resized()
        prometheus.wait_silent("RingshiftResizePaused")

        # A member that hangs, under a client that goes on asking.
        cluster.members[0].process.pause()
        asker = Process("asker", [sys.executable, Path(__file__).parent / "clients" / "ask_for_ever.py", serve.port,
                                  other.port], cluster.directory).start()
        try:
            assert prometheus.wait_firing("RingshiftMemberTimeouts")["member"] == "cache-1"
        finally:
            asker.send(signal.SIGKILL)
            asker.popen.wait()
            cluster.members[0].process.resume()
