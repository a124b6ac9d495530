#!/usr/bin/python3
"""Measures `ringshift proxy` beside Debian's nutcracker and beside Redis without a proxy, and prints one table."""
import argparse
import json
import pathlib
import signal
import sys
import tempfile
import time

import picture
import report
from errors import BenchError, OutOfTime
from farm import ROOT, Farm, find_programs
from measure import Clock, measure, planned_seconds
from rows import ROWS, choose

EXAMPLES = """\
examples:
  bench/proxy/run.py                                    everything, 12 minutes at most
  bench/proxy/run.py --quick                            most rows with little precision, 90 seconds at most
  bench/proxy/run.py --only get,mget100-p1 --pairs 15   the rows that begin so, more exactly
  bench/proxy/run.py --json out.json --picture out.svg
  make bench-proxy ARGS='--only idle'                   builds the program first

Ctrl-C ends what was started, and prints and writes what was measured so far. bench/README.md says how to read it."""
START_SECONDS = 4  # What it takes to start and fill the servers.
QUICK_IDLE_CLIENTS = 1000
LIMIT, QUICK_LIMIT = 700, 85  # Seconds; the last run may end a little later.


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows, 3 rounds of 0.3 s, 1000 idle clients")
    parser.add_argument("--only", action="append", metavar="NAME[,NAME]", help="rows, or beginnings of their names")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    parser.add_argument("--json", metavar="FILE", help="write every run of every row; `-`: to standard output, no table")
    parser.add_argument("--picture", metavar="FILE.svg", help="write bars of the ratios")
    parser.add_argument("--pairs", type=positive(int), metavar="N", help="rounds of a row [2 to 9, as --list says]")
    parser.add_argument("--seconds", type=positive(float), metavar="S", help="length of one run [1; quick: 0.3]")
    parser.add_argument("--limit", type=positive(float), metavar="S", help="end after so long [700; quick: 85]")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/ringshift", metavar="FILE",
                        help="another build of ringshift [build/release/bin/ringshift]")
    args = parser.parse_args()
    args.seconds = args.seconds or (0.3 if args.quick else 1.0)
    args.limit = args.limit or (QUICK_LIMIT if args.quick else LIMIT)
    return args


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise ValueError
        return value
    parse.__name__ = f"positive {kind.__name__}"
    return parse


class Bench:
    def __init__(self, args):
        self.args = args
        self.rows = choose(args.only, args.quick)
        self.idle_seconds = min(5.0, args.seconds * 5)
        self.results, self.left_out = [], []
        self.table = None if args.json == "-" else report.Table()
        self.interrupted = False

    def pairs(self, row):
        return self.args.pairs or (min(row.pairs, 1 if row.kind == "idle" else 3) if self.args.quick else row.pairs)

    def planned(self, row):
        return planned_seconds(row, self.pairs(row), self.args.seconds, self.idle_seconds, self.clients(row))

    def clients(self, row):
        return QUICK_IDLE_CLIENTS if self.args.quick and row.kind == "idle" else row.clients

    def run(self, farm):
        clock, start = Clock(self.args.limit), time.monotonic()
        plan = sum(self.planned(row) for row in self.rows) + START_SECONDS
        say(f"{len(self.rows)} rows, about {plan:.0f} s, {self.args.limit:.0f} s at most")
        for i, row in enumerate(self.rows):
            rest = sum(self.planned(other) for other in self.rows[i:])
            say(f"{i + 1} of {len(self.rows)}: {row.name}; {time.monotonic() - start:.0f} s gone, about "
                f"{min(rest, max(clock.left(), 0)):.0f} s left")
            # A row may use the time that those before it saved, or has to do with less.
            clock.row_end = time.monotonic() + clock.left() * self.planned(row) / rest
            self.row(row, farm, clock)

    def row(self, row, farm, clock):
        try:
            if clock.left() <= 0:
                raise OutOfTime("no time was left")
            self.add(measure(row, farm, clock, self.pairs(row), self.args.seconds, self.idle_seconds,
                             self.clients(row)))
        except KeyboardInterrupt as stop:
            self.add(getattr(stop, "measured", None))
            raise
        except (BenchError, OSError) as error:
            self.add(getattr(error, "measured", None))
            self.left_out.append((row.name, str(error)))
            say(f"{row.name}: {error}")

    def add(self, measured):
        result = measured.result() if measured else None
        if result is None:
            return
        self.results.append(result)
        if self.table:
            self.table.add(result)

    def write(self, machine, seconds):
        document = {"format": 1, "machine": machine, "seconds": round(seconds, 1), "interrupted": self.interrupted,
                    "rows": self.results, "left_out": [{"name": name, "why": why} for name, why in self.left_out]}
        if self.args.json == "-":
            json.dump(document, sys.stdout, indent=1)
            print()
        elif self.args.json:
            write_file(self.args.json, json.dumps(document, indent=1) + "\n")
        if self.args.picture:
            write_file(self.args.picture, picture.svg(self.results, machine))


def write_file(name, text):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    say(f"wrote {path}")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def stop(_signal, _frame):
    raise KeyboardInterrupt


def main():
    args = arguments()
    bench = Bench(args)
    if args.list:
        for row in ROWS:
            print(f"{row.name:<18}{row.pairs} rounds  {'' if row.quick else 'not in --quick; '}{row.what}")
        return 0
    find_programs("redis-server", "redis-benchmark", "nutcracker", "openssl")
    if not args.binary.exists():
        raise BenchError(f"{args.binary} is not there; `make bench-proxy` builds it")
    for signum in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background job begins with it ignored.
        signal.signal(signum, stop)
    machine, start = report.machine(args.binary), time.monotonic()
    if bench.table:
        print(f"{machine['started']}  {machine['cpus']} x {machine['cpu']}, load average "
              f"{machine['load_average']:.2f}\n{machine['ringshift']}; {machine['nutcracker']}; {machine['redis']}\n")
    with tempfile.TemporaryDirectory(prefix="ringshift-bench-") as folder:
        farm = Farm(folder, args.binary)
        try:
            bench.run(farm)
        except KeyboardInterrupt:
            bench.interrupted = True
            say("interrupted; what was measured so far:")
        finally:
            farm.end_all()
    if bench.table:
        bench.table.end(bench.results, bench.left_out)
    bench.write(machine, time.monotonic() - start)
    return 130 if bench.interrupted else 1 if bench.left_out else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench: {error}")
