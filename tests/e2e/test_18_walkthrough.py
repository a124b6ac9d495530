"""What README.md tells a newcomer to type under "A cluster of your own", typed into one shell, with free ports instead of its own."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import cluster as harness
from harness.process import die_with_parent, free_port

ROOT = Path(__file__).resolve().parents[2]
PORTS = [7001, 7002, 7003, 7004, 7005, 6380, 7379]
LONGEST_SECONDS = 180


def blocks():
    text = (ROOT / "README.md").read_text()
    section = re.search(r"\n### A cluster of your own\n(.*?)\n### ", text, re.S)[1]
    return re.findall(r"```(sh|console)\n(.*?)```", section, re.S)


def script(ports):
    """The shell's blocks one after the other, and the console's commands among them; it ends at the first that fails."""
    lines = ["set -em"]
    for kind, text in blocks():
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")] if kind == "console" else text.splitlines()
        lines += commands
        # Who types is slower than a start.
        if any(line.startswith("ringshift serve ") for line in commands):
            at = next(i for i, line in enumerate(lines) if line.startswith("ringshift serve ")) + 1
            lines.insert(at, "until redis-cli -p 6380 ping >/dev/null 2>&1; do kill -0 %1; sleep 0.1; done")
    text = "\n".join(lines) + "\necho the end is reached\n"
    for port, other in ports.items():
        text = re.sub(rf"\b{port}\b", str(other), text)
    return text


def test_the_walk_through_works(tmp_path):
    ports = {port: free_port() for port in PORTS}
    assert len(set(ports.values())) == len(PORTS)
    environment = {**os.environ, "PATH": f"{harness.RINGSHIFT.parent}:{os.environ['PATH']}",
                   "RINGSHIFT_LISTEN": f"127.0.0.1:{ports[6380]}",
                   "RINGSHIFT_REGISTRY_LISTEN": f"127.0.0.1:{ports[7379]}",
                   "RINGSHIFT_REGISTRY": f"http://127.0.0.1:{ports[7379]}",
                   "RINGSHIFT_ADMIN_LISTEN": "127.0.0.1:0"}
    environment.pop("RINGSHIFT_CLUSTER", None)
    with (tmp_path / "output").open("w") as file:  # A file: what the shell leaves behind would keep a pipe open.
        shell = subprocess.Popen(["bash", "-c", script(ports)], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=file, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
    try:
        shell.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.wait()
    finally:
        left = stop_what_is_left(tmp_path)
    output = (tmp_path / "output").read_text()
    assert output.endswith("the end is reached\n"), output
    assert left == [], f"the last block ends everything, but these still run: {left}\n{output}"
    assert "21.2113 % of the keyspace moves" in output, "the figures that README shows\n" + output
    assert "0 problems, 0 warnings" in output and re.search(r"^clean: ", output, re.M), output
    assert re.search(r"^finished  keys [1-9]", output, re.M) and "finished (rolled back)" in output, output


def running_in(directory):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == directory.resolve():
                found.append((int(process.name), (process / "comm").read_text().strip()))
        except OSError:
            continue  # It ended meanwhile, or is another user's.
    return found


def stop_what_is_left(directory):
    """Ends servers that the shell left behind: those that run in its directory. Their names."""
    end = time.monotonic() + 20  # What was told to end drains first.
    while running_in(directory) and time.monotonic() < end:
        time.sleep(0.1)
    left = running_in(directory)
    for pid, _ in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return [name for _, name in left]
