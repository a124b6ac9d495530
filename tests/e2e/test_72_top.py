"""`ringshift top`: one picture as text and as JSON, and the live view on a real (pseudo) terminal, which is afterwards as it
was."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest
import redis

from harness.cluster import FAILED, RINGSHIFT, run
from harness.process import wait_until

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Load:
    """Clients that read, half of it keys that are not there, through each proxy, until it is left."""

    def __init__(self, cluster):
        self.clients = [cluster.client(n) for n in range(len(cluster.proxies))]
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.read, args=(client,), daemon=True) for client in self.clients]

    def read(self, client):
        number = 0
        while not self.stop.is_set():
            number += 1
            try:
                client.get(f"fill:{number * 997 % 2000}")
            except redis.RedisError:
                pass
            self.stop.wait(0.002)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Terminal:
    """A program on a pseudo-terminal, whose screen is what it drew last."""

    def __init__(self, arguments, rows=30, columns=130):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.popen = subprocess.Popen([RINGSHIFT, *map(str, arguments)], stdin=self.slave, stdout=self.slave,
                                      stderr=subprocess.PIPE, start_new_session=True)
        self.text = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if hasattr(self, "popen"):
            self.popen.send_signal(signal.SIGWINCH)

    def read(self, seconds=0.2):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536).decode(errors="replace")
        return self.text

    def screen(self):
        """The lines of the last whole picture."""
        pictures = self.read().split("\x1b[H")
        whole = [p for p in pictures if p.endswith("\x1b[J") or "\x1b[J" in p]
        return [ESCAPE.sub("", line).rstrip() for line in whole[-1].split("\x1b[J")[0].split("\r\n")] if whole else []

    def wait(self, what, condition):
        return wait_until(lambda: f"{what}:\n" + "\n".join(self.screen()), lambda: condition(self.screen()), 30, 0.05)

    def send(self, keys):
        os.write(self.master, keys)

    def end(self):
        """The exit status; the terminal is as it was."""
        status = self.popen.wait(20)
        self.read()
        assert self.text.rstrip().endswith("\x1b[?25h\x1b[?1049l"), repr(self.text[-60:])
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        return status


@pytest.fixture
def busy(make_cluster):
    cluster = make_cluster(members=3, proxies=2)
    cluster.start(cluster.write_spec(members=["cache-1", "cache-2"]))
    cluster.fill(1000)
    with Load(cluster):
        yield cluster


def row(lines, name):
    """The cells of the line that begins with `name`; two blanks part them."""
    return next((re.split(r"\s{2,}", line) for line in lines if line.startswith(name)), None)


def test_one_picture(busy):
    frame = busy.cli_json("top")
    assert frame["cluster"] == "cache" and len(frame["routers"]) == 2
    assert {member["id"]: member["state"] for member in frame["members"]} == {"cache-1": "active", "cache-2": "active"}
    assert sum(member["share"] for member in frame["members"]) == pytest.approx(1)
    assert frame["requests_per_second"] > 10
    assert frame["hit_rate"] == pytest.approx(0.5, abs=0.2)
    assert {router["digest"] for router in frame["routers"]} == {frame["digest"]}
    assert all(router["revision"] == frame["revision"] for router in frame["routers"])
    assert frame["resize"]["state"] == "idle"
    assert frame["requests_per_second"] == pytest.approx(sum(r["requests_per_second"] for r in frame["routers"]))

    text = busy.cli("top", "--once", check=0).stdout.splitlines()
    assert not [line for line in text if line.startswith("membership:")], "there is no policy"
    assert "cache" in text[0] and "controller" in text[0] and "all agree" in text[1]
    assert row(text, "cache-1")[1] == "active" and row(text, "cache-2")
    assert "resize: idle" in text[2]
    assert "\x1b" not in "".join(text)


def test_a_cluster_that_is_not_there(busy):
    done = run("top", "--registry", busy.registry_url, "--cluster", "other")
    assert done.returncode == FAILED and "other" in done.stderr and "--cluster" in done.stderr


def test_live_through_a_resize(busy):
    terminal = Terminal(["top", "--registry", busy.registry_url, "--cluster", "cache", "--interval", "0.3"])
    terminal.wait("two members", lambda lines: row(lines, "cache-1") and row(lines, "cache-2"))
    terminal.wait("rates", lambda lines: len(lines) > 1 and re.match(r"[1-9]", lines[1]))
    slowly = busy.write_spec(limits={"move_keys_per_second": 60, "move_bytes_per_second": "200MiB"})
    for member in busy.members:
        member.hang_up()
    busy.resize_start(slowly, wait=False, steps="100")
    terminal.wait("the joining member", lambda lines: row(lines, "cache-3") and row(lines, "cache-3")[1] == "joining")
    terminal.wait("progress", lambda lines: any("keys/s" in line and "running" not in line for line in lines) and
                  any(line.startswith("resize ") and "step 1 of 1" in line for line in lines))

    # Sorted the other way round, then by another column.
    terminal.send(b"r")
    terminal.wait("reversed", lambda lines: [line[:7] for line in lines if line.startswith("cache-")] ==
                  ["cache-3", "cache-2", "cache-1"])
    terminal.send(b"r\x1b[C\x1b[C")
    terminal.wait("the marked column", lambda lines: "\x1b[7m" in terminal.text.split("\x1b[H")[-2])

    # A small window shows what fits, and no line is longer than it.
    terminal.resize(14, 60)
    terminal.wait("a small picture", lambda lines: 0 < len(lines) <= 14 and max(map(len, lines)) <= 60)
    busy.cli("resize", "set-rate", "100000", check=0)
    busy.wait_resized()
    terminal.resize(40, 150)
    terminal.wait("the end", lambda lines: row(lines, "cache-3") and row(lines, "cache-3")[1] == "active" and
                  any("resize: finished" in line for line in lines))
    terminal.send(b"q")
    assert terminal.end() == 0


@pytest.mark.parametrize("how", ["ctrl-c", "term"])
def test_it_leaves_the_terminal_as_it_was(busy, how):
    terminal = Terminal(["top", "--registry", busy.registry_url, "--cluster", "cache"])
    terminal.wait("a picture", lambda lines: row(lines, "cache-1"))
    # The session's leader has the terminal for its own, so that Ctrl-C would come as a signal; it is sent as one here.
    terminal.popen.send_signal(signal.SIGINT if how == "ctrl-c" else signal.SIGTERM)
    assert terminal.end() == 0


def test_frames_are_json_lines_for_programs(busy):
    done = busy.cli("top", "--once", "--json", check=0)
    assert json.loads(done.stdout)["cluster"] == "cache" and done.stdout.count("\n") == 1
