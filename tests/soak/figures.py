#!/usr/bin/env python3
"""What a resize costs while it runs, in figures and without a verdict: they are the machine's as much as ours.

  throughput  what two proxies serve to clients that ask as fast as they are answered (GET, and SET from a tenth of the
              connections), before a resize with the default rate, in DUAL, and after it; what a command costs the
              proxies in DUAL, by what it cost before; and which share of the machine each kind of process took
  hold        how long each step held its commands, with four proxies, under a light load

  tests/soak/figures.py                      both
  tests/soak/figures.py --only hold --rounds 8

Exit status: 0 measured, 1 something did not work, 2 bad usage. The programs: RINGSHIFT_BIN, RINGSHIFT_HISTORY.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness.cluster import Cluster  # noqa: E402
from harness.process import Process  # noqa: E402

TARGETS = {"dual_by_before": "at least 0.60", "after_by_before": "1.00", "hold_median_ms": "at most 2",
           "hold_max_ms": "at most 20"}
DEFAULT_RATE = {"move_keys_per_second": 5000, "move_bytes_per_second": "50MiB"}
SAMPLE = 0.25
RESTING = 8.0         # Seconds of before and of after.
WARMING = 2.0


class Meter(threading.Thread):
    """Commands a second over all proxies, sample by sample."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.clients = [cluster.client(n) for n in range(len(cluster.proxies))]
        self.samples, self._over = [], threading.Event()  # (when, rate)
        self._last = self.total()

    def total(self):
        return time.monotonic(), sum(client.info("stats")["total_commands_processed"] for client in self.clients)

    def run(self):
        while not self._over.wait(SAMPLE):
            now = self.total()
            self.samples.append((now[0], (now[1] - self._last[1]) / (now[0] - self._last[0])))
            self._last = now

    def stop(self):
        self._over.set()
        self.join()
        for client in self.clients:
            client.connection_pool.disconnect()

    def median(self, begin, end):
        return statistics.median([rate for when, rate in self.samples if begin + SAMPLE <= when <= end] or [0])


class Cpu:
    """Seconds of CPU that each kind of process took since the last look, as a share of the machine's."""

    def __init__(self, cluster, loads):
        self._pids = {"proxies": [p.pid for p in cluster.proxies], "members": [m.process.pid for m in cluster.members],
                      "controller": [cluster.controller.pid], "registry": [cluster.registry.pid],
                      "clients": [p.pid for p in loads]}
        self._last = self._read()

    def _read(self):
        ticks = {kind: sum(sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
                           for pid in pids) for kind, pids in self._pids.items()}
        return time.monotonic(), {kind: n / os.sysconf("SC_CLK_TCK") for kind, n in ticks.items()}

    def shares(self):
        (then, before), (now, after) = self._last, self._read()
        self._last = now, after
        return {kind: round((after[kind] - before[kind]) / (now - then) / os.cpu_count(), 3) for kind in after}


def hang_up(cluster):
    for member in cluster.members:
        member.hang_up()


def holds_of(cluster):
    """Milliseconds of each HOLD of the last resize, as its log has them."""
    texts = [json.loads(line)["text"] for line in cluster.cli("resize", "log", "--json", check=0).stdout.splitlines()]
    return [float(text.split("after a hold of ")[1].split(" ms")[0]) for text in texts if "after a hold of " in text]


def fill(cluster, count):
    pipeline = cluster.client().pipeline(transaction=False)
    for i in range(count):
        pipeline.set(f"key:{i:012d}", "x" * 64)
        if i % 2000 == 1999:
            pipeline.execute()
    pipeline.execute()
    hang_up(cluster)


def throughput(options, directory):
    cluster = Cluster(directory, members=5, proxies=2)
    loads, rounds = [], []
    try:
        four = cluster.write_spec(members=[f"cache-{n}" for n in range(1, 5)], limits=DEFAULT_RATE)
        cluster.start(four)
        fill(cluster, options.keys)
        five = cluster.write_spec(limits=DEFAULT_RATE)
        for number, proxy in enumerate(cluster.proxies):
            for verb, clients in (("get", 18), ("set", 2)):
                loads.append(Process(f"load-{number}-{verb}", [
                    "redis-benchmark", "-p", proxy.port, "-c", clients, "-P", options.pipeline, "-r", options.keys,
                    "-d", 64, "-t", verb, "-l", "-q"], directory).start())
        for number in range(options.rounds):
            rounds.append(one_round(cluster, loads, [five, four][number % 2]))
            print(f"  round {number + 1}: {rounds[-1]}", flush=True)
    finally:
        for load in loads:
            load.kill()
        faults = cluster.stop()
        assert not faults, faults
    medians = {name: round(statistics.median(one[name] for one in rounds), 3)
               for name, value in rounds[0].items() if not isinstance(value, dict)}
    return medians | {"rounds": rounds}


def one_round(cluster, loads, spec):
    meter = Meter(cluster)
    meter.start()
    time.sleep(WARMING)
    cpu = Cpu(cluster, loads)
    time.sleep(RESTING)
    cpu_before = cpu.shares()
    begin = time.monotonic()
    cluster.cli("resize", "start", "--spec", spec, "--yes", "--allow-foreign", check=0, timeout=120)
    cluster.wait_status("moving", lambda s: s["phase"] == "dual", timeout=120)
    dual = time.monotonic()
    cpu.shares()
    status = cluster.wait_resized(900)
    end = time.monotonic()
    cpu_dual = cpu.shares()
    time.sleep(WARMING + RESTING)
    meter.stop()
    before, during = meter.median(begin - RESTING, begin), meter.median(dual, end)
    after = meter.median(end + WARMING, end + WARMING + RESTING)
    return {"before_per_second": round(before), "dual_per_second": round(during), "after_per_second": round(after),
            "dual_by_before": round(during / before, 3), "after_by_before": round(after / before, 3),
            "proxy_cpu_of_a_command": round((cpu_dual["proxies"] / during) / (cpu_before["proxies"] / before), 2),
            "cpu_before": cpu_before, "cpu_dual": cpu_dual, "dual_seconds": round(end - dual, 1), "keys_moved": status["keys_moved"],
            "load": round(os.getloadavg()[0], 1)}


def hold(options, directory):
    cluster = Cluster(directory, members=5, proxies=4)
    holds = {"idle": [], "loaded": []}
    try:
        specs = [None, cluster.write_spec(members=[f"cache-{n}" for n in range(1, 5)])]
        cluster.start(specs[1])
        fill(cluster, 20_000)
        specs[0] = cluster.write_spec()
        for kind in holds:
            for number in range(options.rounds * 2):
                if kind == "idle":
                    cluster.resize_start(specs[number % 2])
                else:
                    with cluster.history(rate=1000, ttl_slack_ms=2500) as load:
                        cluster.resize_start(specs[number % 2])
                    load.assert_clean(least=1)
                holds[kind] += holds_of(cluster)
            print(f"  {kind}: {len(holds[kind])} holds", flush=True)
    finally:
        faults = cluster.stop()
        assert not faults, faults
    return {kind: {"holds": len(all_), "hold_median_ms": round(statistics.median(all_), 2),
                   "p90_ms": round(sorted(all_)[len(all_) * 9 // 10], 2), "hold_max_ms": max(all_)}
            for kind, all_ in holds.items()} | {"load": round(os.getloadavg()[0], 1)}


WHAT = {"throughput": throughput, "hold": hold}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(WHAT))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=300_000, help="for throughput [300,000]")
    parser.add_argument("--pipeline", type=int, default=1, help="commands in flight of a connection [1]")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    seen = {}
    for name in [options.only] if options.only else WHAT:
        directory = Path(tempfile.mkdtemp(prefix=f"ringshift-{name}-"))
        print(f"{name}: the machine's load is {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        seen[name] = WHAT[name](options, directory)
        print(json.dumps({k: v for k, v in seen[name].items() if k != "rounds"}, indent=1), flush=True)
        shutil.rmtree(directory)
    print("targets, on a machine of its own: " + ", ".join(f"{name} {value}" for name, value in TARGETS.items()))
    if options.json:
        Path(options.json).parent.mkdir(parents=True, exist_ok=True)
        Path(options.json).write_text(json.dumps(seen, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
