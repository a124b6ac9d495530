#!/usr/bin/env python3
"""Every big change on real servers, judged key by key: growth, shrink, new weights, other programs' placements to ours,
and rollbacks at 1 %, 37 % and 99 %. Each runs under the load of `ringshift check` through two proxies, beside a million
keys of every type, of 1 byte to 50 MB, that live 50 ms to a month or for ever. `make proof` runs all.

  tests/soak/transfers.py --list
  tests/soak/transfers.py --only 4-8,back-37 --keys 200000
  tests/soak/transfers.py --quick                 20,000 keys

What must hold for each: no history without an explanation; every key there once, on the member that the topology in
force gives it, equal to what was written (by DUMP's digest, by its entries where two servers order a set differently),
with the deadline it was written with and at most the time of its transfer more; RESTOREs at the members at most 1.02
times the keys whose owner changes. TIMEOUT and TRYAGAIN, which a member on a busy machine earns, are counted as `busy`:
they break no promise about values.
Exit status: 0 all of it held; 1 something did not, and the last lines say what; 2 bad usage.
The programs: RINGSHIFT_BIN, and RINGSHIFT_HISTORY for the one that checks.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import keyset as keys_of  # noqa: E402
from harness.cluster import CHECKER, RINGSHIFT, Cluster, run  # noqa: E402
from harness.process import Process, free_port, wait_until  # noqa: E402
from furniture import patiently  # noqa: E402
from keyset import Keyset, short  # noqa: E402
from onlookers import Lives, Reader, Toucher  # noqa: E402

RATE = {"move_keys_per_second": 50_000, "move_bytes_per_second": "400MiB", "move_latency_ms": 0}
RING = {"algorithm": "ring", "hash": "xxh3", "points": 256}
SLOTS = {"algorithm": "slots", "hash": "crc16", "hash_tag": "{}"}
MOST_MOVED = 1.02
TTL_SLACK_MS = int(keys_of.SMALL_PULL * 1000)
PATIENCE_MS = 30_000   # Of the proxies: DUMP of 50 MB on a busy machine is no failure.
STUCK = 900.0          # Seconds after which a resize has not ended.
SHOWN = 5              # Findings of a kind that are told.
NEAR = 0.12            # So far from its mark a rollback's mover is slowed down.


class Case:
    """before, after: (members, weights, placement). back_at: the share of its keys after which it is rolled back."""

    def __init__(self, name, before, after, back_at=None):
        self.name, self.before, self.after, self.back_at = name, before, after, back_at


def ring(members, weights=()):
    return members, weights, RING


KETAMA = (4, (), {"distribution": "ketama", "hash": "fnv1a_64"})
MODULO = (4, (), {"distribution": "modula", "hash": "crc32"})
CASES = [
    Case("4-5", ring(4), ring(5)),
    Case("5-4", ring(5), ring(4)),
    Case("4-8", ring(4), ring(8)),
    Case("8-4", ring(8), ring(4)),
    Case("weights", ring(4, (1, 1, 1, 1)), ring(4, (1, 2, 1, 4))),
    Case("ketama-ring", KETAMA, ring(4)),
    Case("crc32-modulo-ring", MODULO, ring(4)),
    Case("ring-slots", ring(4), (4, (), SLOTS)),
    Case("back-1", ring(4), ring(8), 0.01),
    Case("back-37", ring(4), ring(8), 0.37),
    Case("back-99", ring(4), ring(8), 0.99),
]


class Proof:
    """One case, from its first server to its verdict."""

    def __init__(self, case, options, directory):
        self.case, self.options, self.directory = case, options, directory
        self.keyset = Keyset(options.keys)
        self.violations = []
        self.report = {"case": case.name, "keys": options.keys}
        self.cluster = self.load = None
        self.onlookers = []

    def violated(self, text, examples=()):
        shown = list(examples)[:SHOWN]
        self.violations.append(f"{text}: {'; '.join(map(str, shown))}" if shown else text)

    def timed(self, name, what, *arguments):
        begin = time.monotonic()
        answer = what(*arguments)
        self.report[f"{name}_seconds"] = round(time.monotonic() - begin, 1)
        return answer

    def run(self):
        begin = time.monotonic()
        try:
            self.prepare()
            self.start_load()
            self.timed("resize", self.resize)
            self.end_load()
            self.timed("judge", self.judge)
        except Exception as error:  # A case that breaks has not shown that all is well.
            self.violated(f"the case itself: {type(error).__name__}: {error}")
            (self.directory / "broke.txt").write_text("".join(traceback.format_exception(error)))
        finally:
            for one in self.onlookers:
                one.stop()
            if self.load and self.load.alive():
                self.load.kill()
            if self.cluster:
                self.violations += self.cluster.stop()
        self.report |= {"seconds": round(time.monotonic() - begin, 1), "violations": self.violations}
        return self.report

    # Before the resize.

    def prepare(self):
        (before, weights, placement), (after, _, _) = self.case.before, self.case.after
        self.cluster = Cluster(self.directory, members=max(before, after), proxies=2)
        self.ids = [member.id for member in self.cluster.members]
        self.first = self.spec(*self.case.before)
        self.owners_before = self.owners("--spec", self.first)
        self.timed("load", self.keyset.load, self.cluster.members, self.owners_before)
        self.report["keys_at_first"] = self.keyset.note_digests(self.cluster.members)
        self.verify_what_was_written()
        if placement.get("distribution"):
            self.through_nutcracker()
        self.start_cluster()
        self.second = self.spec(*self.case.after)
        self.owners_after = self.owners("--spec", self.second)
        self.report["memory_mib"] = self.memory() >> 20

    def start_cluster(self):
        cluster = self.cluster
        cluster.start_registry()
        cluster.start_controller()
        cluster.apply(self.first)
        for _ in range(2):
            cluster.add_proxy("--request-timeout-ms", PATIENCE_MS)

    def alive_of_the_moving(self):
        """Keys whose owner changes, of those that have not run out yet."""
        now = time.time() * 1000
        return sum(a != b and not 0 < self.keyset.deadline_ms(i) <= now
                   for i, (a, b) in enumerate(zip(self.owners_before, self.owners_after)))

    def count_minimum(self):
        self.minimum = self.alive_of_the_moving()
        self.report |= {"minimum": self.minimum, "minimum_share": round(self.minimum / self.keyset.total, 4)}

    def spec(self, count, weights, placement):
        ids = self.ids[:count]
        if placement.get("distribution"):
            return self.imported(placement)
        return self.cluster.write_spec(members=ids, weights=dict(zip(ids, weights)), placement=placement, limits=RATE)

    def imported(self, placement):
        """As nutcracker's own file has it, read by `ringshift import`."""
        self.nutcracker_port = free_port()
        lines = ["cache:", f"  listen: 127.0.0.1:{self.nutcracker_port}", f"  hash: {placement['hash']}",
                 f"  distribution: {placement['distribution']}", "  redis: true", "  timeout: 5000", "  servers:"]
        lines += [f"   - {member.address}:1 {member.id}" for member in self.cluster.members]
        self.nutcracker_file = self.directory / "nutcracker.yml"
        self.nutcracker_file.write_text("\n".join(lines) + "\n")
        path = self.directory / "imported.yaml"
        run("import", self.nutcracker_file, "--output", path, check=0)
        text = path.read_text()
        assert "limits:" not in text
        path.write_text(text + f"limits: {json.dumps(RATE)}\n")
        return path

    def owners(self, *source):
        return self.keyset.owners(([str(RINGSHIFT), "route", *map(str, source)], self.ids))

    def verify_what_was_written(self):
        """The digests are of what was written: looked at for some keys of each type, and for all long ones."""
        step = max(1, self.keyset.count // 3000 | 1)
        clients = [member.connect() for member in self.cluster.members]
        chosen = [*range(0, self.keyset.count, step), *range(self.keyset.count, self.keyset.total)]
        chosen = [i for i in chosen if not 0 < self.keyset.ttl_ms(i) < 300_000 and
                  self.keyset.kind(i) not in ("hll", "bitmap", "geo", "number")]
        wrong = [text for i in chosen if (text := self.keyset.differs(clients[self.owners_before[i]], i))]
        for client in clients:
            client.connection_pool.disconnect()
        assert not wrong and chosen, wrong[:SHOWN]

    def through_nutcracker(self):
        """The real one finds each key where the imported placement put it."""
        import redis
        process = Process("nutcracker", ["nutcracker", "-c", self.nutcracker_file, "-s", free_port(), "-a", "127.0.0.1"],
                          self.directory)
        process.start()
        client = redis.Redis(port=self.nutcracker_port, socket_timeout=10)

        def answers():
            try:
                return client.get("ready") is None
            except redis.RedisError:
                return False
        try:
            wait_until(lambda: f"nutcracker answers\n{process.tail()}", answers)
            chosen = [i for i in range(0, self.keyset.count, 11) if self.keyset.kind(i) == "string" and
                      not self.keyset.ttl_ms(i)][:3000]
            for at in range(0, len(chosen), 200):
                pipeline = client.pipeline(transaction=False)
                for i in chosen[at:at + 200]:
                    pipeline.get(self.keyset.names[i])
                for i, read in zip(chosen[at:], pipeline.execute()):
                    assert read == self.keyset.value(i), f"nutcracker reads {self.keyset.names[i]} as {read!r:.60}"
            self.report["read_through_nutcracker"] = len(chosen)
        finally:
            client.connection_pool.disconnect()
            process.end()

    def memory(self):
        total = 0
        for member in self.cluster.members:
            total += member.client.info("memory")["used_memory_rss"]
            member.hang_up()
        return total

    # The load.

    def start_load(self):
        ports = [proxy.port for proxy in self.cluster.proxies]
        self.stop_file = self.directory / "stop"
        self.load = Process("check", [
            CHECKER, "check", *[f"--proxy=127.0.0.1:{port}" for port in ports], "--seconds", 100_000, "--stop-file",
            self.stop_file, "--clients", 12, "--keys", 24, "--rate", self.options.rate, "--max-value", 1 << 18,
            "--ttl-slack-ms", TTL_SLACK_MS, "--timeout-ms", 60_000, "--seed", self.options.seed, "--json"],
            self.directory)
        self.load.start()
        self.lives = Lives(ports, self.options.seed + 1, TTL_SLACK_MS)
        self.reader = Reader(ports, self.options.seed + 2, self.keyset)
        self.toucher = Toucher(ports, self.options.seed + 3, self.keyset)
        self.onlookers = [self.lives, self.reader, self.toucher]
        for one in self.onlookers:
            one.start()
        time.sleep(2)

    def end_load(self):
        time.sleep(1)
        self.reader.stop()
        self.toucher.stop()
        self.lives.outlast()
        self.stop_file.touch()
        self.load.popen.wait(300)
        output = self.load.output().strip()
        assert output, f"ringshift check said nothing: {self.load.tail(10)}"
        seen = json.loads(output)
        self.load_keys = seen["keys"]
        for one in seen["violations"][:SHOWN]:
            self.violated("\n".join([f"{one['kind']} on {one['key']}: {one['why']}", *one["picture"]]))
        for name in ("inconclusive", "errors", "keys_left"):
            if seen[name]:
                self.violated(f"ringshift check: {seen[name]} {name}", seen["error_examples"])
        for one in self.onlookers:
            name = type(one).__name__
            if one.wrong:
                self.violated(f"{name}", one.wrong)
            if one.errors:
                self.violated(f"{name}: errors", one.errors)
            self.report["busy"] = self.report.get("busy", 0) + one.busy
            if not one.done:
                self.violated(f"{name} has looked at nothing")
        self.report |= {"operations": seen["operations"], "unknown": seen["unknown"], "reads": self.reader.done,
                        "writes": self.toucher.done, "short_lives": self.lives.done,
                        "longest_life_over_ms": round(self.lives.longest_over_ms, 1)}

    # The resize.

    def resize(self):
        cluster, back_at = self.cluster, self.case.back_at
        restores = keys_of.restores(cluster.members)
        self.count_minimum()
        begin = time.monotonic()
        for member in cluster.members:
            member.hang_up()
        done = cluster.cli("resize", "start", "--spec", self.second, "--yes", "--big-keys", "move", "--steps",
                           "100" if back_at else "1,10,50,100", *(["--rate", self.slow()] if back_at == 0.01 else []),
                           timeout=180)
        assert done.returncode == 0, done.stderr
        status = self.roll_back() if back_at else self.follow()
        assert bool(status["rolled_back"]) == bool(back_at), status
        moved = keys_of.restores(cluster.members) - restores
        log = [json.loads(line) for line in cluster.cli("resize", "log", "--json", check=0).stdout.splitlines()]
        holds = [float(entry["text"].split("after a hold of ")[1].split(" ms")[0]) for entry in log
                 if "after a hold of " in entry["text"]]
        self.report |= {
            "restores": moved, "keys_moved": status["keys_moved"], "mib_moved": status["bytes_moved"] >> 20,
            "moving_seconds": round(time.monotonic() - begin, 1), "hold_ms": holds, "fences": status["fences"],
            "load": round(os.getloadavg()[0], 1)}

    def follow(self):
        return self.cluster.wait_resized(STUCK)

    def slow(self):
        return max(100, self.minimum // (150 if self.case.back_at == 0.01 else 40))

    def roll_back(self):
        """At the share of its keys that the case names; slowly on the last part of the way, and very slowly on the end of
        it, so that it is met: at 99 % what is left is gone between two looks otherwise. One in a hundred runs out before
        it is moved, so the share is of those that are alive then."""
        cluster, alive = self.cluster, self.minimum
        mark = self.case.back_at * alive
        slower = [] if self.case.back_at == 0.01 else [(NEAR, self.slow()), (NEAR / 6, max(50, self.slow() // 10))]
        end = time.monotonic() + STUCK
        while True:
            status = cluster.status()
            assert status["state"] in ("preparing", "running"), f"it ended before it was rolled back: {status}"
            assert time.monotonic() < end, status
            if slower and status["keys_moved"] > mark - slower[0][0] * self.minimum:
                cluster.cli("resize", "set-rate", slower.pop(0)[1], check=0)
                alive = self.alive_of_the_moving()
                mark = self.case.back_at * alive
            if status["keys_moved"] >= mark:
                break
            time.sleep(0.05)
        cluster.rollback()
        at = cluster.status()["keys_moved"] / max(1, alive)
        cluster.cli("resize", "set-rate", RATE["move_keys_per_second"])  # It may be over by now.
        self.report["rolled_back_at"] = round(at, 4)
        return self.follow()

    # The verdict.

    def judge(self):
        keyset, cluster = self.keyset, self.cluster
        right = self.owners_before if self.case.back_at else self.owners_after
        if self.owners("--registry", cluster.registry_url, "--cluster", cluster.name) != right:
            self.violated("the topology in force is not the one that was asked for")
        found = bytearray(keyset.total)
        misplaced, differing, others, drifts, deadlines = [], [], [], [], []
        begin_ms = time.time() * 1000
        for number, member in enumerate(cluster.members):
            seen = set()  # A SCAN may give a key twice.
            for name, digest, deadline in keys_of.look(member):
                if name in seen:
                    continue
                seen.add(name)
                i = keyset.number(name)
                if i is None:
                    others.append((member.id, name))
                    continue
                found[i] += 1
                if right[i] != number:
                    misplaced.append(f"{name.decode()} is on {member.id} and belongs on {self.ids[right[i]]}")
                if digest != keyset.digests[i] and keyset.digests[i]:
                    differing.append((i, member))
                deadlines += self.judge_deadline(i, deadline, begin_ms, drifts)
        end_ms = time.time() * 1000
        if misplaced:
            self.violated(f"{len(misplaced)} keys on a wrong member", misplaced)
        if deadlines:
            self.violated(f"{len(deadlines)} deadlines are wrong", deadlines)
        self.judge_presence(found, end_ms)
        self.judge_values(differing)
        if strangers := [(id, name) for id, name in others if name != b"rs:stamp"]:
            self.violated(f"{len(strangers)} keys are there that nobody left there", strangers)
        self.judge_moved()
        drifts.sort()
        if drifts:
            self.report["ttl_drift_ms"] = {"median": drifts[len(drifts) // 2], "p99": drifts[len(drifts) * 99 // 100],
                                           "max": drifts[-1], "keys": len(drifts)}
        self.report["keys_compared"] = sum(map(bool, found))
        self.through_proxies()

    def judge_deadline(self, i, deadline, now_ms, drifts):
        """What is wrong with it. The drift of a key that changes its owner is noted."""
        name, right = self.keyset.names[i].decode(), self.keyset.deadline_ms(i)
        if not right:
            return [f"{name} got an end, {deadline}"] if deadline != -1 else []
        pulls = (2 if self.case.back_at else 1) if self.owners_before[i] != self.owners_after[i] else 0
        pull = keys_of.BIG_PULL if self.keyset.size(i) > keys_of.BIG_KEY else keys_of.SMALL_PULL
        drift, most = deadline - right, pull * 1000 * pulls
        if pulls:
            drifts.append(drift)
        if deadline == -1 or not 0 <= drift <= most:
            return [f"{name} ends {drift} ms after what was written"]
        return [f"{name} is there {now_ms - right:.0f} ms after its end"] if right + most < now_ms else []

    def judge_presence(self, found, now_ms):
        lost = [i for i in range(self.keyset.total) if not found[i] and
                not 0 < self.keyset.deadline_ms(i) <= now_ms]
        if lost:
            self.violated(f"{len(lost)} keys are lost", (self.keyset.names[i].decode() for i in lost))
        if twice := [i for i in range(self.keyset.total) if found[i] > 1]:
            self.violated(f"{len(twice)} keys are there more than once", (self.keyset.names[i] for i in twice))

    def judge_values(self, differing):
        """Another DUMP: two servers may keep a set in another order. Then what it has decides."""
        client_of, wrong = {}, []
        for i, member in differing:
            client = client_of.setdefault(member.id, member.connect())
            if not client.exists(self.keyset.names[i]):
                continue  # It ended meanwhile.
            if text := self.keyset.differs(client, i):
                wrong.append(text)
        for client in client_of.values():
            client.connection_pool.disconnect()
        self.report["compared_by_entries"] = len(differing)
        if wrong:
            self.violated(f"{len(wrong)} values differ from what was written", wrong)

    def judge_moved(self):
        """Each key of the load that was there at the time, too, may have lain on a member that gave it up."""
        if self.case.back_at:
            return
        others = self.load_keys + self.lives.alive_most
        excess = self.report["restores"] / max(1, self.minimum + others)
        self.report["moved_by_minimum"] = round(self.report["restores"] / max(1, self.minimum), 4)
        if excess > MOST_MOVED:
            self.violated(f"{self.report['restores']} RESTOREs for {self.minimum} keys that change their owner and "
                          f"{others} of the load")

    def through_proxies(self):
        """Some strings of each size, and all long ones. The long ones one by one, and patiently: the machine is busy."""
        for number in range(2):
            client = self.cluster.client(number, socket_timeout=120)
            chosen = [i for i in range(number, self.keyset.count, 97)
                      if self.keyset.kind(i) == "string" and not 0 < self.keyset.ttl_ms(i) < 3_600_000][:3000]
            parts = [chosen[at:at + 100] for at in range(0, len(chosen), 100)]
            parts += [[i] for i in range(self.keyset.count, self.keyset.total)]
            for part in parts:
                names = [self.keyset.names[i] for i in part]
                for i, read in zip(part, patiently(lambda: client.mget(names))):  # pylint: disable=W0640
                    if read != self.keyset.value(i):
                        self.violated(f"{self.keyset.names[i].decode()} through proxy {number + 1}", [short(read)])
            client.connection_pool.disconnect()


def table(reports):
    head = (f"{'case':<18} {'keys':>8} {'minimum':>8} {'restores':>9} {'x min':>6} {'moving s':>8} {'check ops':>10} "
            f"{'reads':>8} {'writes':>7} {'busy':>5} {'hold ms':>14} {'drift ms p99/max':>17}  verdict")
    lines = [head]
    for r in reports:
        holds = r.get("hold_ms") or [0]
        drift = r.get("ttl_drift_ms", {"p99": 0, "max": 0})
        ratio = f"at {r['rolled_back_at']:.1%}" if "rolled_back_at" in r else f"{r.get('moved_by_minimum', 0):.3f}"
        lines.append(
            f"{r['case']:<18} {r.get('keys_compared', 0):>8} {r.get('minimum', 0):>8} {r.get('restores', 0):>9} "
            f"{ratio:>6} {r.get('moving_seconds', 0):>8} {r.get('operations', 0):>10} {r.get('reads', 0):>8} "
            f"{r.get('writes', 0):>7} {r.get('busy', 0):>5} {statistics.median(holds):>6.1f}/{max(holds):>7.1f} "
            f"{drift['p99']:>8}/{drift['max']:>8}  {'VIOLATED' if r['violations'] else 'held'}")
    return "\n".join(lines)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="A,B,...", help="these cases")
    parser.add_argument("--list", action="store_true", help="the cases, and nothing else")
    parser.add_argument("--keys", type=int, help="beside the long ones [1,000,000]")
    parser.add_argument("--quick", action="store_true", help="20,000 keys")
    parser.add_argument("--rate", type=int, default=800, help="operations a second of ringshift check [800]")
    parser.add_argument("--seed", type=int, default=1, help="of the load's keys and choices [1]")
    parser.add_argument("--json", metavar="FILE", help="the reports as JSON, too")
    parser.add_argument("--directory", type=Path, help="logs go there and stay; else a temporary directory, which "
                                                       "stays when something did not hold")
    options = parser.parse_args(arguments)
    options.keys = options.keys or (20_000 if options.quick else 1_000_000)
    if options.keys < 1000:
        parser.error("--keys: at least 1000")
    names = options.only.split(",") if options.only else [case.name for case in CASES]
    if unknown := [name for name in names if name not in [case.name for case in CASES]]:
        parser.error(f"--only: no case '{unknown[0]}'; --list shows them")
    options.cases = [case for case in CASES if case.name in names]
    return options


def main():
    options = parse(sys.argv[1:])
    if options.list:
        print("\n".join(case.name for case in CASES))
        return 0
    if options.directory:
        options.directory.mkdir(parents=True)
    root = options.directory or Path(tempfile.mkdtemp(prefix="ringshift-proof-"))
    print(f"proof: {options.keys} keys, {len(options.cases)} cases, logs in {root}", flush=True)
    reports = []
    for case in options.cases:
        directory = root / case.name
        directory.mkdir()
        reports.append(Proof(case, options, directory).run())
        print(table(reports[-1:]).split("\n", 1 if len(reports) > 1 else 0)[-1], flush=True)
        for violation in reports[-1]["violations"]:
            print(f"VIOLATION in {case.name}: {violation}", flush=True)
        if options.json:
            Path(options.json).parent.mkdir(parents=True, exist_ok=True)
            Path(options.json).write_text(json.dumps(reports, indent=1) + "\n")
    broken = [r["case"] for r in reports if r["violations"]]
    print(f"proof: {len(reports) - len(broken)} of {len(reports)} cases held"
          + (f"; not: {', '.join(broken)}; the logs are in {root}" if broken else ""), flush=True)
    if not broken and not options.directory:
        shutil.rmtree(root)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
