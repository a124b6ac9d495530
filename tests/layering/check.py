#!/usr/bin/env python3
"""Keeps the folders of src/ to the table in layers.txt. Only Python's own library is used.

    check.py [ROOT]       checks the tree; prints each breach as FILE:LINE: RULE; exit 1 if there is any
    check.py --self-test  breaks every rule once in a scratch tree, and fails unless each is caught
"""
import re
import sys
import tempfile
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Slow to compile, so a few .cpp files include them and no header does.
HEAVY = ("nlohmann/", "CLI/", "yaml-cpp/", "spdlog/", "prometheus/")
LIBEVENT = re.compile(r"^(event2/|event\.h$|evhttp\.h$|evdns\.h$)")
LIBEVENT_FOLDERS = {"http"}
HEADERS = {".h", ".hpp", ".hh"}
SOURCES = HEADERS | {".cpp", ".cc", ".c"}


def read_table(path):
    table = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, arrow, rest = (part.strip() for part in line.partition("->"))
        if not arrow or not name:
            sys.exit(f"{path}:{number}: not 'folder -> folder, folder'")
        table[name] = set() if rest == "nothing" else {part.strip() for part in rest.split(",")}
    return table


def read_cmake(path):
    """The folders that ringshift_folder() declares, each with those of its arguments that are folders too."""
    calls = re.findall(r"^\s*ringshift_folder\(([^)]*)\)", path.read_text(), re.MULTILINE)
    words = [call.split() for call in calls]
    names = {word[0] for word in words}
    return {word[0]: {dep for dep in word[1:] if dep in names} for word in words}


def closure(table, name, seen=None):
    seen = set() if seen is None else seen
    for dep in table.get(name, ()):
        if dep not in seen:
            seen.add(dep)
            closure(table, dep, seen)
    return seen


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def files(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES) if folder.is_dir() else []


def check_tables(root, table):
    cmake = read_cmake(root / "cmake/Folders.cmake")
    where = "tests/layering/layers.txt"
    for name in sorted(table.keys() | cmake.keys()):
        if name not in cmake:
            yield f"{where}: '{name}' is not in cmake/Folders.cmake: remove it, or declare it there"
        elif name not in table:
            yield f"{where}: '{name}' is missing: cmake/Folders.cmake has it"
        elif table[name] != cmake[name]:
            yield (f"{where}: '{name}' may use {sorted(table[name])} here and {sorted(cmake[name])} in "
                   "cmake/Folders.cmake: change both together")
    for name, deps in table.items():
        for dep in sorted(deps - table.keys()):
            yield f"{where}: '{name}' names '{dep}', which is no folder of the table"
    for name in sorted(table):
        if name in closure(table, name):
            yield f"{where}: '{name}' may include itself by a circle"


def check_source(root, table, path):
    relative = path.relative_to(root)
    parts = relative.parts
    folder = parts[1] if parts[0] == "src" and len(parts) > 2 else None
    if folder is not None and folder not in table:
        yield f"{relative}:1: the folder '{folder}' is not in tests/layering/layers.txt: add it with what it may include"
        return
    for number, quoted, target in includes(path):
        place = f"{relative}:{number}"
        first = target.split("/")[0]
        if path.suffix in HEADERS and target.startswith(HEAVY):
            yield f"{place}: a header includes {target}: only .cpp files may"
        if LIBEVENT.match(target) and folder not in LIBEVENT_FOLDERS:
            yield f"{place}: {target} is libevent's: only http may name it"
        if parts[0] == "include":
            if quoted and first != "ringshift":
                yield f"{place}: a public header includes {target}: its users have only include/ringshift"
        elif folder is not None and first in table and first != folder and first not in closure(table, folder):
            allowed = ", ".join(sorted(closure(table, folder))) or "nothing"
            yield f"{place}: '{folder}' may not include '{first}' ({target}): it may include {allowed}"


def check(root):
    table = read_table(root / "tests/layering/layers.txt")
    breaches = list(check_tables(root, table))
    for path in files(root / "src") + files(root / "include"):
        breaches += check_source(root, table, path)
    return breaches


# A file, its content and what the check must say of it; the scratch tree is sound without these.
BROKEN = [
    ("src/low/a.cpp", '#include "high/b.h"\n', "src/low/a.cpp:1: 'low' may not include 'high'"),
    ("src/low/a.cpp", '\n  #  include "side/b.h"\n', "src/low/a.cpp:2: 'low' may not include 'side'"),
    ("src/stray/a.cpp", "", "src/stray/a.cpp:1: the folder 'stray' is not in"),
    ("src/high/a.cpp", "#include <event2/event.h>\n", "src/high/a.cpp:1: event2/event.h is libevent's"),
    ("src/high/a.h", "#include <nlohmann/json.hpp>\n", "src/high/a.h:1: a header includes nlohmann/json.hpp"),
    ("include/ringshift/a.h", '#include "low/b.h"\n', "include/ringshift/a.h:1: a public header includes low/b.h"),
    ("include/ringshift/a.h", "#include <yaml-cpp/yaml.h>\n", "a header includes yaml-cpp/yaml.h"),
    ("cmake/Folders.cmake", "ringshift_folder(low)\n", "'high' is not in cmake/Folders.cmake"),
    ("tests/layering/layers.txt", "low -> high\nhigh -> low\nside -> low\nhttp -> low\n", "by a circle"),
]
SOUND = {
    "cmake/Folders.cmake": "ringshift_folder(low Fmt::fmt)\nringshift_folder(side low)\n"
                           "ringshift_folder(http low)\nringshift_folder(high side http)\n",
    "tests/layering/layers.txt": "low -> nothing\nside -> low\nhttp -> low\nhigh -> side, http\n",
    "src/high/ok.cpp": '#include "low/b.h"\n#include <nlohmann/json.hpp>\n#include "ringshift/x.h"\n',
    "src/http/ok.h": "#include <event2/event.h>\n",
    "src/main.cpp": '#include "high/b.h"\n',
}


def self_test():
    failures = []
    for name, content, expected in [("src/low/ok.cpp", "#include <string>\n", None)] + BROKEN:
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            for file, text in {**SOUND, name: content}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text)
            found = check(root)
            if expected is None and found:
                failures.append(f"a sound tree was refused: {found}")
            if expected is not None and not any(expected in breach for breach in found):
                failures.append(f"not caught: {expected!r} (got {found})")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        problems, good = self_test(), f"all {len(BROKEN)} breaches were caught"
    else:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
        problems, good = check(root), "every include keeps to tests/layering/layers.txt"
    print("\n".join(problems) if problems else good)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
