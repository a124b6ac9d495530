"""What goes wrong in a soak. Each fault hits one process for some time and is then healed; two at a time at most, never
the same process twice."""
import threading
import time
from collections import Counter

MOST_AT_ONCE = 2


class Fault:
    """`weight`: how often; `seconds`: for how long, the least and the most."""

    def __init__(self, kind, weight, seconds, targets, act, heal):
        self.kind, self.weight, self.seconds = kind, weight, seconds
        self.targets, self.act, self.heal = targets, act, heal


def nothing(_):
    pass


def restart(process):
    """Does not wait until it is ready: it may need another that is away, too."""
    process.start()


def kill_member(server):
    server.process.kill()


def cut_connections(server):
    server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    server.hang_up()


def evict_stamp(server):
    server.client.delete("rs:stamp")
    server.hang_up()


def evict_claims(server):
    for key in server.client.scan_iter(match="rs:claim:*", count=2000):
        server.client.delete(key)
    server.hang_up()


def catalogue(world):
    def proxies():
        return world.proxies

    def controllers():
        return world.controllers

    def registry():
        return [world.registry]

    def members():
        return list(world.members)

    def pause(thing):
        getattr(thing, "process", thing).pause()

    def go_on(thing):
        getattr(thing, "process", thing).resume()

    kill = [Fault("kill -9 proxy", 5, (0.1, 2.0), proxies, lambda p: p.kill(), restart),
            Fault("kill -9 controller", 5, (0.1, 3.0), controllers, lambda p: p.kill(), restart),
            Fault("kill -9 registry", 3, (0.1, 3.0), registry, lambda p: p.kill(), restart)]
    return kill, kill + [
        Fault("stop proxy", 5, (0.1, 7.0), proxies, pause, go_on),
        Fault("stop controller", 3, (0.5, 8.0), controllers, pause, go_on),
        Fault("stop registry", 2, (0.1, 3.0), registry, pause, go_on),
        Fault("stop member", 5, (0.1, 3.0), members, pause, go_on),
        Fault("kill -9 member, data kept", 3, (0.1, 2.0), members, kill_member, lambda server: server.start()),
        Fault("CLIENT KILL at a member", 5, (0.0, 0.0), members, cut_connections, nothing),
        Fault("rs:stamp evicted", 2, (0.0, 0.0), members, evict_stamp, nothing),
        Fault("claims evicted", 3, (0.0, 0.0), members, evict_claims, nothing),
    ]


class Injector(threading.Thread):
    """Faults at random while open(); heal() ends those under way and returns when all is well again.

    Never ends by itself: what it started would end with it, for the kernel takes a thread for the parent."""

    def __init__(self, faults, random, log, gap=(0.2, 2.5), quota=None):
        super().__init__(daemon=True)
        self.faults, self.random, self.log, self.gap = faults, random, log, gap
        self.quota = quota  # kind -> how many are wanted; None: no end.
        self.counts = Counter()
        self.problems = []
        self._lock = threading.Lock()
        self._open = False
        self._active = []  # (when it heals, target, fault)
        self._restarted = set()  # They may not be ready yet.
        self._next = 0.0

    def open(self):
        with self._lock:
            self._open = True
            self._next = time.monotonic() + self.random.uniform(0, 0.8)

    def heal(self):
        """False when a process does not come back."""
        with self._lock:
            self._open = False
            try:
                while self._active:
                    self._heal_one(self._active.pop())
                for process in self._restarted:
                    process.wait_ready(60)
            except Exception as error:
                self.problems.append(f"{type(error).__name__}: {error}")
            self._restarted.clear()
        return not self.problems

    def satisfied(self):
        return self.quota is not None and all(self.counts[kind] >= most for kind, most in self.quota.items())

    def run(self):
        while True:
            with self._lock:
                try:
                    self._step(time.monotonic())
                except Exception as error:  # A process did not come back, a member did not answer: told, not hidden.
                    self.problems.append(f"{type(error).__name__}: {error}")
                    self._open = False
            time.sleep(0.02)

    def _step(self, now):
        for entry in [e for e in self._active if e[0] <= now]:
            self._active.remove(entry)
            self._heal_one(entry)
        if not self._open or now < self._next or len(self._active) >= MOST_AT_ONCE:
            return
        self._next = now + self.random.uniform(*self.gap)
        wanted = [f for f in self.faults if self.quota is None or self.counts[f.kind] < self.quota[f.kind]]
        if not wanted:
            return
        fault = self.random.choices(wanted, [f.weight for f in wanted])[0]
        busy = [target for _, target, _ in self._active]
        free = [target for target in fault.targets() if target not in busy]
        if not free:
            return
        target = self.random.choice(free)
        seconds = self.random.uniform(*fault.seconds)
        self.log(f"fault: {fault.kind}: {name_of(target)} for {seconds:.2f} s")
        try:
            fault.act(target)
        except (OSError, ValueError) as error:
            self.log(f"fault did not take place: {error}")
            return
        except Exception as error:
            # A member that is loading, or drops the connection, answers nothing: the fault was for nothing.
            if type(error).__module__.startswith("redis"):
                self.log(f"fault did not take place: {error}")
                return
            raise
        self.counts[fault.kind] += 1
        self._active.append((now + seconds, target, fault))

    def _heal_one(self, entry):
        _, target, fault = entry
        fault.heal(target)
        if fault.heal is restart:
            self._restarted.add(target)
        if fault.heal is not nothing:
            self.log(f"healed: {fault.kind}: {name_of(target)}")


def name_of(target):
    return f"{target.id} ({target.process.name})" if hasattr(target, "process") else target.name
