"""EndpointSlices of the Kubernetes API (discovery.k8s.io/v1): list by pages, watch with bookmarks, create, replace, delete:
https://kubernetes.io/docs/reference/using-api/api-concepts/.

Faults: 500, hang, garbage; gone (a watch is answered by HTTP 410), expire (a watch gets an ERROR event with code 410),
reordered (a watch repeats the last but one version of a slice after the last), cut (a watch's stream breaks off), half."""
import json
import time

from .server import Refused, Simulator

ROOT = "/apis/discovery.k8s.io/v1/namespaces/"
LABEL = "kubernetes.io/service-name"


def status(code, reason, message):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                       "reason": reason, "code": code})


def endpoint(pod, ip, ready=True, serving=None, terminating=False):
    return {"addresses": [ip], "hostname": pod, "nodeName": "node-1", "zone": "zone-a",
            "conditions": {"ready": ready, "serving": ready if serving is None else serving, "terminating": terminating},
            "targetRef": {"kind": "Pod", "namespace": "shop", "name": pod, "uid": f"uid-{pod}"}}


def slice_of(name, endpoints, service="cache", port=6379, namespace="shop"):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": namespace, "labels": {LABEL: service}},
            "ports": [{"name": "redis", "protocol": "TCP", "port": port}], "endpoints": endpoints}


class Kubernetes(Simulator):
    bookmark_every = 0.3

    def __init__(self, token=None, **options):
        self.token, self.version, self.slices, self.events, self.oldest = token, 100, {}, [], 0
        self.pages = {}
        super().__init__(**options)

    def put(self, manifest):
        with self.changed:
            self.version += 1
            name = manifest["metadata"]["name"]
            known = self.slices.get(name)
            stored = json.loads(json.dumps(manifest))
            stored["metadata"].update(resourceVersion=str(self.version), uid=f"uid-{name}",
                                      generation=1 + (known["metadata"]["generation"] if known else 0))
            self.slices[name] = stored
            self.events.append((self.version, "MODIFIED" if known else "ADDED", stored))
            self.changed.notify_all()
            return stored

    def delete(self, name):
        with self.changed:
            self.version += 1
            gone = json.loads(json.dumps(self.slices.pop(name)))
            gone["metadata"]["resourceVersion"] = str(self.version)
            self.events.append((self.version, "DELETED", gone))
            self.changed.notify_all()

    def compact(self):
        """What was before is history that nobody can ask for."""
        with self.changed:
            self.version += 1
            self.oldest, self.events = self.version, []

    def handle(self, request):
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise Refused(401, status(401, "Unauthorized", "Unauthorized"))
        rest = request.path.removeprefix(ROOT).split("/")
        if not request.path.startswith(ROOT) or len(rest) < 2 or rest[1] != "endpointslices":
            raise Refused(404, status(404, "NotFound", "the server could not find the requested resource"))
        if request.method == "GET" and len(rest) == 2:
            request.only("labelSelector", "limit", "continue", "watch", "allowWatchBookmarks", "resourceVersion",
                         "timeoutSeconds", "pretty")
            selector = request.query.get("labelSelector", "")
            if request.query.get("watch") in ("true", "True", "1"):
                return self._watch(request, rest[0], selector)
            return self._list(request, rest[0], selector)
        if request.method in ("POST", "PUT"):
            manifest = request.json()
            if manifest.get("kind", "EndpointSlice") != "EndpointSlice" or manifest.get("addressType") not in ("IPv4", "IPv6", "FQDN"):
                raise Refused(422, status(422, "Invalid", "addressType: Unsupported value"))
            manifest["metadata"].setdefault("namespace", rest[0])
            return self.put(manifest), {"Content-Type": "application/json"}
        if request.method == "DELETE" and len(rest) == 3 and rest[2] in self.slices:
            self.delete(rest[2])
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, {"Content-Type": "application/json"}
        raise Refused(404, status(404, "NotFound", "not found"))

    @staticmethod
    def _fits(stored, namespace, selector):
        metadata = stored["metadata"]
        wanted = [part.split("=", 1) for part in selector.split(",") if part]
        return metadata["namespace"] == namespace and all(metadata["labels"].get(name) == value for name, value in wanted)

    def _list(self, request, namespace, selector):
        limit = int(request.query.get("limit", "0")) or 10**9
        with self.changed:
            if "continue" in request.query:
                page = self.pages.pop(request.query["continue"], None)
                if page is None:
                    raise Refused(410, status(410, "Expired", "The provided continue parameter is too old"))
                version, items = page
            else:
                version = self.version
                items = [stored for _, stored in sorted(self.slices.items()) if self._fits(stored, namespace, selector)]
            if self.fault("half"):
                items = items[:len(items) // 2]
            metadata = {"resourceVersion": str(version)}
            if len(items) > limit:
                token = f"page-{len(self.pages)}-{version}"
                self.pages[token] = (version, items[limit:])
                metadata.update({"continue": token, "remainingItemCount": len(items) - limit})
            body = {"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": metadata,
                    "items": json.loads(json.dumps(items[:limit]))}
        return body, {"Content-Type": "application/json"}

    def _watch(self, request, namespace, selector):
        if self.fault("gone"):
            raise Refused(410, status(410, "Expired", "too old resource version"))
        given = request.query.get("resourceVersion", "0")
        if not given.isdigit():
            raise Refused(400, status(400, "BadRequest", "strconv.ParseUint: parsing: invalid syntax"))
        handler, at, seconds = request.handler, int(given), int(request.query.get("timeoutSeconds", "1800"))
        bookmarks = request.query.get("allowWatchBookmarks") in ("true", "True")
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def send(kind, thing):
            data = json.dumps({"type": kind, "object": thing}) + "\n"
            handler.wfile.write(f"{len(data.encode()):x}\r\n{data}\r\n".encode())
            handler.wfile.flush()

        end = time.monotonic() + seconds
        if at == 0:
            with self.changed:
                at = self.version
                now = [stored for _, stored in sorted(self.slices.items()) if self._fits(stored, namespace, selector)]
            for stored in now:
                send("ADDED", stored)
        while time.monotonic() < end and not self.stopping:
            self.wait(lambda: self.version > at or self.faults.keys() & {"expire", "cut"}, self.bookmark_every)
            if self.fault("cut"):
                handler.wfile.write(b"40\r\n{\"type\":\"MODI")
                handler.connection.close()
                return None
            if at < self.oldest or self.fault("expire"):
                send("ERROR", json.loads(status(410, "Expired", f"too old resource version: {at} ({self.oldest})")))
                break
            with self.changed:
                news = [event for event in self.events if event[0] > at]
                at = max([at] + [event[0] for event in news])
            for _, kind, stored in news:
                if self._fits(stored, namespace, selector):
                    send(kind, stored)
                    older = [event for event in self.events if event[2]["metadata"]["name"] == stored["metadata"]["name"]]
                    if len(older) > 1 and self.fault("reordered"):
                        send("MODIFIED", older[-2][2])
            if not news and bookmarks:
                send("BOOKMARK", {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
                                  "metadata": {"resourceVersion": str(at)}})
        handler.wfile.write(b"0\r\n\r\n")
        return None
