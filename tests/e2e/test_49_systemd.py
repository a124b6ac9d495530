"""`ringshift agent` as a service of systemd: the unit is one that systemd takes, and what the agent tells its manager, by a
socket of ours in the manager's place."""
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis

from harness.cluster import ROOT, RINGSHIFT
from harness.process import Process, wait_until
from test_49_agents import agents  # pylint: disable=unused-import

UNIT = ROOT / "packaging" / "systemd" / "ringshift-agent@.service"
WATCHDOG_SECONDS = 2.0


class Manager:
    """Listens as systemd does, and writes down what it was told and when."""

    def __init__(self, directory):
        self.path = directory / "manager"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.told = []  # (time, line)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            lines = self.socket.recv(4096).decode().split("\n")
            self.told += [(time.monotonic(), line) for line in lines]

    def times(self, line):
        return [at for at, one in list(self.told) if one == line]

    def wait(self, part):
        wait_until(lambda: f"told '{part}': {self.told[-5:]}", lambda: [one for _, one in list(self.told) if part in one], 30)

    def longest_silence(self, until):
        """Between READY and `until`, of WATCHDOG=1: what systemd kills for."""
        times = [self.times("READY=1")[0], *self.times("WATCHDOG=1"), until]
        times = sorted(at for at in times if at <= until)
        return max(after - before for before, after in zip(times, times[1:]))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd on this machine")
def test_systemd_takes_the_unit(tmp_path):
    """An instance of it; the program is where this one was built."""
    unit = tmp_path / "ringshift-agent@cache-5.service"

    def verify(text):
        unit.write_text(text, encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], text=True, capture_output=True, timeout=30)
        return done.returncode, done.stdout + done.stderr
    good = UNIT.read_text(encoding="utf-8").replace("/usr/local/bin/ringshift", str(RINGSHIFT))
    assert verify(good) == (0, "")
    assert "WatchdogSecs" in verify(good.replace("WatchdogSec", "WatchdogSecs"))[1], "it would say so"


def test_it_leaves_the_agent_time_to_drain():
    """Else systemd kills it half-way."""
    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE).group(1))
    usage = subprocess.run([RINGSHIFT, "agent", "--help"], text=True, capture_output=True, timeout=10).stdout
    drain = int(re.search(r"--drain-timeout-ms .*=(\d+)$", usage, re.MULTILINE).group(1))
    assert stop * 1000 >= drain + 10000


def test_the_manager_hears_of_it_whatever_hangs(agents):
    """A server that hangs, a registry that does, and a drain that takes its time are none of them a reason to kill the agent;
    a hung agent is."""
    manager = Manager(agents.cluster.directory)
    member = agents.cluster.members[0]
    agent = Process("agent", [
        RINGSHIFT, "agent", "--registry", agents.cluster.registry_url, "--cluster", "cache", "--id", "cache-1", "--address",
        member.address, "--probe-timeout-ms", 20000, "--probe-interval-ms", 60000, "--rise", 1, "--fall", 1,
        "--lease-seconds", 2], agents.cluster.directory,
        {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6))})
    agents.cluster.others.append(agent)
    agent.start()
    manager.wait("READY=1")
    manager.wait("STATUS=ready, registered")
    member.process.pause()
    manager.wait("STATUS=unhealthy")
    time.sleep(WATCHDOG_SECONDS)
    member.process.resume()
    wait_until("ready again", lambda: "ready" in [one for _, one in manager.told if "STATUS=" in one][-1])
    agents.cluster.registry.pause()
    time.sleep(2 * WATCHDOG_SECONDS)
    agents.cluster.registry.resume()
    with redis.Redis(port=member.port, client_name="rs:router") as router:
        router.ping()
        agent.expected_dead = True
        agent.send(signal.SIGTERM)
        manager.wait("STOPPING=1")
        end = time.monotonic() + 2 * WATCHDOG_SECONDS
        while time.monotonic() < end:
            router.incr("a")
            time.sleep(0.05)
        assert agent.alive(), agent.tail()
        assert manager.longest_silence(time.monotonic()) < WATCHDOG_SECONDS
        agent.pause()
        begin = time.monotonic()
        wait_until("silent", lambda: manager.longest_silence(time.monotonic()) > WATCHDOG_SECONDS or
                   time.monotonic() - begin > 10)
        assert manager.longest_silence(time.monotonic()) > WATCHDOG_SECONDS, "who hangs says nothing"
        agent.resume()
        router.connection_pool.disconnect()
    assert agent.popen.wait(30) == 0
