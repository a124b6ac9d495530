"""Measures one row: rounds in which each of its servers has one run, in an order that alternates.

CPU per request is the process' own over a run, user and system, less what it takes to connect the clients (measured by
runs of one request for each client), divided by the requests of the rest. A ratio is formed within each round and the median is over
the rounds: what slows the machine for some seconds slows both sides of a ratio.
"""
import resource
import statistics
import time

from errors import BenchError, OutOfTime
from farm import TICKS, cpu_seconds, open_files, rss_kib, SPARE_FILES
from load import IdleClients, Subscribers, message_bytes, redis_benchmark
from rows import IDLE_CPU_TARGET

WARM_REQUESTS = 20_000
MIN_ROUNDS = 3  # Fewer only when time is up, or fewer were asked for.
CONNECT_BATCH, CONNECT_PAUSE = 64, 0.05  # redis-benchmark's own pace of connecting.
CONNECTS = 3
LATE_SECONDS = 10  # What a run may take beyond its length ...
SLOWER = 15  # ... and how many times longer than planned.
CHANNEL, PAYLOAD = "bench:news", "x" * 64


class Clock:
    """The time of the whole bench and of the row at hand."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.row_end = self.end

    def left(self):
        return self.end - time.monotonic()

    def rounds(self, count):
        """Yields 0, 1, ... while there is time for another that is as long as the last."""
        longest = 0.0
        for i in range(count):
            now = time.monotonic()
            if now + longest > (self.row_end if i >= MIN_ROUNDS else self.end):
                return
            yield i
            longest = max(longest, time.monotonic() - now)

    def run_seconds_max(self, planned):
        if self.left() <= 0:
            raise OutOfTime("no time was left")
        return max(2.0, min(LATE_SECONDS + SLOWER * planned, self.left() + planned))


def connect_seconds(clients):
    return clients // CONNECT_BATCH * CONNECT_PAUSE


def connects_each_round(row):
    """Handshakes are so large a part that they are measured beside each run, under the same disturbances."""
    return any("tls" in name for name in row.servers)


def connects_before(row):
    """Runs that measure connecting once for all rounds."""
    return 0 if connects_each_round(row) else 1 if row.clients > 100 else CONNECTS


def planned_seconds(row, pairs, seconds, idle_seconds, clients):
    """What a row should take; wrong by what the machine is slower."""
    if row.kind == "idle":
        tls = sum("tls" in name for name in row.servers) * clients * 0.003
        return pairs * (len(row.servers) * (clients * 0.0004 + idle_seconds + 1.0) + tls)
    if row.kind == "publish":
        return len(row.servers) * (pairs * (seconds * 1.3 + 0.3) + 0.5)
    connect = connect_seconds(clients) + 0.15
    each = seconds * row.longer * 1.2 + connect * (2 if connects_each_round(row) else 1)
    return len(row.servers) * (pairs * each + (connects_before(row) + 1) * connect + 0.3)


def settle(pid, seconds_max=1.0):
    """Waits until the process has done what the end of a load left to do; its CPU so far."""
    end, before = time.monotonic() + seconds_max, cpu_seconds(pid)
    while time.monotonic() < end:
        time.sleep(0.02)
        now = cpu_seconds(pid)
        if now - before < 0.0002:
            return now
        before = now
    return before


def machine_cpu():
    """Seconds of all CPUs since boot: (those that programs and other guests took, all)."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, idle, iowait, irq, softirq, steal = (int(word) for word in file.readline().split()[1:9])
    used = user + nice + system + steal
    return used / TICKS, (used + idle + iowait + irq + softirq) / TICKS


class Others:
    """The share of the machine that programs other than the bench took meanwhile."""

    def __init__(self, farm):
        self._farm = farm
        self._before = self._now()

    def _now(self):
        own = resource.getrusage(resource.RUSAGE_SELF)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (machine_cpu(), {pid: cpu_seconds(pid) for pid in self._farm.pids()},
                own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime)

    def share(self):
        ((used, total), servers, ours), ((used0, total0), servers0, ours0) = self._now(), self._before
        mine = ours - ours0 + sum(cpu - servers0.get(pid, 0) for pid, cpu in servers.items())
        return max(0.0, (used - used0 - mine) / max(total - total0, 1e-9))


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def doubt(values):
    """An interval that holds the true median about 19 times in 20, by order statistics; below 6 values, less often."""
    ordered, n = sorted(values), len(values)
    skip = 0 if n < 9 else 1 if n < 12 else 2
    return ordered[skip], ordered[n - 1 - skip]


class Measurement:
    """The runs of a row, filled while they are made, so that a row that is cut short says what it has."""

    def __init__(self, row, settings):
        self.row, self.settings = row, settings
        self.rounds = []  # Of each whole round: {server: {figure: value}}.
        self.others_share = None

    def result(self):
        row = self.row
        if not self.rounds:
            return None
        figures = self.rounds[0][row.servers[0]].keys()
        result = {"name": row.name, "what": row.what, "kind": row.kind, "pipeline": row.pipeline,
                  "rounds": len(self.rounds), **self.settings,
                  "others_cpu_share": self.others_share, "judged": row.servers[0], "against": row.servers[1],
                  "servers": {name: {**{figure: spread([each[name][figure] for each in self.rounds])
                                        for figure in figures},
                                     "runs": [each[name] for each in self.rounds]} for name in row.servers}}
        values = [self._judged(each) for each in self.rounds]
        result["ratio" if row.kind != "idle" else "bytes"] = spread(values)
        if row.target is not None:
            low, high = doubt(values)
            result.update(target=row.target, met=statistics.median(values) <= row.target,
                          sure=not low <= row.target <= high and (len(values) >= MIN_ROUNDS or row.kind == "idle"))
        if row.kind == "idle":
            result.update(idle_cpu_target=IDLE_CPU_TARGET, idle_cpu_met=(
                result["servers"][row.servers[0]]["idle_cpu_ms_per_s"]["median"] <= IDLE_CPU_TARGET))
        return result

    def _judged(self, each):
        ours, theirs = (each[name] for name in self.row.servers[:2])
        if self.row.kind == "idle":
            return ours["bytes_per_client"]
        return ours["cpu_us"] / max(theirs["cpu_us"], 1e-9)


def measure(row, farm, clock, pairs, seconds, idle_seconds, clients):
    """Gives a Measurement; on Ctrl-C and errors the exception carries it as `measured`."""
    limit = open_files(clients + SPARE_FILES)
    if limit < clients + SPARE_FILES:
        raise BenchError(f"{clients} clients need {clients + SPARE_FILES} open files, and only {limit} are allowed: raise "
                         "the hard limit (ulimit -Hn)")
    measured = Measurement(row, {"clients": clients})
    try:
        {"load": load_rounds, "idle": idle_rounds, "publish": publish_rounds}[row.kind](
            measured, farm, clock, pairs, idle_seconds if row.kind == "idle" else seconds)
        if not measured.rounds:
            raise OutOfTime("no time was left for a whole round")
    except (KeyboardInterrupt, BenchError, OSError) as error:
        error.measured = measured
        raise
    return measured


def load_rounds(measured, farm, clock, pairs, seconds):
    row, seconds = measured.row, seconds * measured.row.longer
    servers = {name: farm.get(name) for name in row.servers}
    for name in row.servers:
        farm.need_keys(name, row.keys)

    def run(name, requests, planned, pipeline=row.pipeline):
        server, limit = servers[name], clock.run_seconds_max(planned + connect_seconds(row.clients))
        before = cpu_seconds(server.pid)
        report = redis_benchmark(server, row.command, row.clients, pipeline, requests, row.keys[1], limit)
        return settle(server.pid) - before, report

    # The first run of each warms it up, and says how many requests make a run.
    warm = max(min(WARM_REQUESTS, row.clients * row.pipeline * 20), row.clients * row.pipeline)
    rates = {name: run(name, warm, seconds)[1].rate for name in row.servers}
    requests = max(int(rates[row.servers[1]] * seconds), 4 * row.clients * row.pipeline)
    measured.settings.update(requests=requests)

    def connecting(name):
        return run(name, row.clients, seconds, 1)[0]

    known = {name: statistics.median(connecting(name) for _ in range(connects_before(row)))
             for name in row.servers if not connects_each_round(row)}
    others = Others(farm)
    for i in clock.rounds(pairs):
        each = {}
        for name in row.servers if i % 2 == 0 else reversed(row.servers):
            less = known[name] if name in known else connecting(name)
            cpu, report = run(name, requests, seconds)
            each[name] = figures(max(cpu - less, 0) / (requests - row.clients) * 1e6, report)
        measured.rounds.append(each)
        measured.others_share = others.share()


def figures(cpu_us, report):
    return {"cpu_us": cpu_us, "requests_per_second": report.rate, "p50_ms": report.p50_ms, "p99_ms": report.p99_ms,
            "p999_ms": report.p999_ms, "rss_mib": report.rss_kib / 1024}


def publish_rounds(measured, farm, clock, pairs, seconds):
    row = measured.row
    servers = {name: farm.get(name) for name in row.servers}
    bytes_each = message_bytes(CHANNEL, PAYLOAD)

    def run(name, messages):
        server, limit = servers[name], clock.run_seconds_max(seconds)
        subscribers = Subscribers(server, row.subscribers, CHANNEL)
        try:
            before = settle(server.pid)
            report = redis_benchmark(server, ("PUBLISH", CHANNEL, PAYLOAD), row.clients, 1, messages, 1, limit)
            delivered = subscribers.wait_for(bytes_each * messages)
            cpu = settle(server.pid) - before
        finally:
            subscribers.close()
        if delivered != 1.0:
            raise BenchError(f"{name} delivered {delivered:.3%} of {messages} messages to {row.subscribers} subscribers")
        return {**figures(cpu / messages * 1e6, report), "messages_per_second": report.rate * row.subscribers}, report

    messages = max(100, int(min(run(name, 500)[1].rate for name in row.servers) * seconds))
    measured.settings.update(requests=messages, subscribers=row.subscribers)
    others = Others(farm)
    for i in clock.rounds(pairs):
        measured.rounds.append({name: run(name, messages)[0]
                                for name in (row.servers if i % 2 == 0 else reversed(row.servers))})
        measured.others_share = others.share()


def idle_rounds(measured, farm, clock, pairs, seconds):
    """Each on a process of its own: memory that an earlier load left behind would hide what a client takes."""
    row, count = measured.row, measured.settings["clients"]

    def run(name):
        server = farm.get(f"{name}-fresh")
        try:
            redis_benchmark(server, ("GET", "idle"), 50, 1, 5000, 1, clock.run_seconds_max(2))
            settle(server.pid)
            before = rss_kib(server.pid)
            clients = IdleClients(server, count)
            try:
                cpu, start = settle(server.pid), time.monotonic()
                after = rss_kib(server.pid)
                time.sleep(seconds)
                idle = (cpu_seconds(server.pid) - cpu) / (time.monotonic() - start)
            finally:
                clients.close()
        finally:
            farm.end(server)
        return {"bytes_per_client": (after - before) * 1024 / count, "idle_cpu_ms_per_s": idle * 1000,
                "rss_mib": after / 1024}

    for i in clock.rounds(pairs):
        measured.rounds.append({name: run(name) for name in (row.servers if i % 2 == 0 else reversed(row.servers))})
