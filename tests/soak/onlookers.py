"""Clients that use the keyset through the proxies while it moves, and notice at once what is not right: one reads, one
writes without changing anything (so that keys are pulled), one lets short lives run out."""
import heapq
import random
import threading
import time

import redis

BATCH = 40
PAUSE = 0.04           # Seconds between two batches: the machine has others to serve.
KEEP = 10              # Findings that are kept.
TRIES = 4
LIFE_MS = (50, 10_000)
LIVES_MOST = 20_000    # That are waited for at a time.


class Onlooker(threading.Thread):
    """Repeats look() until it is stopped."""

    def __init__(self, ports, seed):
        super().__init__(daemon=True)
        self.random = random.Random(seed)
        self.clients = [redis.Redis(port=port, socket_timeout=60) for port in ports]
        self.done, self.wrong, self.errors = 0, [], []
        self.busy = 0  # Answers TIMEOUT and TRYAGAIN.
        self._stopping = threading.Event()

    def run(self):
        while not self._stopping.is_set():
            try:
                self.look()
            except redis.RedisError as error:
                self.note(self.errors, f"{type(error).__name__}: {error}")
            except Exception as error:  # One that broke has seen nothing.
                self.note(self.wrong, f"{type(self).__name__} broke: {type(error).__name__}: {error}")
                return
            time.sleep(PAUSE)

    def note(self, findings, text):
        if len(findings) < KEEP:
            findings.append(text)

    def stop(self):
        self._stopping.set()
        self.join(120)
        for client in self.clients:
            client.connection_pool.disconnect()

    def ask(self, commands):
        """Answers of a pipeline through any proxy. Errors are noted, and are among them."""
        pipeline = self.random.choice(self.clients).pipeline(transaction=False)
        for one in commands:
            pipeline.execute_command(*one)
        answers = pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, redis.RedisError) and str(answer).startswith(("TIMEOUT ", "TRYAGAIN ")):
                self.busy += 1
            elif isinstance(answer, redis.RedisError):
                self.note(self.errors, str(answer))
        return answers


class Reader(Onlooker):
    """Strings that do not expire soon, from all over the keyset."""

    def __init__(self, ports, seed, keyset):
        super().__init__(ports, seed)
        self.keyset = keyset
        self.eligible = lambda i: keyset.kind(i) == "string" and not 0 < keyset.ttl_ms(i) < 3_600_000

    def look(self):
        chosen = [i for i in (self.random.randrange(self.keyset.count) for _ in range(BATCH * 2)) if self.eligible(i)]
        answers = self.ask([("GET", self.keyset.names[i]) for i in chosen])
        for i, answer in zip(chosen, answers):
            if isinstance(answer, redis.RedisError):
                continue
            self.done += 1
            if answer != self.keyset.value(i):
                self.note(self.wrong, f"{self.keyset.names[i].decode()} was read as {str(answer)[:60]}")


class Toucher(Onlooker):
    """PERSIST of keys that have no time to live: a write for everybody, and nothing is changed by it."""

    def __init__(self, ports, seed, keyset):
        super().__init__(ports, seed)
        self.keyset = keyset

    def look(self):
        chosen = [i for i in (self.random.randrange(self.keyset.total) for _ in range(BATCH // 2))
                  if self.keyset.ttl_ms(i) == 0]
        answers = self.ask([("PERSIST", self.keyset.names[i]) for i in chosen])
        for i, answer in zip(chosen, answers):
            if isinstance(answer, redis.RedisError):
                continue
            self.done += 1
            if answer != 0:
                self.note(self.wrong, f"{self.keyset.names[i].decode()} had a time to live and was written without")


class Lives(Onlooker):
    """Keys of 50 ms to 10 s: there before their end, gone after it and the time that a move may take."""

    def __init__(self, ports, seed, slack_ms):
        super().__init__(ports, seed)
        self.slack = slack_ms / 1000
        self.number = 0
        self.due = []  # (when it is looked at, key, value, before it was written, after, seconds of life)
        self.longest_over_ms = 0.0
        self.alive_most, self._counted_at = 0, 0.0  # At a time: so many may have moved.

    def look(self):
        now = time.monotonic()
        if len(self.due) < LIVES_MOST and not self._stopping.is_set():
            self.write(now)
        if now - self._counted_at > 1:
            self._counted_at = now
            alive = {key for _, key, _, _, acknowledged, seconds in self.due if acknowledged + seconds > now}
            self.alive_most = max(self.alive_most, len(alive))
        late = []
        while self.due and self.due[0][0] <= now and len(late) < BATCH * 3:
            late.append(heapq.heappop(self.due))
        before = time.monotonic()
        answers = self.ask([("GET", life[1]) for life in late])
        after = time.monotonic()
        for (_, key, value, written, acknowledged, seconds), answer in zip(late, answers):
            if isinstance(answer, redis.RedisError):
                continue
            self.done += 1
            if answer is None:
                if after < written + seconds:
                    self.note(self.wrong, f"{key} is gone {(written + seconds - after) * 1000:.0f} ms before its end")
            elif answer != value:
                self.note(self.wrong, f"{key} is {answer} and was written as {value}")
            else:
                over = before - acknowledged - seconds
                self.longest_over_ms = max(self.longest_over_ms, over * 1000)
                if over > self.slack:
                    self.note(self.wrong, f"{key} lives {over * 1000:.0f} ms after its end")

    def write(self, now):
        made = []
        for _ in range(BATCH // 2):
            self.number += 1
            low, high = LIFE_MS
            ttl = int(low * (high / low) ** self.random.random())
            made.append((f"life:{self.number}", b"%d" % self.number, ttl))
        answers = self.ask([("SET", key, value, "PX", ttl) for key, value, ttl in made])
        acknowledged = time.monotonic()
        for (key, value, ttl), answer in zip(made, answers):
            if isinstance(answer, redis.RedisError):
                continue  # Written or not: nobody knows.
            seconds = ttl / 1000
            # Somewhere in its life, right after its end, and when no move can excuse it any more.
            for when in (now + seconds * self.random.uniform(0.2, 0.9), acknowledged + seconds + 0.001,
                         acknowledged + seconds + self.slack + 0.01):
                heapq.heappush(self.due, (when, key, value, now, acknowledged,
                                          seconds))

    def outlast(self):
        """Looks at what is left to be looked at; then nothing of it lies in the cluster."""
        self._stopping.set()
        self.join(120)
        end = time.monotonic() + LIFE_MS[1] / 1000 + self.slack + 30
        while self.due and time.monotonic() < end:
            self.look()
            time.sleep(PAUSE)
        if self.due:
            self.note(self.wrong, f"{len(self.due)} short lives were never looked at")
        self.stop()


__all__ = ["Lives", "Reader", "Toucher"]
