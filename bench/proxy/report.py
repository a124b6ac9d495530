"""The table, its legend, and what the JSON says of the machine."""
import os
import pathlib
import platform
import subprocess
import sys
import time

HEADING = (f"{'row':<17}{'server':<20}{'CPU us/req':>10}{'ratio':>7} {'spread':<14}{'target':<18}{'req/s':>9}"
           f"{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>9}{'RSS MiB':>8}")
IDLE_HEADING = f"{'row':<17}{'server':<20}{'B/client':>10}{'':>7} {'spread':<14}{'target':<18}{'idle CPU ms/s':>14}"
LEGEND = """\
CPU us/req  of the server's own process, user and system, without connecting the clients; the median over the rounds;
            `redis` is one server without a proxy before it
ratio       of CPU, the row's first server to its second: formed in each round, median (min..max in `spread`)
target      met, NOT MET; with a `?` when the rounds do not tell (the target lies within the median's interval)
req/s, p50  as redis-benchmark saw them, medians over the rounds; a latency is that of a whole pipeline
others      the share of the machine's CPU that other programs took meanwhile; read ratios, not times, when it is high"""


def verdict(result):
    if "target" not in result:
        return ""
    text = f"{result['target']:.2f}" if result["kind"] != "idle" else f"{result['target']} B"
    return f"<= {text} {'met' if result['met'] else 'NOT MET'}{'' if result['sure'] else '?'}"


def lines(result):
    """A row as text, a line for each server."""
    out = []
    idle = result["kind"] == "idle"
    for name, figures in result["servers"].items():
        judged = name == result["judged"]
        label = f"{result['name'] if judged else '':<17}{name:<20}"
        median = {figure: figures[figure]["median"] for figure in figures if figure != "runs"}
        if idle:
            row_spread = "{min:.0f}..{max:.0f}".format(**figures["bytes_per_client"])
            cpu = f"{median['idle_cpu_ms_per_s']:>14.2f}"
            if judged:
                cpu += f"  <= {result['idle_cpu_target']:g} {'met' if result['idle_cpu_met'] else 'NOT MET'}"
            out.append(f"{label}{median['bytes_per_client']:>10.0f}{'':>7} {row_spread:<14}"
                       f"{verdict(result) if judged else '':<18}{cpu}")
            continue
        ratio = row_spread = ""
        if judged:
            ratio, row_spread = f"{result['ratio']['median']:.3f}", "{min:.3f}..{max:.3f}".format(**result["ratio"])
        out.append(f"{label}{median['cpu_us']:>10.3f}{ratio:>7} {row_spread:<14}{verdict(result) if judged else '':<18}"
                   f"{median['requests_per_second']:>9,.0f}{median['p50_ms']:>9.3f}{median['p99_ms']:>9.3f}"
                   f"{median['p999_ms']:>9.3f}{median['rss_mib']:>8.1f}")
    others = result["others_cpu_share"]
    out.append(f"{'':<17}{result['what']}; {plural(result['rounds'], 'round')}" +
               (f" of {result['requests']:,} requests" if "requests" in result else "") +
               (f", {result['clients']} clients" if idle else "") +
               (f"; others {others:.0%}" if others is not None else ""))
    return out


class Table:
    """Prints rows as they come; a heading where the kind of figures changes."""

    def __init__(self):
        self._heading = None

    def add(self, result):
        heading = IDLE_HEADING if result["kind"] == "idle" else HEADING
        if heading != self._heading:
            print(heading)
            self._heading = heading
        print("\n".join(lines(result)), flush=True)

    def end(self, results, left_out):
        judged = [result for result in results if "target" in result]
        if results:
            print("\n" + LEGEND)
        for name, why in left_out:
            print(f"left out: {name}: {why}")
        if judged:
            met, sure = sum(result["met"] for result in judged), sum(result["sure"] for result in judged)
            print(f"targets: {met} of {len(judged)} met; verdicts within the noise: {len(judged) - sure}")
        sys.stdout.flush()


def plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def first_line(*words):
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=10)
        return (done.stdout + done.stderr).strip().split("\n")[0]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def machine(binary):
    """What the figures depend on."""
    model = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cpus": os.cpu_count(), "cpu": model,
            "kernel": platform.release(), "load_average": os.getloadavg()[0],
            "ringshift": "ringshift " + first_line(binary, "--version"), "redis": first_line("redis-server", "--version"),
            "nutcracker": first_line("nutcracker", "--version").removeprefix("This is "),
            "redis_benchmark": first_line("redis-benchmark", "--version")}
