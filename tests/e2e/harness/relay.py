"""A TCP relay in front of one server: what lies between the machines, and can be cut, stopped, slowed down, filtered, and
held at a certain command."""
import socket
import threading
import time
from collections import deque

from .process import free_port

_CHUNK = 1 << 16
KEPT = 20000  # Commands that are remembered.


class Relay:
    def __init__(self, target):
        self.target = target
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.only = None         # Bytes: connections that do not say them first are closed at once.
        self.never = None        # Bytes: connections that say them first are swallowed, without a word.
        self.delay = 0.0         # Seconds that each piece of an answer waits.
        self.wanted = None       # bytes -> bool: which whole commands are kept in `kept`.
        self.kept = deque(maxlen=KEPT)
        self.hold = None         # (who, command) -> bool: whole commands that wait for release(), and what follows them.
        self.held = []           # Those that wait.
        self._released = threading.Event()
        self._flows = threading.Event()
        self._flows.set()
        self._sockets = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self):
        """Nothing goes through until flow(), in either direction; what was sent meanwhile then arrives, late."""
        self._flows.clear()

    def flow(self):
        self._flows.set()

    def release(self):
        """Whatever is held arrives now; nothing is held any more."""
        self.hold = lambda who, command: False
        self.held = []
        self._released.set()

    def cut(self):
        """Ends all connections; new ones are taken."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._listener.close()
        self.flow()
        self.release()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            first = client.recv(_CHUNK)
            if (self.only is not None and self.only not in first) or not first:
                client.close()
                return
            if self.never is not None and self.never in first:
                with self._lock:
                    self._sockets.add(client)
                return  # Open, and silent.
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            server.settimeout(None)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            client.close()
            return
        with self._lock:
            self._sockets |= {client, server}
        threading.Thread(target=self._pump, args=(server, client, b"", True), daemon=True).start()
        self._pump(client, server, first, False)

    def _pump(self, source, sink, data, answers):
        unparsed, who = b"", data
        try:
            while True:
                data = data or source.recv(_CHUNK)
                if not data:
                    break
                if self.hold is not None and not answers:
                    unparsed, data = self._pass_whole(who, unparsed + data, sink), b""
                    continue
                if self.wanted is not None and not answers:
                    unparsed = self._keep(unparsed + data)
                if answers and self.delay:
                    time.sleep(self.delay)
                self._flows.wait()
                sink.sendall(data)
                data = b""
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for one in (source, sink):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _pass_whole(self, who, data, sink):
        """Command by command; one that is held keeps back what this connection says after it. Gives the rest."""
        at = 0
        while (end := command_end(data, at)) is not None:
            command, at = data[at:end], end
            if self.wanted is not None and self.wanted(command):
                self.kept.append(command)
            if self.hold(who, command):
                self.held.append(command)
                self._released.wait()
            sink.sendall(command)
        return data[at:]

    def _keep(self, data):
        """Takes whole commands off the front; gives the rest."""
        at = 0
        while (end := command_end(data, at)) is not None:
            if self.wanted(data[at:end]):
                self.kept.append(data[at:end])
            at = end
        return data[at:]


def command_end(data, at):
    """Where the RESP command that begins at `at` ends; None when it is not whole."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    if data[at:at + 1] != b"*":
        return line + 2
    count, at = int(data[at + 1:line]), line + 2
    for _ in range(count):
        line = data.find(b"\r\n", at)
        if line < 0:
            return None
        at = line + 2 + int(data[at + 1:line]) + 2
        if at > len(data):
            return None
    return at


def arguments(command):
    """Of one whole RESP command."""
    found, at = [], command.find(b"\r\n") + 2
    while at < len(command):
        line = command.find(b"\r\n", at)
        size = int(command[at + 1:line])
        found.append(command[line + 2:line + 2 + size])
        at = line + 2 + size + 2
    return found
