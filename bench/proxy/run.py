#!/usr/bin/python3
"""CPU per request of `ringshift proxy` against Debian's nutcracker, before the same four redis-servers.

Both proxies have one thread and run at once; the load goes to one, then to the other, in pairs whose order
alternates. CPU is the proxy process' own, user plus system, from /proc/PID/task/*/schedstat (else /proc/PID/stat)
over a run, divided by the requests of that run. A figure is the median over the pairs of (ours / nutcracker's).

  bench/proxy/run.py [--quick] [--json] [--pairs N] [--seconds S] [--callgrind] [--binary PATH]
"""
import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
VALUE_BYTES = 64
KEYSPACE = 100000
TARGETS = {("get", 1): 0.85, ("get", 16): 0.42, ("get", 64): 0.16,
           ("set", 1): 0.90, ("set", 16): 0.48, ("set", 64): 0.22}  # DESIGN, section 8.
INSTRUCTION_TARGETS = {1: 1500, 16: 800}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n")
                if connection.recv(64).startswith(b"$"):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"run.py: nothing serves on port {port} after 30 s")


class Farm:
    """The servers and proxies of one bench; ends them by pid."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []

    def spawn(self, *words, log=None):
        target = open(self.folder / log, "wb") if log else subprocess.DEVNULL
        process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=target, stderr=target)
        self.processes.append(process)
        return process

    def end(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def members(self, count):
        ports = []
        for i in range(count):
            port = free_port()
            self.spawn("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                       "--dir", self.folder)
            ports.append(port)
        for port in ports:
            wait_for(port)
        return ports

    def spec(self, ports):
        path = self.folder / "spec.yaml"
        members = "\n".join(f"  - {{id: cache-{i}, address: 127.0.0.1:{p}}}" for i, p in enumerate(ports, 1))
        path.write_text(f"cluster: bench\nmembers:\n{members}\n")
        return path

    def ours(self, binary, ports, wrapper=()):
        port = free_port()
        process = self.spawn(*wrapper, binary, "proxy", "--spec", self.spec(ports), "--listen", f"127.0.0.1:{port}",
                             "--threads", 1, "--request-timeout-ms", 60000, log="ringshift.log")
        wait_for(port)
        return process, port

    def nutcracker(self, ports):
        port, stats = free_port(), free_port()
        servers = "\n".join(f"    - 127.0.0.1:{p}:1 cache-{i}" for i, p in enumerate(ports, 1))
        path = self.folder / "nutcracker.yml"
        path.write_text("bench:\n" f"  listen: 127.0.0.1:{port}\n" "  hash: fnv1a_64\n  distribution: ketama\n"
                        "  redis: true\n  timeout: 5000\n  backlog: 1024\n  preconnect: true\n" f"  servers:\n{servers}\n")
        process = self.spawn("nutcracker", "-c", path, "-s", stats, "-a", "127.0.0.1", "-o", self.folder / "nut.log",
                             "-p", self.folder / "nut.pid")
        wait_for(port)
        return process, port


def cpu_seconds(pid):
    # The scheduler's own nanoseconds where the kernel has them: the ticks of `stat` are 10 ms.
    threads = list(pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))
    nanoseconds = sum(int(path.read_text().split()[0]) for path in threads)
    if nanoseconds > 0:
        return nanoseconds / 1e9
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def load(port, command, pipeline, requests):
    """Runs redis-benchmark; gives requests per second."""
    out = subprocess.run(["redis-benchmark", "-p", str(port), "-c", "50", "-n", str(requests), "-P", str(pipeline),
                          "-d", str(VALUE_BYTES), "-r", str(KEYSPACE), "-t", command, "--csv"],
                         check=True, capture_output=True, text=True).stdout
    row = re.search(r'^"(?:GET|SET)","([0-9.]+)"', out, re.M)
    if row is None:
        raise SystemExit("run.py: redis-benchmark said: " + out)
    return float(row.group(1))


def measure(target, command, pipeline, requests):
    process, port = target
    before = cpu_seconds(process.pid)
    rate = load(port, command, pipeline, requests)
    return (cpu_seconds(process.pid) - before) / requests * 1e6, rate


def compare(ours, theirs, command, pipeline, pairs, seconds):
    rate = load(theirs[1], command, pipeline, 20000)
    load(ours[1], command, pipeline, 20000)
    requests = max(20000, int(rate * seconds))
    ratios, ours_us, theirs_us = [], [], []
    for i in range(pairs):
        figures = {}
        for name, target in ([("o", ours), ("t", theirs)] if i % 2 == 0 else [("t", theirs), ("o", ours)]):
            figures[name] = measure(target, command, pipeline, requests)[0]
        ratios.append(figures["o"] / max(figures["t"], 1e-9))
        ours_us.append(figures["o"])
        theirs_us.append(figures["t"])
    target = TARGETS[(command, pipeline)]
    ratio = statistics.median(ratios)
    return {"command": command, "pipeline": pipeline, "pairs": pairs, "requests": requests,
            "ringshift_us": round(statistics.median(ours_us), 3),
            "nutcracker_us": round(statistics.median(theirs_us), 3), "ratio": round(ratio, 3),
            "ratio_min": round(min(ratios), 3), "ratio_max": round(max(ratios), 3), "target": target,
            "met": ratio <= target}


def callgrind(farm, binary, ports, pipeline, command="get"):
    """Instructions per request: the difference of two run lengths takes start and end out."""
    totals = []
    lengths = (4000, 24000)
    for requests in lengths:
        out = farm.folder / f"callgrind.{pipeline}.{requests}"
        process, port = farm.ours(binary, ports, ("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"))
        load(port, command, pipeline, requests)
        process.terminate()
        process.wait(60)
        totals.append(int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M).group(1)))
    return {"command": command, "pipeline": pipeline,
            "instructions": round((totals[1] - totals[0]) / (lengths[1] - lengths[0])),
            "target": INSTRUCTION_TARGETS[pipeline]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "build/release/bin/ringshift")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one run, by nutcracker's speed")
    parser.add_argument("--quick", action="store_true", help="3 pairs of half a second")
    parser.add_argument("--callgrind", action="store_true", help="instructions per request, too (valgrind)")
    parser.add_argument("--only-callgrind", action="store_true", help="nothing but that")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.pairs, args.seconds = 3, 0.5
    if not pathlib.Path(args.binary).exists():
        raise SystemExit(f"run.py: {args.binary} is not there; build it with `make release`")
    result = {"cpu": [], "instructions": []}
    with tempfile.TemporaryDirectory(prefix="ringshift-bench-") as folder:
        farm = Farm(folder)
        try:
            ports = farm.members(4)
            ours, theirs = farm.ours(args.binary, ports), farm.nutcracker(ports)
            load(ours[1], "set", 16, KEYSPACE)
            load(theirs[1], "set", 16, KEYSPACE)
            for command in () if args.only_callgrind else ("get", "set"):
                for pipeline in (1, 16, 64):
                    row = compare(ours, theirs, command, pipeline, args.pairs, args.seconds)
                    result["cpu"].append(row)
                    if not args.json:
                        print("{command} P={pipeline:<3} ringshift {ringshift_us:7.3f} us  nutcracker "
                              "{nutcracker_us:7.3f} us  ratio {ratio:.3f} ({ratio_min:.3f}..{ratio_max:.3f})  "
                              "target {target:.2f} {verdict}".format(verdict="met" if row["met"] else "MISSED", **row),
                              flush=True)
            if args.callgrind or args.only_callgrind:
                for pipeline in (1, 16):
                    row = callgrind(farm, args.binary, ports, pipeline)
                    result["instructions"].append(row)
                    if not args.json:
                        print("{command} P={pipeline:<3} {instructions} instructions a request, target {target}".format(
                            **row), flush=True)
        finally:
            farm.end()
    if args.json:
        json.dump(result, sys.stdout)
        print()


main()
