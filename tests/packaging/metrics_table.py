"""docs/metrics.md as data: name -> (type, labels)."""
import re

ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \|(.*?)\|.*\|$")


def read(root):
    table = {}
    for line in (root / "docs/metrics.md").read_text().splitlines():
        if found := ROW.match(line):
            name, kind, labels = found.groups()
            assert name not in table, f"docs/metrics.md has {name} twice"
            # Names, then perhaps a colon and the values of the last of them: `cluster`, `state`: `idle`, ...
            keys = {key for part in labels.split(";") for key in re.findall(r"`(\w+)`", part.partition(":")[0])}
            table[name] = kind, keys
    return table


def with_suffixes(table):
    """The names that queries use."""
    names = set()
    for name, (kind, _) in table.items():
        names |= {f"{name}_{end}" for end in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names
