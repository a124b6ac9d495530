"""The resizes of a soak: what the cluster shall become next, and what the operator does to it on the way."""
from world import FEWEST

PLACEMENTS = [
    {"algorithm": "ring", "hash": "xxh3", "points": 256},
    {"algorithm": "ring", "hash": "xxh3", "points": 120},
    {"algorithm": "rendezvous"},
    {"algorithm": "maglev", "table_size": 4093},
    {"algorithm": "modulo", "hash": "xxh3"},
]


class Change:
    def __init__(self, kind, servers, weights, placement):
        self.kind, self.servers, self.weights, self.placement = kind, servers, weights, placement


def next_change(world, random):
    """Never one that changes nothing. Newcomers have new ids by then."""
    servers, spares = list(world.serving), world.spares()
    weights, placement = dict(world.weights), world.placement
    kinds = ["growth"] * 3 * bool(spares) + ["shrink"] * 3 * (len(servers) > FEWEST)
    kinds += ["reweight"] * 2 + ["placement"] * 2 + ["replacement"] * 2 * bool(spares)
    kind = random.choice(kinds)
    if kind in ("growth", "replacement"):
        joining = random.sample(spares, random.randint(1, min(2, len(spares))) if kind == "growth" else 1)
        for server in joining:
            world.rename(server)
    if kind in ("shrink", "replacement"):
        most = min(2, len(servers) - FEWEST) if kind == "shrink" else 1
        for server in random.sample(servers, random.randint(1, most)):
            servers.remove(server)
    if kind in ("growth", "replacement"):
        servers += joining
    if kind == "placement":
        placement = random.choice([p for p in PLACEMENTS if p != placement])
    elif kind == "reweight" and placement["algorithm"] != "modulo":
        for server in random.sample(servers, random.randint(1, 2)):
            weights[server.id] = random.choice([w for w in (0.5, 1.0, 2.0, 3.0) if w != weights.get(server.id, 1.0)])
    elif kind == "reweight":
        kind, placement = "placement", PLACEMENTS[0]
    if placement["algorithm"] == "modulo":
        weights = {}
    weights = {server.id: weights[server.id] for server in servers if server.id in weights}
    return Change(kind, servers, weights, placement)


class Operator:
    """What is asked for while a resize runs: perhaps a pause and its end, another rate, a way back."""

    def __init__(self, world, random, log):
        self.world, self.random, self.log = world, random, log
        self.pause_at = random.uniform(0, 0.9) if random.random() < 0.3 else None
        self.rollback_at = random.choice([0.0, 0.01, 0.37, 0.7, 0.99]) if random.random() < 0.3 else None
        self.rate_at = random.uniform(0, 0.9) if random.random() < 0.3 else None
        self.resume_at = None
        self.asked, self.done = set(), []  # What is not accepted may have been heard all the same.

    def look(self, status, now):
        if status["state"] == "paused" and self.resume_at is None:
            self.resume_at = now + self.random.uniform(0.2, 2.0)  # Paused by itself, or by us and then killed.
        if self.resume_at is not None:
            if now >= self.resume_at and self._ask("resume"):
                self.resume_at = None
            return
        if status["state"] != "running":
            return
        share = status["keys_moved"] / max(1, status["keys_to_move"])
        if self.pause_at is not None and share >= self.pause_at:
            self.pause_at = None
            if self._ask("pause"):
                self.resume_at = now + self.random.uniform(0.2, 2.0)
        elif self.rate_at is not None and share >= self.rate_at:
            self.rate_at = None
            self._ask("set-rate", self.random.choice([300, 1000, 5000, 20000]))
        elif self.rollback_at is not None and share >= self.rollback_at:
            self.rollback_at = None
            self._ask("rollback")

    def all_is_well(self, now):
        """No more wishes; what is paused goes on."""
        self.pause_at = self.rollback_at = self.rate_at = None
        self.resume_at = now if self.resume_at is not None else None

    def _ask(self, *request):
        self.asked.add(request[0])
        accepted = self.world.ask(*request, patience=3)
        self.log(f"operator: {' '.join(map(str, request))}: {'accepted' if accepted else 'not accepted'}")
        if accepted:
            self.done.append(request[0])
        return accepted or request[0] == "resume" and self._ended()

    def _ended(self):
        status = self.world.status_or_none()
        return status is not None and status["state"] in ("idle", "finished", "failed")
