"""Registries that are not ours: Debian's ZooKeeper and etcd, one server or an ensemble of three."""
import base64
import json
import socket
import urllib.request

from .process import Process, free_port, wait_until

HOST = "127.0.0.1"


class Ensemble:
    """Servers on free loopback ports, each a process; `url` is what --registry takes."""

    def __init__(self, directory, count=1):
        self.directory = directory / self.kind
        self.directory.mkdir()
        self.ports = [free_port() for _ in range(count)]
        self.peers = [(free_port(), free_port()) for _ in range(count)]
        self.servers = [Process(f"{self.kind}-{i + 1}", self.command(i), self.directory) for i in range(count)]
        for server in self.servers:
            server.start()
        wait_until(lambda: f"{self.kind} serves\n" + "\n".join(s.tail(15) for s in self.servers), self.leader, 90, 0.2)

    def leader(self):
        """The server that leads, or the only one once it serves."""
        return next((server for i, server in enumerate(self.servers) if server.alive() and self.leads(i)), None)

    def stop(self):
        for server in self.servers:
            if server.alive():
                server.kill()


class ZooKeeper(Ensemble):
    kind = "zookeeper"

    @property
    def hosts(self):
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    @property
    def url(self):
        return self.at("e2e")

    def at(self, place):
        return f"zk://{self.hosts}/{place}"

    def command(self, i):
        home = self.directory / str(i + 1)
        home.mkdir()
        (home / "myid").write_text(str(i + 1))
        lines = [f"dataDir={home}", f"clientPort={self.ports[i]}", f"clientPortAddress={HOST}", "tickTime=500",
                 "maxSessionTimeout=60000", "initLimit=20", "syncLimit=10", "maxClientCnxns=0",
                 "admin.enableServer=false", "4lw.commands.whitelist=srvr"]
        if len(self.ports) > 1:
            lines += [f"server.{n + 1}={HOST}:{a}:{b}" for n, (a, b) in enumerate(self.peers)]
        config = home / "zoo.cfg"
        config.write_text("\n".join(lines) + "\n")
        main = "quorum.QuorumPeerMain" if len(self.ports) > 1 else "ZooKeeperServerMain"
        return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                "/usr/share/java/zookeeper.jar", f"org.apache.zookeeper.server.{main}", config]

    def leads(self, i):
        try:
            with socket.create_connection((HOST, self.ports[i]), timeout=5) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while part := connection.recv(4096):
                    answer += part
        except OSError:
            return False
        return b"Mode: leader" in answer or b"Mode: standalone" in answer


class Etcd(Ensemble):
    kind = "etcd"

    @property
    def url(self):
        return ",".join(f"http://{HOST}:{port}" for port in self.ports)

    def command(self, i):
        peer = [f"http://{HOST}:{a}" for a, _ in self.peers]
        client = f"http://{HOST}:{self.ports[i]}"
        return ["etcd", f"--name=n{i + 1}", f"--data-dir={self.directory / str(i + 1)}",
                f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer[i]}", f"--initial-advertise-peer-urls={peer[i]}",
                "--initial-cluster=" + ",".join(f"n{n + 1}={url}" for n, url in enumerate(peer)),
                "--log-level=error"]

    def only_for(self, name, password):
        """Turns authentication on: the user may do all below /ringshift/, and nobody else anything but root."""
        def ask(what, **body):
            body = json.dumps(body).encode()
            urllib.request.urlopen(f"{self.url.split(',')[0]}/v3/auth/{what}", body, timeout=20).close()

        def key(text):
            return base64.b64encode(text).decode()
        for user, secret, role in (("root", "r00t", "root"), (name, password, "ours")):
            ask("user/add", name=user, password=secret)
            ask("role/add", name=role)
            ask("user/grant", user=user, role=role)
        ask("role/grant", name="ours",
            perm={"permType": "READWRITE", "key": key(b"/ringshift/"), "range_end": key(b"/ringshift0")})
        ask("enable")

    def leads(self, i):
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.ports[i]}/metrics", timeout=5) as answer:
                return b"\netcd_server_is_leader 1" in answer.read()
        except OSError:
            return False
