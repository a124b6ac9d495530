#!/usr/bin/env python3
"""A long run of everything at once: real servers, a registry, two controllers, three proxies, the load of `ringshift
check`, resizes of every kind, and faults at random. `make soak` runs it for half an hour.

  tests/soak/run.py --seconds 600 --seed 7          what goes wrong when follows from the seed, up to timing
  tests/soak/run.py --kills 50                      kill -9 of proxies, controllers and registry, 50 times each, while
                                                    resizes run; ends when that is done
Exit status: 0 all promises were kept; 1 one was not, and the last lines say which; 2 bad usage.
The programs: RINGSHIFT_BIN, and RINGSHIFT_HISTORY for the one that checks.
"""
import argparse
import json
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from changes import Operator, next_change  # noqa: E402
from faults import Injector, catalogue  # noqa: E402
from furniture import Furniture  # noqa: E402
from world import CHECKER, Process, World  # noqa: E402

STUCK = 150       # Seconds after which a resize without faults that has not ended is stuck.
KILLS_KEYS_PER_SECOND = 250  # Slow, so that most kills hit a resize that moves keys.
STORM_LEAST = 4   # Seconds of faults that a resize gets.
REFUSED_MOST = 30  # In a row: then no resize is possible any more.


class Violation(Exception):
    pass


class Soak:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.random = random.Random(options.seed)
        self.begin = time.monotonic()
        self.events = open(directory / "events.log", "w", buffering=1)
        self.resizes, self.outcomes, self.requests = Counter(), Counter(), Counter()
        self.holds, self.longest_resize = [], 0.0
        self.keys_moved = self.refused_in_a_row = 0
        self.violations, self.judgement = [], None
        self.world = self.injector = self.load = None
        self.next_line = 60.0
        self.last_id = ""  # Of the resize before.
        self.moment = "starting"  # What the resize was at, when last seen.

    def log(self, text):
        self.events.write(f"{time.monotonic() - self.begin:8.2f} {text}\n")

    def elapsed(self):
        return time.monotonic() - self.begin

    # The run.

    def run(self):
        try:
            self.set_up()
            while not self.over():
                self.one_resize()
                self.look_around()
        except Violation as violation:
            self.violations.append(str(violation))
            self.log(f"VIOLATION {violation}")
        except Exception as error:  # A soak that breaks has not shown that all is well.
            self.violations.append(f"the soak itself: {type(error).__name__}: {error}")
            self.log("".join(traceback.format_exception(error)))
        finally:
            self.take_down()

    def over(self):
        if self.options.kills:
            return self.injector.satisfied()
        return self.elapsed() >= self.options.seconds

    def set_up(self):
        options = self.options
        self.world = World(self.directory, options.proxies, KILLS_KEYS_PER_SECOND if options.kills else 1500)
        self.world.start()
        self.furniture = Furniture(self.world, self.random, options.furniture, max(5, options.furniture // 100),
                                   [300_000, 1_500_000, 3_000_000] if options.max_value >= 1 << 20 else [100_000])
        self.furniture.put()
        kills, everything = catalogue(self.world)
        quota = {fault.kind: options.kills for fault in kills} if options.kills else None
        self.injector = Injector(kills if options.kills else everything, random.Random(options.seed + 1), self.log,
                                 lambda: self.moment, quota=quota)
        self.injector.start()
        self.stop_file = self.directory / "stop"
        self.load = Process("check", [
            CHECKER, "check", *[f"--proxy=127.0.0.1:{p.port}" for p in self.world.proxies], "--seconds", 1_000_000,
            "--stop-file", self.stop_file, "--clients", options.clients, "--keys", options.keys, "--rate",
            options.rate, "--max-value", options.max_value, "--ttl-slack-ms", 4500, "--timeout-ms", 20000,
            "--seed", options.seed, "--every", 1, "--json"], self.directory)
        self.load.start()
        self.begin = time.monotonic()
        self.log(f"seed {options.seed}")

    def one_resize(self):
        change = next_change(self.world, self.random)
        path = self.world.write(change.servers, change.weights, change.placement)
        steps = self.random.choice([[], ["--steps", "1,10,50,100"], ["--steps", "30,100"], ["--steps", "100"]])
        steps += self.random.choice([[], [], ["--verify", "sample"], ["--verify", "all"]])
        if self.random.random() < 0.4:
            self.injector.open()  # Faults before and during PREP, too.
        self.log(f"resize: {change.kind} by {path.name}: {', '.join(s.id for s in change.servers)}, "
                 f"{change.placement['algorithm']}")
        self.moment = "starting"
        started = self.world.cli("resize", "start", "--spec", path, *steps, *self.world.start_options, timeout=120)
        if started.returncode != 0:
            # Its answer may be late and the resize run all the same: whatever runs is followed.
            self.log(f"start: {started.stderr.strip()}")
            if started.returncode == 2:
                raise Violation(f"bad usage: {started.stderr.strip()}")
        self.injector.open()
        operator = Operator(self.world, self.random, self.log)
        storm = self.random.uniform(min(STORM_LEAST, self.options.storm), self.options.storm)
        ended = self.follow(change, operator, time.monotonic() + storm)
        self.account(change, operator, ended, path)

    def follow(self, change, operator, faults_until):
        """The status of the resize once it has ended, and all faults are healed."""
        begin, calm_since, last = time.monotonic(), None, None
        while True:
            self.minute()
            now = time.monotonic()
            if calm_since is None and now >= faults_until:
                self.heal()
                operator.all_is_well(now)
                calm_since = time.monotonic()
            status = self.world.status_or_none()
            if status and status["state"] in ("idle", "finished", "failed"):
                self.heal()
                settled = self.world.settled_status()
                if settled and settled["state"] == status["state"]:
                    self.requests.update(operator.done)
                    self.longest_resize = max(self.longest_resize, time.monotonic() - begin)
                    return settled
            elif status:
                self.moment = status["phase"] or status["state"]
                if (line := (status["state"], status["step"], status["phase"], status["last_error"])) != last:
                    self.log(f"status: {line} {status['keys_moved']}/{status['keys_to_move']}")
                    last = line
                operator.look(status, now)
            if calm_since is not None and time.monotonic() - calm_since > STUCK:
                raise Violation(f"stuck: {change.kind}, {STUCK} s after the last fault: {status}")
            time.sleep(0.15)

    def account(self, change, operator, status, path):
        state = "rolled back" if status["rolled_back"] else status["state"]
        if status["id"] == self.last_id != "":
            state = "refused"  # The status still tells of the one before.
        self.last_id = status["id"]
        if self.in_force(change.servers, change.weights, change.placement):
            self.world.serving, self.world.weights = change.servers, change.weights
            self.world.placement = change.placement
            state = "finished"  # A controller that came later says "idle" only.
        elif not self.in_force(self.world.serving, self.world.weights, self.world.placement):
            raise Violation(f"after {path.name} ({state}) neither the old nor the new topology is in force")
        elif state == "idle" and status["keys_moved"] > 0:
            state = "rolled back"
        if state == "rolled back" and "rollback" not in operator.asked:
            raise Violation(f"after {path.name} all is as before, and nobody asked for that: {status}")
        self.log(f"ended: {state}, {status['keys_moved']} keys, hold {status['hold_ms_max']:.1f} ms, "
                 f"fences {status['fences']}, {status['last_error']}")
        self.outcomes[state] += 1
        if state in ("finished", "rolled back"):
            self.resizes[change.kind] += 1
            self.holds.append(status["hold_ms_max"])
            self.keys_moved += status["keys_moved"]
            self.refused_in_a_row = 0
        else:
            self.refused_in_a_row += 1
            if self.refused_in_a_row > REFUSED_MOST:
                raise Violation(f"{REFUSED_MOST} resizes in a row did not come about: {status}")

    def in_force(self, servers, weights, placement):
        document = json.loads(self.world.cli("topology", "get", "--json", check=0).stdout)
        spec = document.get("spec") or document["topology"]["spec"]
        return ({m["id"]: m.get("weight", 1.0) for m in spec["members"]} ==
                {server.id: weights.get(server.id, 1.0) for server in servers} and
                all(spec["placement"].get(name) == value for name, value in placement.items()))

    def heal(self):
        if not self.injector.heal():
            raise Violation(f"a process did not come back: {self.injector.problems}")

    def look_around(self):
        """Between two resizes, when all is well."""
        if ended := self.world.ended_by_themselves():
            raise Violation("; ".join(ended))
        if not self.load.alive():
            raise Violation(f"ringshift check ended: {self.load.tail(10)}")
        if misplaced := self.world.misplaced():
            raise Violation(f"{len(misplaced)} keys on a wrong member (key, holder, owner): {misplaced[:5]}")
        proxy = self.random.randrange(len(self.world.proxies))
        if wrong := self.furniture.wrong(proxy):
            raise Violation(f"through {self.world.proxies[proxy].name}: {wrong}")
        if self.progress()[1] > 0:
            raise Violation("ringshift check found keys at fault")

    def progress(self):
        """(operations, keys at fault) by the load's last line."""
        found = re.findall(r"s: ([\d,]+) operations, (\d+) keys at fault", self.load.errors()[-4000:])
        return (int(found[-1][0].replace(",", "")), int(found[-1][1])) if found else (0, 0)

    def minute(self):
        if self.elapsed() < self.next_line:
            return
        self.next_line += 60
        operations, faults = self.progress()
        print(f"{self.elapsed():6.0f} s  {operations} operations  {sum(self.resizes.values())} resizes  "
              f"{sum(self.injector.counts.values())} faults  {faults} keys at fault", flush=True)

    # The end.

    def take_down(self):
        try:
            if self.injector:
                self.injector.heal()
                self.violations += self.injector.problems
            if self.load:
                self.end_load()
            if self.world and not self.violations:
                self.last_look()
        except Exception as error:  # Whatever it is, the summary tells.
            self.violations.append(f"at the end: {type(error).__name__}: {error}")
        finally:
            if self.world:
                self.violations += self.world.stop()

    def end_load(self):
        self.stop_file.touch()
        self.load.popen.wait(120)
        output = self.load.output().strip()
        if not output:
            raise Violation(f"ringshift check said nothing: {self.load.tail(10)}")
        self.judgement = json.loads(output)
        for violation in self.judgement["violations"][:5]:
            self.violations.append("\n".join([f"{violation['kind']} on {violation['key']}: {violation['why']}",
                                              *violation["picture"]]))
        if self.judgement["keys_left"]:
            self.violations.append(f"{self.judgement['keys_left']} keys of the load could not be removed")

    def last_look(self):
        if misplaced := self.world.misplaced():
            self.violations.append(f"{len(misplaced)} keys on a wrong member: {misplaced[:5]}")
        for number in range(len(self.world.proxies)):
            self.violations += self.furniture.wrong(number)
        for server in self.world.spares():
            if left := server.keys() - {b"rs:stamp"}:
                self.violations.append(f"{server.id} left and keeps {sorted(left)[:5]}")
        if left := [key for key in self.world.client().scan_iter(match="ringshift-check:*", count=5000)]:
            self.violations.append(f"{len(left)} keys of the load are left: {left[:5]}")

    def summary(self):
        judged = self.judgement or {}
        return {
            "seed": self.options.seed, "seconds": round(self.elapsed(), 1),
            "operations": judged.get("operations", 0), "by_type": judged.get("by_kind", {}),
            "unknown": judged.get("unknown", 0), "not_executed": judged.get("not_executed", 0),
            "reconnects": judged.get("reconnects", 0), "errors": judged.get("errors", 0),
            "error_examples": judged.get("error_examples", []), "inconclusive": judged.get("inconclusive", 0),
            "faults": dict(self.injector.counts) if self.injector else {},
            "faults_during": dict(self.injector.moments) if self.injector else {}, "resizes": dict(self.resizes),
            "outcomes": dict(self.outcomes), "requests": dict(self.requests), "keys_moved": self.keys_moved,
            "longest_resize_s": round(self.longest_resize, 1),
            "hold_ms": {"longest": round(max(self.holds, default=0), 1),
                        "median_of_longest": round(statistics.median(self.holds or [0]), 1)},
            "violations": self.violations,
        }


def text_of(summary):
    def counts(name):
        return ", ".join(f"{kind} {n}" for kind, n in sorted(summary[name].items())) or "none"

    holds = summary["hold_ms"]
    lines = [
        f"soak: {summary['seconds']:.0f} s, seed {summary['seed']}: {len(summary['violations'])} violations in "
        f"{summary['operations']} operations ({summary['unknown']} of unknown outcome, {summary['not_executed']} not "
        f"executed, {summary['reconnects']} reconnects, {summary['errors']} errors, {summary['inconclusive']} "
        "inconclusive)",
        f"  faults: {sum(summary['faults'].values())}: {counts('faults')}; the resize was last seen at: "
        f"{counts('faults_during')}",
        f"  resizes: {sum(summary['resizes'].values())}: {counts('resizes')}; {counts('outcomes')}; "
        f"{counts('requests')}; {summary['keys_moved']} keys moved",
        f"  longest hold {holds['longest']} ms (median of the resizes' longest {holds['median_of_longest']} ms), "
        f"longest resize {summary['longest_resize_s']} s",
    ]
    return "\n".join(lines + [f"VIOLATION: {violation}" for violation in summary["violations"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 32))
    parser.add_argument("--kills", type=int, default=0, metavar="N",
                        help="kill each of the three kinds N times, no more")
    parser.add_argument("--proxies", type=int, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--keys", type=int, default=12, help="of each type at a time")
    parser.add_argument("--rate", type=int, default=1500, help="operations a second")
    parser.add_argument("--max-value", type=int, default=3 << 20, help="bytes")
    parser.add_argument("--furniture", type=int, default=4000, help="strings that lie there and must stay")
    parser.add_argument("--storm", type=float, default=25, help="seconds of faults in one resize, at most")
    parser.add_argument("--json", metavar="FILE", help="the summary as JSON, too")
    parser.add_argument("--directory", type=Path, help="logs go there and stay; else a temporary directory, which "
                                                       "stays when a promise was broken")
    options = parser.parse_args()
    if options.directory:
        options.directory.mkdir(parents=True)
    directory = options.directory or Path(tempfile.mkdtemp(prefix="ringshift-soak-"))
    print(f"soak: seed {options.seed}, logs in {directory}", flush=True)
    soak = Soak(options, directory)
    soak.run()
    summary = soak.summary()
    print(text_of(summary), flush=True)
    if options.json:
        Path(options.json).parent.mkdir(parents=True, exist_ok=True)
        Path(options.json).write_text(json.dumps(summary, indent=1) + "\n")
    if summary["violations"]:
        print(f"soak: the logs are in {directory}", flush=True)
        return 1
    if not options.directory:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
