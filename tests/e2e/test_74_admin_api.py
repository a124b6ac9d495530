"""The admin API on a real cluster: every path of docs/openapi.yaml is called and its answer judged by its schema, what it
says is what the command line says, and a growth from four members to five is done through it alone."""
import json
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import jsonschema
import pytest
import yaml

from harness.process import wait_until

CONTRACT = yaml.safe_load((Path(__file__).parents[2] / "docs" / "openapi.yaml").read_text())
RESOLVER = jsonschema.RefResolver.from_schema(CONTRACT)
SLOW = {"move_keys_per_second": 300, "move_bytes_per_second": "50MiB", "move_batch_keys": 10}


def resolve(node):
    while "$ref" in node:
        node = RESOLVER.resolve(node["$ref"])[1]
    return node


def judge(schema, value, what):
    errors = list(jsonschema.Draft202012Validator(schema, resolver=RESOLVER).iter_errors(value))
    assert not errors, f"{what}: {[(list(e.path), e.message[:300]) for e in errors[:5]]}"


class Api:
    """A client that checks each answer against the contract, and remembers which operations it has seen answered."""

    def __init__(self, url, token=None):
        self.url, self.token, self.seen = url + "/api/v1", token, set()

    def operation(self, method, path):
        for pattern, item in CONTRACT["paths"].items():
            regex = "".join("[^/]+" if part.startswith("{") else re.escape(part)
                            for part in re.split(r"(\{\w+\})", pattern))
            # A path without braces is another one's better match.
            if re.fullmatch(regex, path) and (pattern == path or path not in CONTRACT["paths"]):
                return pattern, item[method.lower()]
        raise AssertionError(f"{method} {path} is not in the contract")

    def call(self, method, path, body=None, expect=200, token=True, headers=None, **query):
        full = self.url + urllib.parse.quote(path)
        if query:
            full += "?" + urllib.parse.urlencode(query)
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        request = urllib.request.Request(full, data=data if method == "POST" else None, method=method)
        if method == "POST" and data is None:
            request.data = b""
        if token and self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text, kind = answer.status, answer.read().decode(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            status, text, kind = error.code, error.read().decode(), error.headers["Content-Type"]
        what = f"{method} {path} {query}: {status} {text[:500]}"
        assert status == expect, what
        pattern, operation = self.operation(method, path)
        responses = operation["responses"]
        content = resolve(responses.get(str(status), responses["default"]))["content"]
        assert kind.split(";")[0] in content, what
        if kind.startswith("application/json"):
            value = json.loads(text)
            judge(content["application/json"]["schema"], value, what)
        else:
            value = text
        if status == 200:
            self.seen.add((method, pattern))
        return value

    def get(self, path, **query):
        return self.call("GET", path, **query)

    def post(self, path, body=None, expect=200):
        return self.call("POST", path, body, expect)


class Events:
    """Follows the stream, judging each event's data by its schema."""

    def __init__(self, api, **query):
        url = api.url + "/events" + ("?" + urllib.parse.urlencode(query) if query else "")
        self.answer = urllib.request.urlopen(url, timeout=60)
        api.seen.add(("GET", "/events"))
        self.schemas = CONTRACT["paths"]["/events"]["get"]["x-events"]
        self.lock, self.events, self.fault = threading.Lock(), [], None
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        event = {}
        try:
            for raw in self.answer:
                line = raw.decode().rstrip("\n")
                if line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                    continue
                if "data" in event:
                    data = json.loads(event["data"])
                    judge(self.schemas[event["event"]], data, event["event"])
                    assert event["id"]
                    with self.lock:
                        self.events.append((event["event"], data))
                event = {}
        except AssertionError as fault:
            self.fault = fault
        except (OSError, ValueError, AttributeError):
            pass  # close() ends it.

    def of(self, kind):
        if self.fault:
            raise self.fault
        with self.lock:
            return [data for name, data in self.events if name == kind]

    def wait(self, kind, condition=lambda _: True, timeout=60):
        def look():
            return next((data for data in reversed(self.of(kind)) if condition(data)), None)
        return wait_until(lambda: f"an event '{kind}'; there are {[name for name, _ in self.events][-20:]}", look, timeout)

    def close(self):
        # The socket below: closing the reader alone waits for its buffer.
        self.answer.fp.raw._sock.shutdown(2)
        self.thread.join(10)
        assert not self.thread.is_alive()
        if self.fault:
            raise self.fault


@pytest.fixture
def served(make_cluster, tmp_path):
    """A cluster whose controller has an admin port with a token, and the API's client."""
    cluster = make_cluster(members=4, proxies=2)
    token_file = tmp_path / "tokens"
    token_file.touch(mode=0o600)
    token_file.write_text("# of the tests\ntester 0123456789abcdef-0123456789abcdef\n")
    cluster.controller_options = ["--admin-listen", "127.0.0.1:0", "--admin-token-file", str(token_file)]
    cluster.start(cluster.write_spec(limits=SLOW))
    api = Api(cluster.controller.admin_url(), "0123456789abcdef-0123456789abcdef")
    wait_until("the API to know the cluster", lambda: api.get("/overview")["routers"]["agree"] == 2, 30)
    return cluster, api


def hang_up(cluster):
    for member in cluster.members:
        member.hang_up()


def test_a_growth_through_the_api_alone(served):
    cluster, api = served
    written = cluster.fill(3000)
    events = Events(api)
    snapshot = events.wait("snapshot")
    assert set(snapshot) == {"overview", "members", "routers", "resize", "log", "topology", "series", "hot_keys",
                             "registry", "membership", "audit"}
    new = cluster.add_member()
    hang_up(cluster)
    change = {"edit": {"add": [{"id": "cache-5", "address": new.address}]}}
    plan = api.post("/resize/plan", {"change": change, "options": {"steps": [10, 100]}})
    assert plan["not_asked"] == "" and plan["sources"]["keys"] == "measured"
    assert {pair["to"] for pair in plan["pairs"]} == {"cache-5"}
    assert [step["percent"] for step in plan["steps"]] == [10, 100]
    # What the command line plans is the same.
    five = cluster.write_spec(limits=SLOW)
    said = cluster.cli_json("resize", "start", "--spec", five, "--dry-run", "--steps", "10,100")
    for name in ("moved_share", "keys_to_move", "verdict", "can_resize_live", "carried_over"):
        assert said[name] == plan[name]
    assert {name for name in said} | {"version", "spec", "not_asked"} == set(plan)

    start = {"change": change, "options": {"steps": [10, 100], "keys_per_second": 60}, "if_version": plan["version"]}
    assert api.call("POST", "/resize/start", start, expect=401, token=False)["error"]["code"] == "unauthorized"
    assert api.post("/resize/start", {**start, "if_version": "1.1"}, expect=409)["error"]["code"] == "stale"
    started = api.post("/resize/start", start)
    assert started["state"] in ("preparing", "running")
    events.wait("resize", lambda status: status["state"] == "running" and status["phase"] == "dual")
    assert api.post("/resize/start", start, expect=409)["error"]["code"] == "stale"
    assert [m["state"] for m in api.get("/members")["members"] if m["id"] == "cache-5"] == ["joining"]
    assert api.get("/ring", of="target")["members"][-1]["id"] == "cache-5"

    assert api.post("/resize/pause")["state"] in ("running", "paused")
    events.wait("resize", lambda status: status["state"] == "paused")
    api.post("/resize/rate", {"keys_per_second": 250, "bytes_per_second": 1 << 20})
    events.wait("resize", lambda status: status["rate"] == 250 and status["byte_rate"] == 1 << 20)
    api.post("/resize/big-keys", {"big_keys": "move", "big_key_limit": 1 << 30})
    api.post("/resize/lost", {"members": ["cache-1"], "origin_budget": 0}, expect=409)  # It answers.
    api.post("/resize/resume")
    events.wait("resize", lambda status: status["state"] == "running" and status["keys_moved"] > 0)
    events.wait("log", lambda entry: entry["event"] == "rate" and "tester" in entry["by"])
    # As the command line says it, but for what goes on meanwhile.
    said, shown = api.get("/resize"), cluster.status()
    assert set(said) == set(shown) and said["id"] == shown["id"] and said["rate"] == shown["rate"]
    api.post("/resize/rollback")
    events.wait("resize", lambda status: status["state"] == "finished" and status["rolled_back"], 90)

    again = api.post("/members", {"members": change["edit"]["add"], "options": {"steps": [100], "keys_per_second": 20000}})
    events.wait("resize", lambda status: status["state"] == "finished" and not status["rolled_back"]
                and status["id"] == again["id"] != started["id"], 90)
    wait_until("all members active", lambda: {m["state"] for m in api.get("/members")["members"]} == {"active"}, 30)
    assert len(api.get("/members")["members"]) == 5
    events.wait("mark", lambda mark: (mark["resize"], mark["event"]) == (again["id"], "finished"))
    marks = [(mark["resize"], mark["event"]) for mark in events.of("mark")]
    for event in ("begin", "phase", "pause", "rollback", "finished"):
        assert (started["id"], event) in marks
    assert (again["id"], "finished") in marks
    assert [entry["action"] for entry in reversed(api.get("/audit")["entries"])] == [
        "resize/start", "resize/pause", "resize/rate", "resize/big-keys", "resize/lost", "resize/resume", "resize/rollback",
        "members/add"]
    assert {entry["who"] for entry in api.get("/audit")["entries"]} == {"tester"}
    events.wait("audit", lambda entry: entry["action"] == "members/add" and "cache-5" in entry["to"])
    events.wait("members", lambda delta: any(m["id"] == "cache-5" and m.get("state") == "active" for m in delta["changed"]))
    events.wait("overview", lambda overview: overview["members"]["total"] == 5 and overview["routers"]["agree"] == 2)
    assert not events.of("snapshot")[1:]
    events.close()
    cluster.assert_filled(written)
    assert cluster.status()["fences"] == 0, "those who only look are not fenced"


def test_every_path_answers_as_the_contract_says(served):
    cluster, api = served
    cluster.fill(200)
    events = Events(api, topics="overview,resize")
    assert set(events.wait("snapshot")) == {"overview", "resize"}
    events.close()
    assert api.get("/session")["authenticated"] and not api.call("GET", "/session", token=False)["authenticated"]
    assert api.get("/openapi.yaml") == (Path(__file__).parents[2] / "docs" / "openapi.yaml").read_text()
    # What the command line says, the API says.
    keys = [f"fill:{i}" for i in range(20)]
    for line in cluster.cli("route", *keys, "--explain", "--json", check=0).stdout.splitlines():
        one = json.loads(line)
        answer = api.post("/route", {"keys": [one["key"]]})["keys"][0]
        assert {name: answer[name] for name in one} == one
    assert api.post("/route", {"keys": ["00ff"], "hex": True, "replicas": 4})["keys"][0]["replicas"]
    stored = cluster.cli_json("topology", "get")
    topology = api.get("/topologies/current")
    assert {name: topology[name] for name in stored} == stored
    assert api.get("/resize") == cluster.status()
    ring = api.get("/ring")
    assert sum(member["share"] for member in ring["members"]) == pytest.approx(1)
    assert len(api.get("/ring", arcs=100)["starts"]) <= 100
    assert api.get("/ring/members/cache-1")["heirs"]
    overview = wait_until("INFO of all members", lambda: next(iter(
        [o for o in [api.get("/overview")] if o["members"]["reachable"] == 4 and (o["keys"] or 0) >= 200]), None), 30)
    assert overview["health"] == "ok", overview
    client = cluster.client()
    for _ in range(3):  # Some traffic, so that there are figures.
        for i in range(200):
            client.get(f"fill:{i}")
            client.get(f"none:{i}")
    wait_until("rates", lambda: (api.get("/overview")["qps"] or 0) > 0, 30)
    assert {m["id"] for m in api.get("/members")["members"]} == {f"cache-{i}" for i in range(1, 5)}
    assert api.get("/members/cache-1")["info"]["server_version"]
    assert {router["agrees"] for router in api.get("/routers")["routers"]} == {True}
    registry = api.get("/registry")
    assert registry["connected"] and registry["controller"]["id"] and len(registry["routers"]) == 2
    series = api.get("/series")
    columns = series["columns"]
    assert len({len(column) for column in columns.values()}) == 1 and columns["at_ms"]
    assert len(api.get("/series", since_ms=columns["at_ms"][-1] - 1)["columns"]["at_ms"]) < len(columns["at_ms"]) + 3
    api.get("/hot-keys")
    # No policy: nothing of it, and no error.
    membership = api.get("/membership")
    assert not membership["active"] and membership["source"]["state"] == "unknown" and membership["candidates"] == []
    assert api.post("/membership/cache-5/admit", {}, expect=404)["error"]["code"] == "not_found"
    assert api.get("/spec")["spec"]["cluster"] == cluster.name
    bad = api.call("POST", "/spec/validate", "cluster: cache\nmembers:\n- {id: a, address: 'x:1', weight: 0}\n")
    assert not bad["valid"] and bad["problems"][0]["line"] == 3
    good = api.call("POST", "/spec/validate", Path(cluster.write_spec(weights={"cache-1": 2})).read_text())
    assert good["valid"] and good["diff"]["moved_share"] > 0

    # Actions that start a resize, each of which ends.
    hang_up(cluster)

    def ended(status):
        cluster.wait_status("the end", lambda s: s["id"] == status["id"] and s["state"] == "finished", 60)
    options = {"steps": [100], "keys_per_second": 100000}
    before = api.get("/topologies/current")["revision"]
    ended(api.post("/members/cache-1/weight", {"weight": 2, "options": options}))
    ended(api.post("/members/cache-4/drain", {"options": options}))
    # The model follows the registry at its own pace.
    wait_until("the history", lambda: any(
        "cache-4 left" in change
        for change in api.get("/topologies/diff", **{"from": before, "to": "current"})["changes"]), 15)
    assert api.get("/topologies")["current"] != before
    diff = api.get("/topologies/diff", **{"from": before, "to": "current"})
    wait_until("the log's end", lambda: api.get("/resizes")["resizes"][-1]["last"]["event"] == "end", 10)
    log = api.get("/resizes/last/log")
    lines = cluster.cli("resize", "log", "--json", check=0).stdout.splitlines()
    assert log["entries"] == [json.loads(line) for line in lines]
    ended(api.post(f"/topologies/{before}/restore", {"options": options}))
    wait_until("four members again", lambda: len(api.get("/members")["members"]) == 4, 15)
    ended(api.post("/members/cache-3/remove", {"options": options}))
    wait_until("the topology", lambda: len(api.get("/members")["members"]) == 3, 10)
    refused = api.post(f"/topologies/{before}/restore", {"options": options}, expect=409)
    assert "cache-3" in refused["error"]["message"]
    assert api.post("/resize/pause", expect=409)["error"]["code"] == "refused"
    api.get("/audit", limit=5)

    here = Api(api.url.removesuffix("/api/v1"))
    assert here.post("/members/cache-1/drain", {}, expect=401)["error"]["fix"]
    not_answered = {(method.upper(), path) for path, item in CONTRACT["paths"].items() for method in item} - api.seen
    # Those need a resize that runs, or a policy: test_a_growth_through_the_api_alone, test_membership_is_told_and_....
    assert not_answered <= {("POST", path) for path in ("/members", "/resize/plan", "/resize/start", "/resize/pause",
                            "/resize/resume", "/resize/rollback", "/resize/rate", "/resize/big-keys", "/resize/lost",
                            "/membership/{id}/admit")}


def test_membership_is_told_and_a_candidate_admitted(served):
    """What `member candidates` says, in the API; `member admit` through it; what is drained stays out of the policy's hands."""
    cluster, api = served
    written = cluster.fill(300)
    found = cluster.directory / "instances.yaml"
    new = cluster.add_member()
    hang_up(cluster)

    def find(**addresses):
        fresh = found.with_suffix(".new")
        fresh.write_text(json.dumps([{"id": name.replace("_", "-"), "address": at} for name, at in addresses.items()]))
        fresh.rename(found)
    all_of_them = {member.id.replace("-", "_"): member.address for member in cluster.members}
    find(**{**all_of_them, "cache_1": "127.0.0.1:1"}, other=cluster.members[0].address)
    rules = {"source": {"kind": "file", "path": str(found), "poll": "1s"}, "cooldown": "1s",
             "assign": [{"ids": "cache-5", "weight": 1.5, "zone": "b"}]}

    def policy(**more):
        four = [f"cache-{i}" for i in range(1, 5)]
        cluster.cli("member", "policy", cluster.write_spec(four, discovery={**rules, **more}), check=0)

    def told(what, condition):
        def look():
            now = api.get("/membership")
            return now if condition(now) else None
        return wait_until(lambda: f"{what}: {api.get('/membership')}", look, 30)
    policy()
    now = told("two candidates", lambda m: len(m["candidates"]) == 2)
    assert now["active"] and now["reported"] and now["source"]["state"] == "ok" and now["source"]["since_ms"] is None
    assert now["rules"] == {"source": "file", "admit": "manual", "cooldown_seconds": 1, "remove_after_seconds": None,
                            "at_most": 1, "floor": 1}
    fifth, other = now["candidates"]
    assert (fifth["id"], fifth["admissible"], fifth["code"], fifth["weight"]) == ("cache-5", True, "operator", 1.5)
    assert (other["id"], other["admissible"], other["code"]) == ("other", False, "address_taken")
    said = json.loads(cluster.cli("member", "candidates", "--json", check=0).stdout)["candidates"]
    assert [{name: one[name] for name in said[0]} for one in now["candidates"]] == said

    assert api.call("POST", "/membership/cache-5/admit", {}, expect=401, token=False)["error"]["fix"]
    refused = api.post("/membership/other/admit", {}, expect=409)["error"]
    assert refused["code"] == "refused" and "cache-1 has its address" in refused["message"]
    assert api.post("/membership/nobody/admit", {}, expect=404)["error"]["code"] == "not_found"
    assert api.post("/membership/cache-5/admit", {"if_version": "1.1"}, expect=409)["error"]["code"] == "stale"
    options = {"steps": [100], "keys_per_second": 100000}

    def ended(status):
        cluster.wait_status("the end", lambda s: s["id"] == status["id"] and s["state"] == "finished", 60)
    ended(api.post("/membership/cache-5/admit", {"options": options}))
    fifth = wait_until("a member", lambda: next((m for m in api.get("/members")["members"] if m["id"] == "cache-5"), None), 15)
    assert (fifth["address"], fifth["weight"], fifth["zone"]) == (new.address, 1.5, "b")
    assert api.get("/audit")["entries"][0]["action"] == "membership/admit"
    cluster.assert_filled(written)

    # A policy that admits by itself leaves alone what an operator drained here. An instance at another address, and one
    # that is gone.
    hang_up(cluster)
    ended(api.post("/members/cache-5/drain", {"options": options}))
    find(**{name: at for name, at in {**all_of_them, "cache_2": "127.0.0.1:1"}.items() if name != "cache_3"})
    policy(admit="auto", remove={"after": "1h"})
    now = told("all of it", lambda m: m["gone"] and m["gone"][0]["leaves_at_ms"] and m["candidates"][-1]["code"] == "drained"
               and m["elsewhere"] == [{"id": "cache-2", "member_address": all_of_them["cache_2"],
                                       "instance_address": "127.0.0.1:1"}])
    gone = now["gone"][0]
    assert (gone["id"], gone["code"]) == ("cache-3", "counting") and 3500e3 < gone["leaves_at_ms"] - gone["since_ms"] < 3700e3
    find()
    now = told("held", lambda m: m["source"]["state"] == "held")
    assert now["source"]["since_ms"] and "held until" in now["source"]["error"] and now["gone"] == []
    alerts = wait_until("an alert", lambda: {a["code"] for a in api.get("/overview")["alerts"]} & {"discovery_held"}, 15)
    assert alerts


def test_serve_makes_its_token(tmp_path, make_cluster):
    cluster = make_cluster(members=2, proxies=0)
    data = tmp_path / "data"
    process = cluster._server("serve", "serve", "--spec", cluster.write_spec(), "--data", data, "--listen", "127.0.0.1:0",
                              "--registry-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    process.start().wait_ready()
    token_file = data / "admin.token"
    wait_until("the token", token_file.exists, 10)
    assert os.stat(token_file).st_mode & 0o777 == 0o600
    api = Api(process.admin_url(), token_file.read_text().strip())
    assert api.get("/session") == {"cluster": "cache", "role": "serve", "program_version": api.get("/session")["program_version"],
                                   "actions": True, "authenticated": True, "token_name": "admin", "how": ""}
    assert str(token_file) in api.call("GET", "/session", token=False)["how"]
    assert api.post("/resize/resume", expect=409)["error"]["code"] == "refused"
    process.end()
