#!/usr/bin/env python3
"""check.py ROOT: packaging/ against promtool, docs/metrics.md and docs/operations.md. Prints what is wrong; exit 1 if
anything is."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

import metrics_table

NAME = re.compile(r"\b(?:ringshift|process)_\w+")
RECORDED = re.compile(r"\bringshift:[\w:]+")


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"promtool {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}"


def check_query(where, query, known, recorded):
    used = set(NAME.findall(re.sub(r'"[^"]*"', '""', query)))
    for name in sorted(used - known):
        yield f"{where}: docs/metrics.md knows no {name}"
    for name in sorted(set(RECORDED.findall(query)) - recorded):
        yield f"{where}: no rule records {name}"
    if not used and not RECORDED.search(query) and "up{" not in query:
        yield f"{where}: uses no metric of ours: {query}"


def check_rules(root, known):
    rules = [rule for group in yaml.safe_load((root / "packaging/prometheus/rules.yml").read_text())["groups"]
             for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    tests = (root / "packaging/prometheus/rules_test.yml").read_text()
    headings = set(re.findall(r"^### (\w+)$", (root / "docs/operations.md").read_text(), re.MULTILINE))
    alerts = set()
    for rule in rules:
        name = rule.get("alert") or rule["record"]
        yield from check_query(f"rules.yml: {name}", rule["expr"], known, recorded)
        if "alert" not in rule:
            continue
        alerts.add(name)
        if rule.get("labels", {}).get("severity") not in ("critical", "warning"):
            yield f"rules.yml: {name}: no severity"
        texts = rule.get("annotations", {})
        if set(texts) != {"summary", "description", "runbook"}:
            yield f"rules.yml: {name}: annotations are {sorted(texts)}"
        if texts.get("runbook") != f"docs/operations.md#{name.lower()}" or name not in headings:
            yield f"rules.yml: {name}: its runbook is not the heading '### {name}' in docs/operations.md"
        fires = re.search(rf"alertname: {name}\s+exp_alerts:\s+- exp_labels", tests)
        if not fires:
            yield f"rules_test.yml: {name} never fires"
    for name in sorted({h for h in headings if h.startswith("Ringshift")} - alerts):
        yield f"docs/operations.md: there is no alert {name}"


def check_dashboard(root, known):
    board = json.loads((root / "packaging/grafana/ringshift.json").read_text())
    panels = board["panels"]
    if len({panel["id"] for panel in panels}) != len(panels):
        yield "ringshift.json: two panels have one id"
    cells = {}
    for panel in panels:
        at, title = panel["gridPos"], panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                if x >= 24 or (other := cells.setdefault((x, y), title)) != title:
                    yield f"ringshift.json: '{title}' lies upon '{other if x < 24 else 'the edge'}'"
                    break
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "5m")
            yield from check_query(f"ringshift.json: {title}", query, known, set())
            if target["datasource"]["uid"] != "${datasource}":
                yield f"ringshift.json: {title}: a fixed data source"


def main():
    root = Path(sys.argv[1]).resolve()
    if not shutil.which("promtool"):
        sys.exit("promtool is missing: run scripts/setup, or apt-get install prometheus")
    table = metrics_table.read(root)
    known = metrics_table.with_suffixes(table)
    prometheus = root / "packaging/prometheus"
    problems = [f"docs/metrics.md: {name} is a counter and does not end in _total" for name, (kind, _) in table.items()
                if (kind == "counter") != name.endswith("_total")]
    problems += promtool("check", "config", prometheus / "prometheus.yml")
    problems += promtool("check", "rules", prometheus / "rules.yml")
    problems += promtool("test", "rules", prometheus / "rules_test.yml")
    problems += check_rules(root, known)
    problems += check_dashboard(root, known)
    print("\n".join(problems) if problems else "rules, configuration and dashboard are right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
