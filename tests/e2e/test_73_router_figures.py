"""What a router counts, with real members: exactly what was sent, by member; the same at /metrics and in its record in the
registry; a member that does not answer; and its log as JSON."""
import base64
import json
import re
import urllib.request

from harness.cluster import run
from harness.process import wait_until

ADMIN = re.compile(r"^ready: admin listening on (\S+)$", re.MULTILINE)
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def start(make_cluster, *options):
    cluster = make_cluster(members=4, proxies=0).start()
    proxy = cluster.add_proxy("--admin-listen", "127.0.0.1:0", "--log-format", "json", *options)
    found = wait_until(lambda: f"the admin port\n{proxy.tail()}", lambda: ADMIN.search(proxy.output()))
    proxy.metrics_url = found.group(1) + "/metrics"
    return cluster, proxy


def samples(proxy):
    """[(name, labels, value)] of its page."""
    with urllib.request.urlopen(proxy.metrics_url, timeout=20) as answer:
        page = answer.read().decode()
    found = [SAMPLE.match(line).groups() for line in page.splitlines() if not line.startswith("#")]
    return [(name, dict(LABEL.findall(labels or "")), float(value)) for name, labels, value in found]


def total(page, name, **labels):
    return sum(value for n, pairs, value in page if n == name and labels.items() <= pairs.items())


def record(cluster):
    """Of the one router."""
    prefix = f"/ringshift/default/{cluster.name}/routers/".encode()
    body = {"key": base64.b64encode(prefix).decode(),
            "range_end": base64.b64encode(prefix[:-1] + bytes([prefix[-1] + 1])).decode()}
    with urllib.request.urlopen(f"{cluster.registry_url}/v3/kv/range", json.dumps(body).encode(), timeout=20) as answer:
        found = json.load(answer).get("kvs", [])
    assert len(found) == 1, found
    return json.loads(base64.b64decode(found[0]["value"]))


def test_counts_are_what_was_sent(make_cluster):
    cluster, proxy = start(make_cluster)
    client = cluster.client()
    keys = [f"key:{i}".encode() for i in range(400)]
    absent = [f"absent:{i}".encode() for i in range(100)]
    owners = cluster.owners(keys + absent, cluster.spec)
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.set(key, b"x" * 100)
    for key in keys + absent:
        pipeline.get(key)
    pipeline.execute()
    assert client.mget(keys[:40] + absent[:10]) == [b"x" * 100] * 40 + [None] * 10
    wrong = client.pipeline(transaction=False)
    for key in keys[:7]:
        wrong.lpush(key, "x")
    assert sum(isinstance(answer, Exception) for answer in wrong.execute(raise_on_error=False)) == 7

    wait_until("nothing under way", lambda: total(samples(proxy), "ringshift_router_member_in_flight") == 0)
    page = samples(proxy)
    for member in cluster.members:
        mine = [key for key in keys if owners[key] == member.id]
        none = [key for key in absent if owners[key] == member.id]
        in_mget = [key for key in keys[:40] if owners[key] == member.id]
        none_in_mget = [key for key in absent[:10] if owners[key] == member.id]
        errors = sum(owners[key] == member.id for key in keys[:7])
        mgets = 1 if in_mget or none_in_mget else 0

        def of(name, member=member, **labels):
            return total(page, f"ringshift_router_member_{name}", cluster="cache", member=member.id, **labels)
        assert of("requests_total", **{"class": "write"}) == len(mine) + errors
        assert of("requests_total", **{"class": "read"}) == len(mine) + len(none) + mgets
        assert of("hits_total") == len(mine) + len(in_mget)
        assert of("misses_total") == len(none) + len(none_in_mget)
        assert of("errors_total", kind="reply") == of("errors_total") == errors
        assert of("timeouts_total") == of("queued_bytes") == of("reconnects_total") == 0
        assert of("connected") == 1
        assert of("seconds_count") >= of("requests_total")
        assert 0 < of("share") < 1
    assert abs(total(page, "ringshift_router_member_share") - 1) < 1e-9
    assert total(page, "ringshift_router_lookups_total", result="hit") == 440
    assert total(page, "ringshift_router_errors_total", kind="member") == 7
    hot = {labels["key"] for name, labels, _ in page if name == "ringshift_router_hot_key_requests_per_second"}
    assert hot <= {key.decode() for key in keys + absent} and len(hot) <= 20

    # The record says the same, a second later at most.
    def same():
        told = record(cluster)
        return told.get("hits") == 440 and told.get("hot_keys") and told
    told = wait_until(lambda: record(cluster), same)
    page = samples(proxy)
    assert told["misses"] == total(page, "ringshift_router_lookups_total", result="miss") == 110
    assert told["requests"] <= total(page, "ringshift_router_requests_total")
    assert told["errors"] == total(page, "ringshift_router_errors_total") == 7
    assert told["started_at"] <= told["applied_at"]
    assert told["p50_ms"] >= 0 and told["p999_ms"] >= told["p99_ms"] >= told["p50_ms"]
    for member in cluster.members:
        ours = told["members"][member.id]
        for field, name in (("requests", "requests_total"), ("hits", "hits_total"), ("misses", "misses_total")):
            assert ours.get(field, 0) == total(page, f"ringshift_router_member_{name}", member=member.id), (member.id, field)


def test_a_silent_member_and_the_log(make_cluster):
    cluster, proxy = start(make_cluster, "--request-timeout-ms", "300", "--slow-log-ms", "200")
    client = cluster.client()
    keys = [f"key:{i}".encode() for i in range(100)]
    owners = cluster.owners(keys, cluster.spec)
    silent = cluster.members[1]
    on_it = [key for key in keys if owners[key] == silent.id][:5]
    client.set(on_it[0], "a secret")
    silent.process.pause()
    pipeline = client.pipeline(transaction=False)
    for key in on_it:
        pipeline.get(key)
    assert all(isinstance(answer, Exception) for answer in pipeline.execute(raise_on_error=False))
    page = samples(proxy)
    assert total(page, "ringshift_router_member_timeouts_total", member=silent.id) == len(on_it)
    assert total(page, "ringshift_router_member_errors_total", member=silent.id, kind="unknown") == len(on_it)
    assert total(page, "ringshift_router_member_timeouts_total") == len(on_it), "nobody else's"
    assert total(page, "ringshift_router_member_connected", member=silent.id) == 0
    wait_until("the record tells it", lambda: record(cluster)["members"][silent.id].get("timeouts") == len(on_it))
    silent.process.resume()
    wait_until("it is connected again",
               lambda: total(samples(proxy), "ringshift_router_member_connected", member=silent.id) == 1)
    assert total(samples(proxy), "ringshift_router_member_reconnects_total", member=silent.id) >= 1

    # Each line of the log is an object, and says what a program needs without parsing its words.
    lines = [json.loads(line) for line in proxy.errors().splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    topologies = [line for line in lines if "digest" in line]
    shown = run("topology", "get", "--json", "--registry", cluster.registry_url, "--cluster", cluster.name, check=0)
    now = json.loads(shown.stdout)
    assert topologies and topologies[-1]["digest"] == now["digest"] and topologies[-1]["version"] == now["version"]
    slow = [line for line in lines if "total_ms" in line]
    assert slow and {line["member"] for line in slow} == {silent.id}
    assert all(line["command"] == "get" and line["member_ms"] <= line["total_ms"] for line in slow)
    assert "a secret" not in proxy.errors() and on_it[0].decode() not in proxy.errors()
