"""Nacos's open API: https://nacos.io/en/docs/open-api.html (v1: login, instance, instance/list, instance/beat) and the v2
list.

Faults: 500, hang, garbage; protect (reachProtectionThreshold: all are called healthy), half, forget (every token becomes
unknown, once)."""
import json
import time
from urllib.parse import parse_qsl

from .server import Refused, Simulator

V1_LIST = "/nacos/v1/ns/instance/list"


class Nacos(Simulator):
    def __init__(self, user=None, token_ttl=18000, unhealthy_after=15, removed_after=30, **options):
        self.unhealthy_after, self.removed_after, self.beats = unhealthy_after, removed_after, {}
        self.user, self.token_ttl, self.tokens, self.logins = user, token_ttl, {}, 0
        self.hosts = {}  # (grouped name, ip, port) -> host
        super().__init__(**options)

    def put(self, ip, port, service="cache", group="DEFAULT_GROUP", **fields):
        with self.changed:
            grouped = f"{group}@@{service}"
            host = self.hosts.get((grouped, ip, port)) or {
                "instanceId": f"{ip}#{port}#DEFAULT#{grouped}", "ip": ip, "port": port, "weight": 1.0, "healthy": True,
                "enabled": True, "ephemeral": True, "clusterName": "DEFAULT", "serviceName": grouped, "metadata": {}}
            self.hosts[(grouped, ip, port)] = {**host, **fields}

    def remove(self, ip, port, service="cache", group="DEFAULT_GROUP"):
        with self.changed:
            self.hosts.pop((f"{group}@@{service}", ip, port), None)

    def handle(self, request):
        if request.path == "/nacos/v1/auth/login" and request.method == "POST":
            return self._login(request)
        self._authorise(request)
        version = request.path.split("/")[2] if request.path.startswith("/nacos/") else ""
        if request.path in (V1_LIST, "/nacos/v2/ns/instance/list") and request.method == "GET":
            return self._list(request, version)
        if request.path == "/nacos/v1/ns/instance" and request.method in ("POST", "DELETE", "PUT"):
            return self._instance(request)
        if request.path == "/nacos/v1/ns/instance/beat" and request.method == "PUT":
            return self._beat(request)
        raise Refused(404, f"No endpoint {request.method} {request.path}.")

    def _login(self, request):
        kind = request.headers.get("Content-Type", "")
        form = dict(parse_qsl(request.body.decode())) if kind == "application/x-www-form-urlencoded" else {}
        form.update(request.query)
        if (form.get("username"), form.get("password")) != self.user:
            raise Refused(403, "unknown user!")
        self.logins += 1
        token = f"header.{self.logins}.signature"
        self.tokens[token] = time.monotonic() + self.token_ttl
        return {"accessToken": token, "tokenTtl": self.token_ttl, "globalAdmin": True, "username": form["username"]}, {}

    def _authorise(self, request):
        if self.user is None:
            return
        if self.fault("forget"):
            self.tokens.clear()
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        token = bearer or request.query.get("accessToken", "")
        if self.tokens.get(token, 0) < time.monotonic():
            raise Refused(403, json.dumps({"timestamp": "", "status": 403, "error": "Forbidden",
                                           "message": "token invalid!", "path": request.path}))

    def _grouped(self, fields):
        name = fields.get("serviceName")
        if not name:
            raise Refused(400, "caused: Param 'serviceName' is required.;")
        return name if "@@" in name else f"{fields.get('groupName') or 'DEFAULT_GROUP'}@@{name}"

    def _list(self, request, version):
        request.only("serviceName", "groupName", "namespaceId", "clusters", "clusterName", "healthyOnly", "clientIP",
                     "udpPort", "app", "accessToken", "tid", "encoding")
        if request.query.get("udpPort", "0") not in ("", "0") and request.headers.get("User-Agent", "").startswith("curl"):
            raise Refused(400, "we never ask for pushes")
        self._judge()
        grouped = self._grouped(request.query)
        clusters = [one for one in (request.query.get("clusters") or request.query.get("clusterName") or "").split(",") if one]
        with self.changed:
            hosts = [dict(host) for (name, _, _), host in sorted(self.hosts.items()) if name == grouped]
        hosts = [host for host in hosts if not clusters or host["clusterName"] in clusters]
        if request.query.get("healthyOnly") == "true":
            hosts = [host for host in hosts if host["healthy"]]
        protect = self.fault("protect")
        if protect:
            hosts = [{**host, "healthy": True} for host in hosts]
        if self.fault("half"):
            hosts = hosts[:len(hosts) // 2]
        answer = {"name": grouped, "groupName": grouped.split("@@")[0], "clusters": ",".join(clusters),
                  "cacheMillis": 3000, "hosts": hosts, "lastRefTime": int(time.time() * 1000), "checksum": "",
                  "allIPs": False, "reachProtectionThreshold": protect, "valid": True}
        if version == "v2":
            answer = {"code": 0, "message": "success", "data": answer}
        return answer, {"Content-Type": "application/json;charset=UTF-8"}

    def _instance(self, request):
        fields = {**dict(parse_qsl(request.body.decode())), **request.query}
        grouped = self._grouped(fields)
        group, service = grouped.split("@@", 1)
        ip, port = fields.get("ip"), fields.get("port", "")
        if not ip or not port.isdigit():
            raise Refused(400, "caused: Param 'ip' or 'port' is required.;")
        if request.method == "DELETE":
            self.remove(ip, int(port), service, group)
            self.beats.pop((grouped, ip, int(port)), None)
            return "ok", {}
        self.put(ip, int(port), service, group, weight=float(fields.get("weight", 1)),
                 enabled=fields.get("enabled", fields.get("enable", "true")) == "true",
                 healthy=fields.get("healthy", "true") == "true",
                 clusterName=fields.get("clusterName") or "DEFAULT",
                 metadata=json.loads(fields.get("metadata") or "{}"))
        return "ok", {}

    def _judge(self):
        """Instances that were beaten for once must be for ever."""
        with self.changed:
            for key, last in list(self.beats.items()):
                silence = time.monotonic() - last
                if silence > self.removed_after:
                    self.hosts.pop(key, None)
                    del self.beats[key]
                elif key in self.hosts:
                    self.hosts[key]["healthy"] = silence <= self.unhealthy_after

    def _beat(self, request):
        fields = {**dict(parse_qsl(request.body.decode())), **request.query}
        grouped = self._grouped(fields)
        beat = json.loads(fields.get("beat") or "{}")
        if beat.get("serviceName", grouped) != grouped:
            raise Refused(400, "caused: the beat is of another service;")
        self._judge()
        known = (grouped, beat.get("ip"), beat.get("port")) in self.hosts
        if known:
            self.beats[(grouped, beat["ip"], beat["port"])] = time.monotonic()
        return {"clientBeatInterval": 5000, "code": 10200 if known else 20404, "lightBeatEnabled": True}, {}
