"""Consul's HTTP API, as far as services need it: https://developer.hashicorp.com/consul/api-docs (health, agent/service,
agent/check, features/blocking).

Faults: 500, hang, garbage; backwards (the index falls, with the list as it was before the last change), zero (the index
is 0), no-index, no-leader, filtered (the ACL hides entries, and says so), half (only half of the entries)."""
import json
import re
import threading
import time

from .server import Refused, Simulator, go_duration

MAINTENANCE = "_service_maintenance:"
FIELDS = {name.lower(): name for name in ("ID", "Name", "Address", "Port", "Tags", "Meta", "Check", "EnableTagOverride",
                                          "Weights")}


class Consul(Simulator):
    def __init__(self, token=None, **options):
        self.token, self.index, self.services, self.before = token, 10, {}, []
        self.ttls, self.notes = {}, {}
        super().__init__(**options)

    # What the tests do to it.
    def register(self, ident, address, port, meta=None, tags=(), node="node-1"):
        self._change(lambda: self.services.__setitem__(ident, {
            "Node": {"ID": "40e4a748-2192-161a-0510-9bf59fe950b5", "Node": node, "Address": "127.0.0.1",
                     "Datacenter": "dc1", "TaggedAddresses": {}, "Meta": {}, "CreateIndex": 5, "ModifyIndex": 5},
            "Service": {"ID": ident, "Service": "cache", "Tags": list(tags), "Address": address, "Port": port,
                        "Meta": meta or {}, "Weights": {"Passing": 1, "Warning": 1}, "EnableTagOverride": False,
                        "CreateIndex": self.index, "ModifyIndex": self.index},
            "Checks": [{"Node": node, "CheckID": "serfHealth", "Name": "Serf Health Status", "Status": "passing",
                        "ServiceID": "", "ServiceName": ""}]}))

    def deregister(self, ident):
        self._change(lambda: self.services.pop(ident, None))

    def check(self, ident, status, check=None):
        def change():
            checks = self.services[ident]["Checks"]
            name = check or f"service:{ident}"
            checks[:] = [one for one in checks if one["CheckID"] != name]
            if status is not None:
                checks.append({"CheckID": name, "Name": name, "Status": status, "ServiceID": ident,
                               "ServiceName": "cache"})
        self._change(change)

    def beaten(self, ident, ttl=None):
        """A TTL check that is not beaten for in time turns critical."""
        with self.changed:
            ttl = ttl or self.ttls.get(ident, (60,))[0]
            self.ttls[ident] = (ttl, time.monotonic())

        def look():
            if not self.stopping and self.ttls[ident][1] + ttl <= time.monotonic() and ident in self.services:
                self.check(ident, "critical")
        timer = threading.Timer(ttl + 0.05, look)
        timer.daemon = True
        timer.start()

    def state(self, ident):
        """The statuses of its own checks, None when it is not there."""
        with self.changed:
            found = self.services.get(ident)
            return found and {check["CheckID"].split(":")[0]: check["Status"] for check in found["Checks"]
                              if check["ServiceID"]}

    def touch(self):
        """The index moves, as for any other service of the same name or node, and nothing is another."""
        self._change(lambda: None)

    def _change(self, change):
        with self.changed:
            self.before = self._entries("cache")
            change()
            self.index += 1
            self.changed.notify_all()

    def _entries(self, name):
        return json.loads(json.dumps([entry for _, entry in sorted(self.services.items())
                                      if entry["Service"]["Service"] == name]))

    # What it is asked.
    def handle(self, request):
        if self.token:
            given = request.headers.get("X-Consul-Token") or request.query.get("token")
            if given != self.token:
                raise Refused(403, "ACL not found" if given else "Permission denied: anonymous token lacks permission")
        parts = request.path.strip("/").split("/")
        if request.method == "GET" and parts[:3] == ["v1", "health", "service"] and len(parts) == 4:
            return self._health(request, parts[3])
        if request.method == "PUT" and parts[:2] == ["v1", "agent"]:
            return self._agent(request, parts[2:])
        raise Refused(404, f"Invalid URL path: {request.path}")

    def _health(self, request, name):
        request.only("index", "wait", "dc", "tag", "passing", "stale", "ns", "near", "token")
        if request.query.get("dc", "dc1") != "dc1":
            raise Refused(500, "No path to datacenter")
        index = request.query.get("index", "0")
        if not index.isdigit():
            raise Refused(400, "Invalid index")
        index, wait = int(index), min(600.0, go_duration(request.query.get("wait", "5m")))
        if index > 0:
            self.wait(lambda: self.index > index or self.faults.keys() & {"backwards", "zero"}, wait)
        with self.changed:
            entries, now = self._entries(name), self.index
        if "tag" in request.query:
            entries = [entry for entry in entries if request.query["tag"] in entry["Service"]["Tags"]]
        if "passing" in request.query:
            entries = [entry for entry in entries if all(check["Status"] == "passing" for check in entry["Checks"])]
        headers = {"Content-Type": "application/json", "X-Consul-Index": str(now), "X-Consul-Knownleader": "true",
                   "X-Consul-Lastcontact": "0", "X-Consul-Effective-Consistency": "leader"}
        if self.fault("backwards"):
            entries, headers["X-Consul-Index"] = self.before, str(max(1, now - 5))
        if self.fault("zero"):
            headers["X-Consul-Index"] = "0"
        if self.fault("no-index"):
            del headers["X-Consul-Index"]
        if self.fault("no-leader"):
            headers["X-Consul-Knownleader"] = "false"
        if self.fault("half"):
            entries = entries[:len(entries) // 2]
        if self.fault("filtered"):
            entries, headers["X-Consul-Results-Filtered-By-ACLs"] = [], "true"
        return entries, headers

    def _agent(self, request, parts):
        if parts == ["service", "register"]:
            request.only("replace-existing-checks", "token")
            # Go reads names of fields without regard to case, and clients rely on it.
            body = {FIELDS.get(name.lower(), name): value for name, value in request.json().items()}
            unknown = set(body) - set(FIELDS.values())
            if unknown or not body.get("Name"):
                raise Refused(400, f"Request decode failed: {sorted(unknown)}")
            ident = body.get("ID") or body["Name"]
            self.register(ident, body.get("Address") or "", body.get("Port") or 0, body.get("Meta"),
                          body.get("Tags") or ())
            self.services[ident]["Service"]["Service"] = body["Name"]
            if check := body.get("Check"):
                self.check(ident, "critical")  # A TTL check is, until its first beat.
                ttl = {name.lower(): value for name, value in check.items()}.get("ttl")
                if not ttl or go_duration(ttl) < 1:
                    raise Refused(400, "Invalid check: TTL must be > 0 for TTL checks")
                after = {name.lower(): value for name, value in check.items()}.get("deregistercriticalserviceafter")
                if after and go_duration(after) < 60:
                    raise Refused(400, "Invalid check: DeregisterCriticalServiceAfter is at least 1m")
                self.beaten(ident, go_duration(ttl))
            if any(not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name) for name in body.get("Meta") or {}):
                raise Refused(400, "Invalid Service Meta: Key contains invalid characters")
            return "", {}
        if len(parts) == 3 and parts[:2] == ["service", "deregister"]:
            if parts[2] not in self.services:
                raise Refused(404, f"Unknown service ID {parts[2]!r}")
            self.deregister(parts[2])
            return "", {}
        if len(parts) == 3 and parts[:2] == ["service", "maintenance"]:
            request.only("enable", "reason", "token")
            if parts[2] not in self.services:
                raise Refused(404, f"Unknown service ID {parts[2]!r}")
            enable = request.query.get("enable")
            if enable not in ("true", "false"):
                raise Refused(400, "Missing value for enable")
            self.check(parts[2], "critical" if enable == "true" else None, MAINTENANCE + parts[2])
            return "", {}
        if len(parts) == 3 and parts[0] == "check" and parts[1] in ("pass", "warn", "fail"):
            request.only("note", "token")
            ident = parts[2].removeprefix("service:")
            if not parts[2].startswith("service:") or ident not in self.services:
                raise Refused(404, f"Unknown check ID {parts[2]!r}")
            self.beaten(ident)
            self.notes[ident] = request.query.get("note", "")
            self.check(ident, {"pass": "passing", "warn": "warning", "fail": "critical"}[parts[1]])
            return "", {}
        raise Refused(404, f"Invalid URL path: {request.path}")
