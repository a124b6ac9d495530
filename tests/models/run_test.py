"""models/run must say so when a sound model fails, a broken one passes, or a search is cut short."""
import importlib.machinery
import importlib.util
import pathlib
import sys

loader = importlib.machinery.SourceFileLoader("run", sys.argv[1])
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)
SMALL = {"ROUTERS": 1, "ROLLBACK": 0, "ORPHANS": 0}


def judged(kind, defines=(), depth=100000, memory=500):
    row = run.Row(kind, "row", SMALL, defines)
    folder = pathlib.Path(sys.argv[2])
    run.build(row, folder, memory, ["-O0"])
    run.search(row, folder, depth, 60)
    return row


def check(row, good, got):
    assert row.good == good and got in row.got, f"{row.kind} {row.defines}: good {row.good}, got '{row.got}'"


check(judged("sound"), True, "no error")
check(judged("sound", depth=50), False, "not searched completely")
check(judged("sound", memory=1), False, "not searched completely")
check(judged("sound", ["NO_HOLD"]), False, "caught")
check(judged("broken", ["NO_HOLD"]), True, "caught")
check(judged("broken"), False, "no error")
