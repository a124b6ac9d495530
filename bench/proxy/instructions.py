#!/usr/bin/python3
"""Instructions per request of `ringshift proxy` and of Debian's nutcracker, as valgrind's callgrind counts them.

The same load runs in two lengths, each on a process of its own; the difference takes start, connecting and end out.
Nothing else on the machine changes an instruction, so the figures repeat within about two percent. The kernel's part is not
counted.
"""
import argparse
import json
import pathlib
import re
import signal
import sys
import tempfile

from errors import BenchError
from farm import ROOT, Farm, find_programs
from load import redis_benchmark
from rows import NUTCRACKER, OURS, ROWS
from run import positive, say, stop, write_file

CLIENTS = 50
RUN_SECONDS_MAX = 120
# The rows of rows.py, how many requests the short run has, and the target (DESIGN, section 8).
COUNTED = {"get-p1": (4000, 1500), "get-p16": (8000, 800), "get-p64": (16000, None), "set-p1": (4000, None),
           "set-p16": (8000, None), "mget10-p1": (2000, None), "mget100-p1": (500, None), "get4k-p16": (8000, None)}
LONGER = 5  # Times the short run.


def count(farm, kind, row, requests):
    out = farm.folder / f"callgrind.{kind}.{requests}"
    server = farm.under(("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"), kind)
    try:
        redis_benchmark(server, row.command, CLIENTS, row.pipeline, requests, row.keys[1], RUN_SECONDS_MAX)
    finally:
        farm.end(server)
    total = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.M)
    if total is None:
        raise BenchError(f"callgrind counted nothing:\n{server.log_end()}")
    return int(total.group(1))


def measure(farm, row, with_nutcracker):
    requests, target = COUNTED[row.name]
    result = {"name": row.name, "what": row.what, "target": target}
    for kind in (OURS, NUTCRACKER) if with_nutcracker else (OURS,):
        farm.need_keys(kind, row.keys)
        short, long = (count(farm, kind, row, requests * times) for times in (1, LONGER))
        result[kind] = round((long - short) / (requests * (LONGER - 1)))
    result["met"] = None if target is None else result[OURS] <= target
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example: make bench-instructions ARGS='--only get-p1,get-p16 --ours'")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="of " + ", ".join(COUNTED))
    parser.add_argument("--ours", action="store_true", help="without nutcracker")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--scale", type=positive(float), default=1.0, metavar="X", help="lengths of the runs, times X")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/ringshift", metavar="FILE",
                        help="another build of ringshift [build/release/bin/ringshift]")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(COUNTED)
    unknown = [name for name in names if name not in COUNTED]
    if unknown:
        raise BenchError(f"no row is named {', '.join(unknown)}; there are: {', '.join(COUNTED)}")
    find_programs("redis-server", "redis-benchmark", "nutcracker", "valgrind")
    if not args.binary.exists():
        raise BenchError(f"{args.binary} is not there; `make bench-instructions` builds it")
    for signum in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background job begins with it ignored.
        signal.signal(signum, stop)
    results, interrupted = [], False
    print(f"{'row':<12}{'ringshift':>12}{'nutcracker':>12}{'ratio':>8}  target")
    with tempfile.TemporaryDirectory(prefix="ringshift-bench-") as folder:
        farm = Farm(folder, args.binary)
        try:
            for row in (row for row in ROWS if row.name in names):
                say(f"{row.name}: {row.what}")
                results.append(measure(farm, row, not args.ours))
                print(text(results[-1]), flush=True)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            farm.end_all()
    print("instructions of the process for each request, the kernel's not counted; 50 clients")
    if args.json:
        write_file(args.json, json.dumps({"format": 1, "interrupted": interrupted, "rows": results}, indent=1) + "\n")
    return 130 if interrupted else 0


def text(result):
    theirs = result.get(NUTCRACKER)
    line = f"{result['name']:<12}{result[OURS]:>12,}" + (f"{theirs:>12,}{result[OURS] / theirs:>8.3f}" if theirs else
                                                        f"{'':>20}")
    if result["target"]:
        line += f"  <= {result['target']:,} {'met' if result['met'] else 'NOT MET'}"
    return line


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench: {error}")
