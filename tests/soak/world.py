"""The cluster of a soak: servers that keep their data through a crash, two controllers, and a pool of servers from
which members come and into which they go. A server gets a new member id each time it joins: an id that left never
comes back."""
import base64
import itertools
import json
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness.cluster import CHECKER, Cluster, Member  # noqa: E402
from harness.process import Process, free_port, wait_until  # noqa: E402

SERVERS, FIRST_MEMBERS, FEWEST = 7, 4, 3
LIMITS = {"move_bytes_per_second": "100MiB", "move_batch_keys": 20}


class Server(Member):
    """A redis-server that has in its file what it acknowledged, so that a kill of the process loses nothing. It need
    not be on the disk for that (appendfsync no): Redis hands it to the kernel before it answers. With `everysec` it
    would answer before that while the disk is slow."""

    def __init__(self, number, directory):
        self.id = f"spare-{number}"
        self.port = free_port()
        home = directory / f"server-{number}"
        home.mkdir()
        self.process = Process(f"server-{number}", [
            "redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
            "--appendfsync", "no", "--loglevel", "notice", "--dir", home], directory)
        self.start()


class World(Cluster):
    def __init__(self, directory, proxies=3, keys_per_second=1500):
        self._member_ids = itertools.count(1)
        super().__init__(directory, members=0, proxies=proxies, name="soak")
        self.members = [Server(number + 1, directory) for number in range(SERVERS)]
        self.controllers = []
        self.limits = {**LIMITS, "move_keys_per_second": keys_per_second}
        self.serving = self.members[:FIRST_MEMBERS]  # Members by the topology in force.
        for server in self.serving:
            self.rename(server)
        self.placement = {"algorithm": "ring", "hash": "xxh3", "points": 256}
        self.weights = {}
        self.start_options = ["--allow-foreign", "--yes"]

    def rename(self, server):
        server.id = f"cache-{next(self._member_ids)}"

    def spares(self):
        return [server for server in self.members if server not in self.serving]

    def write(self, servers, weights, placement):
        self._specs += 1
        path = self.directory / f"spec-{self._specs}.yaml"
        path.write_text(json.dumps({
            "cluster": self.name, "placement": placement, "consistency": "strict", "limits": self.limits,
            "members": [{"id": s.id, "address": s.address, "weight": weights.get(s.id, 1.0)} for s in servers],
        }, indent=1))
        return path

    def start(self):
        self.start_registry()
        self.registry.command[self.registry.command.index("--listen") + 1] = self.registry_url.removeprefix("http://")
        for number in (1, 2):
            controller = self._server(f"controller-{number}", "controller", "--registry", self.registry_url,
                                      "--cluster", self.name, "--id", f"controller-{number}")
            self.controllers.append(controller)
            controller.start()
            controller.wait_ready()
        self.apply(self.write(self.serving, self.weights, self.placement))
        for _ in range(self._proxies_wanted):
            self.add_proxy()
        return self

    def processes(self):
        return super().processes() + self.controllers

    def stop(self):
        faults = []
        for controller in self.controllers:
            if controller.alive():
                status = controller.end()
                if status != 0:
                    faults.append(f"{controller.name} stopped with status {status}")
        return faults + super().stop()

    def ended_by_themselves(self):
        """Processes that no fault ended."""
        return [f"{p.name} ended by itself with status {p.popen.returncode}\n{p.tail(15)}" for p in self.processes()
                if p.popen is not None and not p.alive() and not p.expected_dead]

    # Status, while the registry may be away.

    def settled_status(self):
        """The status if no request waits to be taken up: one whose answer was lost may still begin a resize."""
        key = base64.b64encode(f"/ringshift/default/{self.name}/request".encode()).decode()
        question = urllib.request.Request(f"{self.registry_url}/v3/kv/range", json.dumps({"key": key}).encode())
        try:
            with urllib.request.urlopen(question, timeout=5) as answer:
                if json.load(answer).get("kvs"):
                    return None
        except OSError:
            return None
        return self.status_or_none()

    def status_or_none(self):
        done = self.cli("resize", "status", "--json", timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def ask(self, *arguments, patience=40):
        """A request that must be accepted sooner or later, or be pointless by then; says whether it was accepted."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            done = self.cli("resize", *arguments, timeout=90)
            if done.returncode == 0:
                return True
            status = self.status_or_none()
            if status and status["state"] in ("idle", "finished", "failed"):
                return False
            time.sleep(0.3)
        return False

    # Where keys are.

    def misplaced(self):
        """Keys on a server that does not own them by the topology in force. REQUIRES: no resize, no fault.

        A claim that a dead process left lives for two seconds more, on a server that has a clock: that may be seen."""
        for _ in range(10):
            found = self._misplaced()
            if not any(key.startswith(b"rs:claim:") for key, _, _ in found):
                break
            time.sleep(0.5)
        return found

    def _misplaced(self):
        holders = [(key, server.id) for server in self.members for key in server.keys() if key != b"rs:stamp"]
        owners = self.current_owners({key for key, _ in holders})
        return [(key, holder, owners.get(key)) for key, holder in holders
                if key.startswith(b"rs:") or owners[key] != holder]

    def current_owners(self, keys):
        keys = [key for key in keys if not key.startswith(b"rs:")]
        if not keys:
            return {}
        lines = self.cli("route", "--hex", "--json", check=0, timeout=120,
                         stdin="".join(key.hex() + "\n" for key in keys)).stdout.splitlines()
        return {bytes.fromhex(one["key"]): one["member"] for one in map(json.loads, lines)}


__all__ = ["CHECKER", "FEWEST", "Process", "World", "wait_until"]
