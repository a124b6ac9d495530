"""Other programs' placements against those programs themselves, as they run here and now: nutcracker before
redis-servers, libmemcached's own library, nginx and HAProxy. Each is asked where it sends a set of keys, in
configurations that no recording has; what it answers is written as a recording, and `ringshift vectors` must agree.

Seeds are fixed, so a failure repeats; RINGSHIFT_PEERS_SEED chooses another run."""
import json
import os
import random
import shutil
import socket
import subprocess
from pathlib import Path

import redis

from harness import cluster as harness
from harness.process import Process, free_port, wait_until

SEED = int(os.environ.get("RINGSHIFT_PEERS_SEED", "1"))
CLIENTS = Path(__file__).parent / "clients"


def key_set(rng, count, alphabet):
    """Keys as users have them, and random ones of `alphabet`."""
    keys = [f"user:{i}:profile".encode() for i in range(count // 3)]
    keys += [b"{tag%d}:%d" % (i % 40, i) for i in range(count // 3)]
    while len(keys) < count:
        keys.append(bytes(rng.choice(alphabet) for _ in range(rng.randrange(1, 40))))
    return list(dict.fromkeys(keys))


ANY_BYTE = bytes(range(256))
HEADER_BYTE = bytes(b for b in range(0x21, 0x7f) if b not in b",") + bytes(range(0x80, 0x100))


def free_ports(count):
    """Different ones: they are held until all are known."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def agree(directory, peer, cases):
    """Writes what `peer` answered as a recording; ringshift must give the same answers."""
    path = directory / "recorded.json"
    path.write_text(json.dumps({"peer": peer, "cases": cases}))
    done = harness.run("vectors", path)
    wrong = "\n".join(line for line in done.stdout.splitlines() if "FAILED" in line)
    assert done.returncode == 0, f"{wrong}\n{done.stderr}"
    answers = sum(len(case["assign"]) for case in cases)
    assert f"{answers} of {answers} assignments match" in done.stdout


def case_of(name, keys, assign, **fields):
    return {"id": name, "keys": [key.hex() for key in keys], "assign": assign, **fields}


# --- nutcracker ---------------------------------------------------------------------------------------------------

NUTCRACKER_HASHES = ["one_at_a_time", "md5", "crc16", "crc32", "crc32a", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32",
                     "hsieh", "murmur", "jenkins"]


class Servers:
    """Redis-servers, each at a TCP address and on a Unix socket."""

    def __init__(self, directory, count):
        self.all = []
        for number in range(count):
            port, path = free_port(), directory / f"{number}.sock"
            process = Process(f"redis-{number}", ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                                                  "--unixsocket", path, "--loglevel", "warning", "--dir", directory],
                              directory).start()
            self.all.append((process, port, path, redis.Redis(port=port, socket_timeout=10)))
        for process, _, _, client in self.all:
            wait_until(lambda: process.tail(), lambda: answers(client))

    def take(self):
        """Which keys each has; they are gone afterwards."""
        out = []
        for _, _, _, client in self.all:
            out.append(client.keys("*"))
            client.flushall()
        return out

    def stop(self):
        for process, *_ in self.all:
            assert process.end() == 0


def answers(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def nutcracker_pools(rng, servers):
    """One for each hash and distribution, and every way to name, weigh and reach a server."""
    pools = []
    for distribution in ("ketama", "modula"):
        for name in NUTCRACKER_HASHES:
            chosen = rng.sample(range(len(servers)), rng.randrange(2, len(servers) + 1))
            form = rng.choice(["plain", "weights", "names", "sockets", "named sockets"])
            lines = []
            for server in chosen:
                _, port, path, _ = servers[server]
                weight = rng.randrange(1, 12) if form != "plain" else 1
                address = f"{path}:{weight}" if "sockets" in form else f"127.0.0.1:{port}:{weight}"
                label = f" {rng.choice(['n', 'node', 'cache-server'])}{server}" if "name" in form else ""
                lines.append(address + label)
            pools.append({"distribution": distribution, "hash": name, "servers": lines, "chosen": chosen,
                          "form": form, "hash_tag": rng.choice([None, None, "{}", "$$", "::"])})
    return pools


def test_nutcracker(tmp_path):
    rng = random.Random(SEED)
    servers = Servers(tmp_path, 6)
    pools = nutcracker_pools(rng, servers.all)
    lines = []
    for number, (pool, port) in enumerate(zip(pools, free_ports(len(pools)))):
        pool["port"] = port
        lines += [f"pool{number}:", f"  listen: 127.0.0.1:{pool['port']}", "  redis: true", "  timeout: 5000",
                  f"  hash: {pool['hash']}", f"  distribution: {pool['distribution']}"]
        if pool["hash_tag"]:
            lines.append(f'  hash_tag: "{pool["hash_tag"]}"')
        lines += ["  servers:"] + [f"   - {server}" for server in pool["servers"]]
    (tmp_path / "nutcracker.yml").write_text("\n".join(lines) + "\n")
    program = shutil.which("nutcracker", path=os.environ["PATH"] + ":/usr/sbin")
    peer = Process("nutcracker", [program, "-c", tmp_path / "nutcracker.yml", "-s", free_port(), "-a", "127.0.0.1"],
                   tmp_path).start()
    cases = []
    for number, pool in enumerate(pools):
        keys = key_set(rng, 300, ANY_BYTE)
        client = redis.Redis(port=pool["port"], socket_timeout=10)
        wait_until(lambda: peer.tail(), lambda: connects(pool["port"]))
        batch = client.pipeline(transaction=False)
        for key in keys:
            batch.set(key, b"x")
        assert all(batch.execute())
        client.close()
        owners = {key: server for server, found in enumerate(servers.take()) for key in found}
        assign = "".join(str(pool["chosen"].index(owners[key])) for key in keys)
        name = f"{pool['distribution']}/{pool['hash']}/{pool['form']}/{number}"
        cases.append(case_of(name, keys, assign, **{field: pool[field] for field in
                                                    ("distribution", "hash", "hash_tag", "servers")}))
    agree(tmp_path, "nutcracker", cases)
    peer.end()
    servers.stop()


def connects(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# --- libmemcached -------------------------------------------------------------------------------------------------

LIBMEMCACHED_HASHES = ["default", "md5", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur",
                       "jenkins", "murmur3"]
DISTRIBUTIONS = {"MODULA": 0, "CONSISTENT": 1, "KETAMA": 2, "SPY": 4, "KETAMA_WEIGHTED": 5}


def test_libmemcached(tmp_path):
    program = tmp_path / "libmemcached_owner"
    subprocess.run(["gcc", "-O1", CLIENTS / "libmemcached_owner.c", "-o", program, "-lmemcached"], check=True)
    rng = random.Random(SEED)
    cases, asked = [], []
    for distribution, number in DISTRIBUTIONS.items():
        for hash_number, name in enumerate(LIBMEMCACHED_HASHES):
            if name == "hsieh":
                continue  # Debian's build lacks it, and answers 1 for every key.
            servers = []
            for i in range(rng.randrange(2, 40)):  # Above 100 it aborts.
                kind = rng.choice(["name", "name", "ip", "socket"])
                host = {"name": f"cache{i}.example", "ip": f"10.0.{rng.randrange(256)}.{i}",
                        "socket": f"/run/cache/{i}.sock"}[kind]
                port = 0 if kind == "socket" else rng.choice([11211, 11211, 11212, 21000 + i])
                servers.append([host, port, rng.choice([1, 1, 2, 5, 100]) if i % 2 else 1])
            keys = [key for key in key_set(rng, 200, ANY_BYTE)]
            asked.append(f"case {number} {hash_number}")
            asked += [f"server {host} {port} {weight}" for host, port, weight in servers]
            asked += [f"key {key.hex()}" for key in keys]
            cases.append(case_of(f"{distribution}/{name}", keys, None, distribution=distribution, hash=name,
                                 nodes=servers))
    done = subprocess.run([program], input="\n".join(asked) + "\n", text=True, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    for case, line in zip(cases, done.stdout.splitlines(), strict=True):
        case["assign"] = [int(index) for index in line.split()]
    agree(tmp_path, "libmemcached", cases)


# --- nginx and HAProxy --------------------------------------------------------------------------------------------

def ask(port, keys):
    """Sends each key in the header X-Key; the last byte of each body is the index of the server that took it."""
    requests = b"".join(b"GET / HTTP/1.1\r\nHost: x\r\nX-Key: " + key + b"\r\n\r\n" for key in keys)
    received, answered = b"", []
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(requests)
        while len(answered) < len(keys):
            part = connection.recv(65536)
            assert part, f"cut off after {len(answered)} answers: {received[-300:]}"
            received += part
            while (at := received.find(b"server=")) >= 0 and (end := received.find(b";", at)) >= 0:
                answered.append(int(received[at + 7:end]))
                received = received[end + 1:]
    return answered


def base62(indices):
    return "".join("0123456789abcdefghijklmnopqrstuvwxyz"[index] for index in indices)


def test_nginx(tmp_path):
    rng = random.Random(SEED)
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    ports = free_ports(19)
    sockets = [tmp_path / f"b{i}.sock" for i in range(3)]
    upstreams, fronts, cases = [], [], []
    for number in range(10):
        chosen = rng.sample(range(12), rng.randrange(2, 12))
        servers = []
        for server in chosen:
            address = f"127.0.0.1:{ports[server]}" if server < 9 else f"unix:{sockets[server - 9]}"
            weight = rng.choice([1, 1, 2, 3, 10])
            servers.append(address if weight == 1 and rng.random() < 0.5 else f"{address} weight={weight}")
        directive = f"hash $http_x_key{' consistent' if number % 2 else ''};"
        upstreams.append(f"upstream u{number} {{ {directive} {' '.join(f'server {s};' for s in servers)} }}")
        fronts.append(ports[9 + number])
        cases.append((chosen, {"directive": directive, "servers": servers}))
    backends = [f"server {{ listen {where}; return 200 'server={i};'; }}"
                for i, where in enumerate([f"127.0.0.1:{port}" for port in ports[:9]] + [f"unix:{s}" for s in sockets])]
    proxies = [f"server {{ listen 127.0.0.1:{port}; keepalive_requests 100000; location / {{ proxy_pass http://u{i}; }} }}"
               for i, port in enumerate(fronts)]
    temporary = " ".join(f"{kind}_temp_path {tmp_path}/{kind};"
                         for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; user root; worker_processes 1; error_log stderr; pid {tmp_path}/pid; events {{ worker_connections 512; }}\n"
        f"http {{ access_log off; {temporary}\n" + "\n".join(upstreams + backends + proxies) + "\n}\n")
    peer = Process("nginx", [program, "-c", tmp_path / "nginx.conf", "-p", tmp_path, "-e", "stderr"], tmp_path).start()
    wait_until(lambda: peer.tail(), lambda: connects(fronts[0]))
    recorded = []
    for number, (chosen, fields) in enumerate(cases):
        keys = key_set(rng, 150, HEADER_BYTE)
        taken = [chosen.index(server) for server in ask(fronts[number], keys)]
        recorded.append(case_of(f"upstream {number}", keys, base62(taken), **fields))
    agree(tmp_path, "nginx", recorded)
    peer.end()


def test_haproxy(tmp_path):
    rng = random.Random(SEED)
    program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    ports = free_ports(8 + 16)
    parts = ["global\n  nbthread 1\n  tune.maxrewrite 2048\ndefaults\n  mode http\n  timeout client 10s\n"
             "  timeout server 10s\n  timeout connect 5s\n  option http-keep-alive"]
    for i, port in enumerate(ports[:8]):
        parts.append(f"listen b{i}\n  bind 127.0.0.1:{port}\n  http-request return status 200 content-type text/plain "
                     f"string \"server={i};\"")
    cases = []
    for number, (method, name, avalanche) in enumerate((m, h, a) for m in ("consistent", "map-based")
                                                       for h in ("sdbm", "djb2", "wt6", "crc32") for a in ("", " avalanche")):
        chosen = rng.sample(range(8), rng.randrange(2, 9))
        servers, lines = [], []
        for place, server in enumerate(chosen):
            identity = rng.choice([None, 100 + place, 7 * place + 3]) if number % 3 == 2 else None
            weight = rng.choice([1, 1, 2, 5, 50])
            servers.append({"name": f"s{place}", "addr": f"127.0.0.1:{ports[server]}", "weight": weight,
                            **({"id": identity} if identity else {})})
            lines.append(f"  server s{place} 127.0.0.1:{ports[server]} weight {weight}"
                         + (f" id {identity}" if identity else ""))
        front = ports[8 + number]
        hash_type = f"{method} {name}{avalanche}"
        parts.append(f"listen f{number}\n  bind 127.0.0.1:{front}\n  balance hdr(x-key)\n  hash-type {hash_type}\n"
                     + "\n".join(lines))
        cases.append((front, chosen, {"hash_type": hash_type, "servers": servers}))
    (tmp_path / "haproxy.cfg").write_text("\n".join(parts) + "\n")
    peer = Process("haproxy", [program, "-db", "-f", tmp_path / "haproxy.cfg"], tmp_path).start()
    wait_until(lambda: peer.tail(), lambda: connects(cases[-1][0]))
    recorded = []
    for front, chosen, fields in cases:
        keys = [key for key in key_set(rng, 120, HEADER_BYTE) if b'"' not in key]
        taken = [chosen.index(server) for server in ask(front, keys)]
        recorded.append(case_of(fields["hash_type"], keys, base62(taken), **fields))
    agree(tmp_path, "haproxy", recorded)
    peer.end()
