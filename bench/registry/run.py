#!/usr/bin/env python3
"""One embedded registry under a large fleet: how long a topology takes to reach everybody, and what that costs.

  routers   each writes its record once a second, under a lease that it keeps alive, as `ringshift proxy` does
  watchers  each has one stream open on the topology
  then the topology is written, again and again: the time from sending the write to each watcher's event

  bench/registry/run.py                                  1,000 routers, 10,000 watchers
  bench/registry/run.py --routers 100 --watchers 1000    a small one

All clients are two Python processes on the same machine: they take more CPU than the registry, and their share of the
delays is printed with the rest. Exit status: 0 measured, 1 something did not work, 2 bad usage.
"""
import argparse
import asyncio
import base64
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOPOLOGY = "/ringshift/default/cache/topology"
RECORD = {"version": "1.2", "digest": "0" * 64, "step": 0, "requests": 123456789, "hits": 123456, "misses": 1234,
          "p50_ms": 0.1, "p99_ms": 0.9, "p999_ms": 3.1, "clients": 50, "started_at": 1800000000,
          "members": {f"cache-{n}": {"requests": 12345678, "hits": 12345, "misses": 123, "errors": 0, "timeouts": 0,
                                     "in_flight": 3, "p99_ms": 0.8} for n in range(1, 9)}}
LEASE = 5
OPENED_AT_ONCE = 200


def b64(text):
    return base64.b64encode(text.encode()).decode()


def request(path, body):
    data = json.dumps(body).encode()
    return b"POST " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" \
        b"Content-Length: " + str(len(data)).encode() + b"\r\n\r\n" + data


class Watcher(asyncio.Protocol):
    def __init__(self, arrived):
        self.arrived, self.created, self._seen = arrived, asyncio.get_running_loop().create_future(), b""

    def connection_made(self, transport):
        transport.write(request("/v3/watch", {"create_request": {"key": b64(TOPOLOGY)}}))

    def data_received(self, data):
        if not self.created.done():
            self._seen += data
            if b'"created"' in self._seen:
                self.created.set_result(None)
        elif b'"events"' in data:
            self.arrived(time.monotonic())

    def connection_lost(self, error):
        if not self.created.done():
            self.created.set_exception(ConnectionError(f"a watcher was not let in: {error}"))


class Gone(ConnectionError):
    pass


class Router:
    def __init__(self, number, port, delays):
        self.key, self.port, self.delays = b64(f"/ringshift/default/cache/routers/router-{number}"), port, delays
        self.lease, self.lost = None, 0

    async def ask(self, path, body):
        self.writer.write(request(path, body))
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length))
        if head.startswith(b"HTTP/1.1 404"):
            raise Gone(f"{path}: {answer}")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(f"{path}: {answer}")
        return answer

    async def run(self, until):
        await asyncio.sleep(random.random())  # Not all at once.
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        beat = 0
        while time.monotonic() < until:
            begin = time.monotonic()
            try:
                await self.report(beat)
                self.delays.append(time.monotonic() - begin)
            except Gone:
                self.lease, self.lost = None, self.lost + 1
            beat += 1
            await asyncio.sleep(max(0, 1 - (time.monotonic() - begin)))
        self.writer.close()

    async def report(self, beat):
        if self.lease is None:
            self.lease = (await self.ask("/v3/lease/grant", {"TTL": LEASE}))["ID"]
        RECORD["requests"] += 1
        await self.ask("/v3/kv/put", {"key": self.key, "value": b64(json.dumps(RECORD)), "lease": self.lease})
        if beat % 2 == 1:
            await self.ask("/v3/lease/keepalive", {"ID": self.lease})


def of(delays):
    ordered = sorted(delays)
    return {name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3, 1)
            for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("last_ms", 1.0))} if ordered else {}


def routers_process(port, count, until, pipe):
    async def main():
        delays = []
        try:
            routers = [Router(n, port, delays) for n in range(count)]
            await asyncio.gather(*(router.run(until) for router in routers))
            pipe.send({"puts": len(delays), "leases_lost": sum(router.lost for router in routers), **of(delays)})
        except Exception as error:  # The parent says it.
            pipe.send({"error": repr(error)})
    asyncio.run(main())


async def watch_and_write(port, options, pid):
    loop = asyncio.get_running_loop()
    arrivals = []
    watchers = []
    for begin in range(0, options.watchers, OPENED_AT_ONCE):
        made = await asyncio.gather(*(loop.create_connection(lambda: Watcher(arrivals.append), "127.0.0.1", port)
                                      for _ in range(min(OPENED_AT_ONCE, options.watchers - begin))))
        watchers += [protocol for _, protocol in made]
        await asyncio.gather(*(protocol.created for _, protocol in made))
    print(f"  {len(watchers)} watchers, {options.routers} routers", flush=True)
    writer = Router(0, port, [])
    writer.reader, writer.writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(options.settle)
    cpu, begin = cpu_of(pid), time.monotonic()
    await asyncio.sleep(options.settle)
    idle = (cpu_of(pid) - cpu) / (time.monotonic() - begin)
    delays, cost = [], []
    for number in range(options.writes):
        arrivals.clear()
        value = b64(json.dumps({"n": number, "padding": "x" * options.size}))
        cpu, begin = cpu_of(pid), time.monotonic()
        await writer.ask("/v3/kv/put", {"key": b64(TOPOLOGY), "value": value})
        answered = time.monotonic() - begin
        while len(arrivals) < len(watchers):
            if time.monotonic() - begin > 60:
                raise ConnectionError(f"only {len(arrivals)} of {len(watchers)} events came")
            await asyncio.sleep(0.005)
        took = max(arrivals) - begin
        cost.append(cpu_of(pid) - cpu - idle * took)
        delays += [at - begin for at in arrivals]
        print(f"  write {number + 1}: answered after {answered * 1e3:.1f} ms, everybody has it after {took * 1e3:.0f} ms",
              flush=True)
        await asyncio.sleep(1)
    return {"write_to_event": of(delays), "registry_cpu_share_of_a_core_while_settled": round(idle, 3),
            "registry_cpu_ms_a_write": round(1e3 * sorted(cost)[len(cost) // 2], 1), "registry_rss_mib": rss_mib(pid)}


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid):
    return round(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routers", type=int, default=1000)
    parser.add_argument("--watchers", type=int, default=10_000)
    parser.add_argument("--writes", type=int, default=10, help="of the topology [10]")
    parser.add_argument("--size", type=int, default=4000, help="bytes of the topology [4,000]")
    parser.add_argument("--settle", type=float, default=5.0, help="seconds of counting before the writes [5]")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    wanted = options.routers + options.watchers + 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0]),) * 2)
    program = os.environ.get("RINGSHIFT_BIN", str(Path(__file__).resolve().parents[2] / "build/release/bin/ringshift"))
    with tempfile.TemporaryDirectory(prefix="ringshift-registry-") as directory:
        registry = subprocess.Popen([program, "registry", "--listen", "127.0.0.1:0", "--data", f"{directory}/registry.db"],
                                    stdout=subprocess.PIPE, text=True)
        try:
            port = int(registry.stdout.readline().rsplit(":", 1)[1].split()[0].strip("/"))
            ours, theirs = multiprocessing.Pipe()
            until = time.monotonic() + options.settle * 2 + options.writes * 2 + options.watchers / 1000 + 3
            routers = multiprocessing.Process(target=routers_process, args=(port, options.routers, until, theirs))
            routers.start()
            seen = asyncio.run(watch_and_write(port, options, registry.pid))
            seen["router_report"] = ours.recv() if ours.poll(60) else {"error": "the routers' process said nothing"}
            routers.join(10)
            seen |= {"routers": options.routers, "watchers": options.watchers, "cores": os.cpu_count(),
                     "load": round(os.getloadavg()[0], 1)}
        except (ConnectionError, OSError) as error:
            print(f"run.py: {error}", file=sys.stderr)
            return 1
        finally:
            registry.terminate()
            registry.wait(10)
    print(json.dumps(seen, indent=1))
    if options.json:
        Path(options.json).parent.mkdir(parents=True, exist_ok=True)
        Path(options.json).write_text(json.dumps(seen, indent=1) + "\n")
    return 1 if "error" in seen["router_report"] else 0


if __name__ == "__main__":
    sys.exit(main())
