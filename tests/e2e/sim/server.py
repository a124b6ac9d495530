"""An HTTP(S) server in this process, a thread for each connection, and what the simulators share."""
import json
import re
import ssl
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status, body, headers=None):
        self.status, self.body, self.headers = status, body, headers or {}


class Request:
    def __init__(self, handler, body):
        parts = urlsplit(handler.path)
        self.method, self.path = handler.command, unquote(parts.path)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        self.query = dict(pairs)
        self.headers, self.body, self.target = handler.headers, body, handler.path
        self.handler = handler
        if len(self.query) != len(pairs):
            raise Refused(400, "a parameter is there twice")

    def only(self, *known):
        """Strict: the real servers ignore what they do not know, and so hide our mistakes."""
        unknown = set(self.query) - set(known)
        if unknown:
            raise Refused(400, f"unknown parameters: {sorted(unknown)}")

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Refused(400, f"Request decode failed: {error}") from None


class Simulator:
    """Subclasses have `handle(request)` -> (body, headers); `self.changed` guards their state and is notified at each
    change of it. `faults` holds names of faults; fault(name) says whether it is on and counts one use of it."""

    def __init__(self, tls=None):
        self.changed = threading.Condition()
        self.faults = {}          # Name -> how often it still strikes; None: until it is taken away.
        self.requests = deque(maxlen=1000)
        self.open = 0
        self.stopping = False
        self._starting = threading.Lock()
        self._port, self._tls = 0, tls
        self.start()

    def start(self):
        """Again on the same port after stop()."""
        simulator = self
        self.stopping = False

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                simulator.requests.append((time.monotonic(), self.command, self.path, dict(self.headers)))
                try:
                    request = Request(self, body)
                    if simulator.fault("hang"):
                        simulator.wait(lambda: False, 60)
                    if simulator.fault("500"):
                        raise Refused(500, "rpc error: No cluster leader")
                    answer = simulator.handle(request)
                    if answer is None:  # It was streamed.
                        self.close_connection = True
                        return
                    text, headers = answer
                    if not isinstance(text, str):
                        text = json.dumps(text)
                    if simulator.fault("garbage"):
                        text = text[:len(text) // 2]
                    self._answer(200, text, headers)
                except Refused as refused:
                    self._answer(refused.status, refused.body, refused.headers)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _answer(self, status, text, headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_POST = do_DELETE = _serve

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):  # Clients hang up.
                pass

        self.server = Server(("127.0.0.1", self._port), Handler)
        self._port = self.server.server_address[1]
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def stop(self):
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def fault(self, name):
        with self.changed:
            if name not in self.faults:
                return False
            left = self.faults[name]
            if left is not None:
                if left <= 1:
                    del self.faults[name]
                else:
                    self.faults[name] = left - 1
            return True

    def wait(self, condition, seconds):
        """Until `condition` holds, the time is over, or the server stops."""
        with self.changed:
            self.changed.wait_for(lambda: condition() or self.stopping, seconds)

    def count(self, part):
        return sum(part in target for _, _, target, _ in list(self.requests))


_GO_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def go_duration(text):
    parts = _GO_DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise Refused(400, "Invalid wait time")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
