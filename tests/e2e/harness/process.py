"""One child process: it logs to files, ends with the test run at the latest, and is waited for by its ready line."""
import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

READY = re.compile(r"^ready: (\S+)(?: listening on (\S+):(\d+))?", re.MULTILINE)
ADMIN = re.compile(r"^ready: admin listening on (\S+)$", re.MULTILINE)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def free_port() -> int:
    """Never above 55535: a node of a Redis Cluster needs the port 10,000 above its own, too."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            if probe.getsockname()[1] <= 55535:
                return probe.getsockname()[1]


def die_with_parent():
    """For preexec_fn: the child is killed when this test run is, however it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(what, condition, timeout=15.0, interval=0.02):
    """The first true answer of `condition`; fails with `what` (a text, or a function giving one) if there is none."""
    end = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"after {timeout} s still not: {what() if callable(what) else what}")
        time.sleep(interval)


class Process:
    def __init__(self, name, command, directory: Path, env=None):
        self.name = name
        self.command = [str(part) for part in command]
        self.env = {**os.environ, **(env or {})}
        self.out = directory / f"{name}.out"
        self.err = directory / f"{name}.err"
        self.popen = None
        self.expected_dead = False
        self.stopped = False

    def start(self):
        with open(self.out, "ab") as out, open(self.err, "ab") as err:
            self._from = out.tell()
            self.popen = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                          env=self.env, preexec_fn=die_with_parent)
        self.expected_dead = False
        return self

    def output(self):
        """What this incarnation printed on standard output."""
        with open(self.out, "rb") as file:
            file.seek(self._from)
            return file.read().decode(errors="replace")

    def errors(self):
        return self.err.read_text(errors="replace")

    def wait_ready(self, timeout=15.0):
        """(host, port) of the ready line; port None when it names none."""
        def look():
            found = READY.search(self.output())
            if not found and self.popen.poll() is not None:
                raise AssertionError(f"{self.name} ended with status {self.popen.returncode} before it was ready:\n"
                                     f"{' '.join(self.command)}\n{self.errors()[-2000:]}")
            return found
        found = wait_until(lambda: f"{self.name} ready\n{self.errors()[-2000:]}", look, timeout)
        return found.group(2), int(found.group(3)) if found.group(3) else None

    def admin_url(self, timeout=15.0):
        """Of its admin port, which it announces when all of it is ready."""
        def look():
            assert self.alive(), self.tail()
            return ADMIN.search(self.output())
        return wait_until(lambda: f"{self.name} announces its admin port\n{self.errors()[-2000:]}", look, timeout).group(1)

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen is not None and self.popen.poll() is None

    def send(self, signum):
        self.popen.send_signal(signum)

    def pause(self):
        self.stopped = True
        self.send(signal.SIGSTOP)

    def resume(self):
        self.stopped = False
        self.send(signal.SIGCONT)

    def kill(self):
        """kill -9, as a crash."""
        self.expected_dead = True
        self.popen.kill()
        self.popen.wait()

    def end(self, timeout=15.0):
        """A clean stop; returns the exit status."""
        if self.popen is None:
            return 0
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.terminate()
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
                raise AssertionError(f"{self.name} did not stop within {timeout} s of SIGTERM") from None
        return self.popen.returncode

    def tail(self, lines=40):
        """The ends of what it printed; a sanitizer's report from where it begins."""
        text = []
        for path in (self.out, self.err):
            if path.exists():
                content = path.read_text(errors="replace").splitlines()
                begins = next((i for i, line in enumerate(content) if "Sanitizer:" in line), len(content))
                text += [f"--- {path.name}"] + content[min(begins, max(0, len(content) - lines)):]
        return "\n".join(text)
