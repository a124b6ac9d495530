"""A whole cluster of real processes on free loopback ports, and what the tests ask of it."""
import json
import os
import random
import subprocess
import time
from pathlib import Path

import redis

from .process import Process, die_with_parent, free_port, wait_until

ROOT = Path(__file__).resolve().parents[3]


def _program(variable, default):
    return Path(os.environ.get(variable) or ROOT / default).resolve()


RINGSHIFT = _program("RINGSHIFT_BIN", "build/release/bin/ringshift")
# Its `check` records and judges histories: in a sanitizer's stage a quicker build than the one under test.
CHECKER = Path(os.environ.get("RINGSHIFT_HISTORY") or RINGSHIFT).resolve()
# Built with the switches that break the protocol.
RINGSHIFT_DEBUG = _program("RINGSHIFT_BIN_DEBUG", "build/debug/bin/ringshift")

FAILED, BAD_USAGE = 1, 2


def run(*arguments, binary=None, stdin=None, timeout=30, check=None, env=None):
    """Runs `ringshift ARGUMENTS`. check: the exit status that is right, None for any."""
    done = subprocess.run([str(binary or RINGSHIFT), *map(str, arguments)], input=stdin, text=True,
                          capture_output=True, timeout=timeout, preexec_fn=die_with_parent,
                          env={**os.environ, **(env or {})}, stdin=None if stdin is not None else subprocess.DEVNULL)
    if check is not None:
        assert done.returncode == check, (f"ringshift {' '.join(map(str, arguments))}: status {done.returncode}\n"
                                          f"{done.stdout}{done.stderr}")
    return done


def run_json(*arguments, **options):
    return json.loads(run(*arguments, "--json", check=0, **options).stdout)


class Member:
    """A redis-server that keeps nothing on disk, unless `options` (of its command line) say otherwise."""

    host = "127.0.0.1"

    def __init__(self, number, directory, options=()):
        self.id = f"cache-{number}"
        self.port = free_port()
        self.process = Process(self.id, ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
                                         "--appendonly", "no", "--loglevel", "warning", "--dir", directory, *options],
                               directory)
        self.start()

    def connect(self):
        return redis.Redis(host=self.host, port=self.port, socket_timeout=10)

    def start(self):
        self.process.start()
        self.client = self.connect()

        def ready():
            try:
                return self.client.ping()
            except redis.ConnectionError:
                return False
        wait_until(lambda: f"{self.id} answers\n{self.process.tail()}", ready, timeout=60)  # It may have much to load, on a busy machine.

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def keys(self):
        found = set(self.client.scan_iter(count=2000))
        self.hang_up()
        return found

    def hang_up(self):
        """A resize refuses members that serve clients who are not routers, as this one is."""
        self.client.connection_pool.disconnect()


class Cluster:
    controller_options = ()
    others = ()  # Programs that a test starts beside, such as agents: ended and looked after like the rest.

    def __init__(self, directory: Path, members=4, proxies=2, name="cache", env=None, binary=None):
        self.directory = directory
        self.name = name
        self.env = env or {}
        self.binary = binary or RINGSHIFT
        self.members = []
        self.proxies = []
        self.others = []
        self.registry = self.controller = None
        self.registry_url = None
        self._specs = 0
        self._proxies_wanted = proxies
        for _ in range(members):
            self.add_member()

    # Processes.

    def processes(self):
        fixed = [p for p in (self.registry, self.controller) if p]
        return fixed + self.proxies + list(self.others) + [m.process for m in self.members]

    def add_member(self, *options):
        member = Member(len(self.members) + 1, self.directory, options)
        self.members.append(member)
        return member

    def _server(self, name, *arguments, env=None):
        return Process(name, [self.binary, *arguments], self.directory, {**self.env, **(env or {})})

    def start_registry(self, data=None):
        self._registry_data = data or self.directory / "registry.db"
        self.registry = self._server("registry", "registry", "--listen", f"127.0.0.1:{free_port()}", "--data",
                                     self._registry_data)
        self.registry.start()
        host, port = self.registry.wait_ready()
        self.registry_url = f"http://{host}:{port}"

    def start_controller(self):
        if self.controller is None:
            self.controller = self._server("controller", "controller", "--registry", self.registry_url, "--cluster",
                                           self.name, *self.controller_options)
        self.controller.start()
        self.controller.wait_ready()

    def add_proxy(self, *options, spec=None, wait=True):
        name = f"proxy-{len(self.proxies) + 1}"
        source = ["--spec", spec] if spec else ["--registry", self.registry_url, "--cluster", self.name]
        proxy = self._server(name, "proxy", "--listen", "127.0.0.1:0", *source, "--threads", "2", "--id", name,
                             *options)
        self.proxies.append(proxy)
        proxy.start()
        if wait:
            _, proxy.port = proxy.wait_ready()
            # A restarted proxy is where it was before.
            proxy.command[proxy.command.index("127.0.0.1:0")] = f"127.0.0.1:{proxy.port}"
        return proxy

    def start_static(self, spec=None, proxies=None, options=()):
        self.spec = spec or self.write_spec()
        for _ in range(self._proxies_wanted if proxies is None else proxies):
            self.add_proxy(*options, spec=self.spec)
        return self

    def start(self, spec=None):
        self.start_registry()
        self.spec = spec or self.write_spec()
        self.start_controller()
        self.apply(self.spec)
        for _ in range(self._proxies_wanted):
            self.add_proxy()
        return self

    def stop(self):
        """Ends everything; says what ended by itself, or did not end well. A second time it has nothing to say."""
        faults = []
        for process in self.proxies + list(self.others) + [p for p in (self.controller, self.registry) if p]:
            if process.expected_dead:
                continue
            if not process.alive() and process.popen is not None:
                faults.append(f"{process.name} ended by itself with status {process.popen.returncode}")
                continue
            process.expected_dead = True
            try:
                status = process.end()
                if status != 0:
                    faults.append(f"{process.name} stopped with status {status}")
            except AssertionError as error:
                faults.append(str(error))
        for member in self.members:
            if member.process.alive():
                member.process.kill()
        return faults

    def logs(self):
        """Of a member only when it died: it has nothing to say otherwise."""
        members = [m.process for m in self.members]
        return [(p.name, p.tail()) for p in self.processes() if p not in members or not (p.alive() or p.expected_dead)]

    # Specs and the command line.

    def spec_document(self, members=None, weights=None, placement=None, limits=None, **more):
        weights = weights or {}
        chosen = self.members if members is None else [m for m in self.members if m.id in members]
        return {
            "cluster": self.name,
            "placement": placement or {"algorithm": "ring", "hash": "xxh3", "points": 256},
            "consistency": "strict",
            "members": [{"id": m.id, "address": m.address, "weight": weights.get(m.id, 1.0)} for m in chosen],
            "limits": limits or {"move_keys_per_second": 20000, "move_bytes_per_second": "200MiB"},
            **more,
        }

    def write_spec(self, members=None, weights=None, placement=None, limits=None, **more):
        """A spec file of the named members (all by default). JSON is YAML."""
        self._specs += 1
        path = self.directory / f"spec-{self._specs}.yaml"
        path.write_text(json.dumps(self.spec_document(members, weights, placement, limits, **more), indent=1))
        return path

    def cli(self, *arguments, **options):
        arguments = [*arguments, "--registry", self.registry_url, "--cluster", self.name]
        return run(*arguments, binary=self.binary, **options)

    def cli_json(self, *arguments, **options):
        return json.loads(self.cli(*arguments, "--json", check=0, **options).stdout)

    def apply(self, spec, check=0):
        # The spec names its cluster.
        return run("topology", "apply", spec, "--registry", self.registry_url, binary=self.binary, check=check)

    def resize_start(self, spec, wait=True, steps=None, check=0, timeout=120):
        options = (["--steps", steps] if steps else []) + (["--wait"] if wait else [])
        for member in self.members:
            member.hang_up()
        return self.cli("resize", "start", "--spec", spec, "--yes", *options, check=check, timeout=timeout)

    def status(self):
        # A registry whose disk is busy (a compiler beside the tests) may be late once.
        for _ in range(3):
            done = self.cli("resize", "status", "--json")
            if done.returncode == 0 or "did not answer within" not in done.stderr:
                break
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def pause(self):
        self.cli("resize", "pause", check=0)

    def resume(self):
        self.cli("resize", "resume", check=0)

    def rollback(self):
        self.cli("resize", "rollback", check=0)

    def wait_status(self, what, condition, timeout=60):
        last = {}

        def look():
            nonlocal last
            last = self.status()
            assert last["state"] != "failed", last
            return condition(last) and last
        return wait_until(lambda: f"{what}: {last}", look, timeout, 0.1)

    def wait_resized(self, timeout=90):
        return self.wait_status("resize over", lambda s: s["state"] in ("idle", "finished"), timeout)

    # Data.

    def client(self, proxy=0, **options):
        return redis.Redis(port=self.proxies[proxy].port, **{"socket_timeout": 20, **options})

    def fill(self, count, prefix="fill", size=64, ttl_every=0, ttl_seconds=3600):
        """count keys prefix:N -> N padded to size; each ttl_every-th with a time to live. Returns what was written."""
        written = {}
        pipeline = self.client().pipeline(transaction=False)
        for i in range(count):
            key, value = f"{prefix}:{i}".encode(), str(i).ljust(size, ".").encode()
            pipeline.set(key, value, ex=ttl_seconds if ttl_every and i % ttl_every == 0 else None)
            written[key] = value
            if i % 500 == 499:
                pipeline.execute()
        pipeline.execute()
        return written

    def census(self):
        """Member id -> its keys, as the member itself says."""
        return {m.id: m.keys() for m in self.members if m.process.alive()}

    def owners(self, keys, spec):
        """Key -> member id, by `ringshift route`."""
        lines = run("route", "--spec", spec, "--hex", "--json", binary=self.binary, check=0,
                    stdin="".join(key.hex() + "\n" for key in keys), timeout=60).stdout.splitlines()
        return {bytes.fromhex(one["key"]): one["member"] for one in map(json.loads, lines)}

    def kept(self):
        """Our own keys on each member."""
        return {member: sorted(key for key in keys if key.startswith(b"rs:"))[:5]
                for member, keys in self.census().items()}

    def assert_placed(self, spec):
        """Every key is on the member that `spec` gives it, and nowhere else; of our own keys only the stamp is left."""
        census, holders = {}, {}

        def ours_alone():
            nonlocal census
            census = self.census()
            return all(key == b"rs:stamp" for keys in census.values() for key in keys if key.startswith(b"rs:"))
        # A claim whose transfer was refused lives for two seconds.
        wait_until(lambda: f"nothing of ours but stamps: {self.kept()}", ours_alone, timeout=10)
        for member, keys in census.items():
            for key in keys - {b"rs:stamp"}:
                holders.setdefault(key, []).append(member)
        owners = self.owners(holders, spec)
        wrong = {key: (held, owners[key]) for key, held in holders.items() if held != [owners[key]]}
        assert not wrong, f"{len(wrong)} of {len(holders)} keys misplaced (holders, owner): {list(wrong.items())[:5]}"
        return holders

    def assert_filled(self, written, ttl_every=0, ttl_seconds=3600):
        """Every filled key is readable through each proxy, with its time to live."""
        keys = list(written)
        for number in (n for n, proxy in enumerate(self.proxies) if proxy.alive()):
            values = []
            for at in range(0, len(keys), 500):
                values += self.client(number).mget(keys[at:at + 500])
            lost = [key for key, value in zip(keys, values) if value != written[key]]
            assert not lost, f"{len(lost)} of {len(keys)} filled keys wrong through proxy {number + 1}: {lost[:5]}"
        if ttl_every:
            pipeline = self.client().pipeline(transaction=False)
            for key in keys:
                pipeline.ttl(key)
            for i, ttl in enumerate(pipeline.execute()):
                expected = i % ttl_every == 0
                assert (ttl_seconds - 120 < ttl <= ttl_seconds) if expected else ttl == -1, (keys[i], ttl)

    # The history checker.

    def history(self, **options):
        return Load(self, **options)


class Load:
    """`ringshift check` at work on the proxies: `with cluster.history() as load: ...`, then load.assert_clean()."""

    count = 0

    def __init__(self, cluster, proxies=None, rate=2500, clients=12, keys=24, ttl_slack_ms=500, seconds=150,
                 timeout_ms=15000, settle=0.5, options=()):
        Load.count += 1
        self.cluster = cluster
        self.seed = random.SystemRandom().randrange(1, 1 << 32)
        self.settle = settle
        self.stop_file = cluster.directory / f"history-{Load.count}.stop"
        ports = [p.port for p in (proxies or cluster.proxies)]
        self.process = Process(f"history-{Load.count}", [
            CHECKER, "check", *[f"--proxy=127.0.0.1:{port}" for port in ports], "--seconds", seconds, "--stop-file",
            self.stop_file, "--clients", clients, "--keys", keys, "--rate", rate, "--ttl-slack-ms", ttl_slack_ms,
            "--timeout-ms", timeout_ms, "--seed", self.seed, "--keep-keys", "--json", *options], cluster.directory)
        self.judgement = None

    def __enter__(self):
        self.process.start()
        time.sleep(self.settle)
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
            return
        time.sleep(self.settle)
        self.stop_file.touch()
        self.process.popen.wait(90)
        assert self.process.output().strip(), f"ringshift check said nothing\n{self.process.tail()}"
        self.judgement = json.loads(self.process.output())
        print(f"history seed {self.seed}:",
              {k: v for k, v in self.judgement.items() if k not in ("violations", "error_examples")})

    def violations(self):
        lines = []
        for v in self.judgement["violations"][:3]:
            lines += [f"{v['kind']} on {v['key']}: {v['why']}", *v["excerpt"], ""]
        return "\n".join(lines)

    def assert_clean(self, least=1000, errors=True):
        """No violation among at least `least` operations; no error answer of unknown meaning either."""
        j = self.judgement
        assert not j["violations"], f"seed {self.seed}: {len(j['violations'])} keys violated\n{self.violations()}"
        assert j["operations"] >= least, j
        assert not errors or j["errors"] == 0, j["error_examples"]
        return j
