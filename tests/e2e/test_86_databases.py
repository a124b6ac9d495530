"""A cluster of several databases: real clients, two proxies, and what a resize says of it."""
import json
import threading

import pytest
import redis

from harness.cluster import FAILED, RINGSHIFT, run
from harness.process import Process, free_port, wait_until


def test_clients_of_all_databases_at_once(make_cluster):
    cluster = make_cluster(members=4, proxies=2)
    cluster.start_static(cluster.write_spec(databases=16))
    faults = []

    def work(database):
        try:
            clients = [cluster.client(proxy, db=database) for proxy in range(2)]
            for i in range(150):
                assert clients[i % 2].set(f"k{i}", f"{database}:{i}")
            pipeline = clients[0].pipeline(transaction=False)
            for i in range(150):
                pipeline.get(f"k{i}")
            assert pipeline.execute() == [f"{database}:{i}".encode() for i in range(150)]
            assert clients[1].mget([f"k{i}" for i in range(150)]) == [f"{database}:{i}".encode() for i in range(150)]
            assert clients[0].dbsize() == 150 and len(set(clients[1].scan_iter(count=20))) == 150
            with clients[0].pipeline() as transaction:
                assert transaction.incr("{t}n").incr("{t}n").execute() == [1, 2]
        except Exception as error:  # pylint: disable=broad-except
            faults.append(f"database {database}: {type(error).__name__}: {error}")
    threads = [threading.Thread(target=work, args=(database,)) for database in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults, faults
    # Where the members themselves have them.
    held = [redis.Redis(port=member.port, db=7).dbsize() for member in cluster.members]
    assert sum(held) == 151 and min(held) > 10, held
    with pytest.raises(redis.ResponseError, match="DB index is out of range"):
        cluster.client(db=16).ping()


def test_a_member_with_fewer_databases_says_so(make_cluster):
    cluster = make_cluster(members=2, proxies=0)
    small = Process("small", ["redis-server", "--port", free_port(), "--bind", "127.0.0.1", "--save", "", "--databases",
                              "2"], cluster.directory).start()
    try:
        port = int(small.command[2])
        document = {**cluster.spec_document(databases=16), "members": [{"id": "small", "address": f"127.0.0.1:{port}"}]}
        spec = cluster.directory / "small.json"
        spec.write_text(json.dumps(document))
        wait_until("it serves", lambda: b"ready" in small.out.read_bytes().lower())
        cluster.start_static(spec, proxies=1)
        assert cluster.client(db=1).set("a", 1)
        with pytest.raises(redis.ResponseError, match="small.*refuses database 5.*DB index is out of range"):
            cluster.client(db=5).set("a", 1)
        assert cluster.client(db=0).get("a") is None
    finally:
        small.kill()


def test_a_resize_needs_one_database(make_cluster):
    cluster = make_cluster(members=3, proxies=1)
    sixteen = cluster.write_spec(databases=16)
    cluster.start(sixteen)
    third = cluster.client(db=3)
    assert third.set("a", 1) and third.get("a") == b"1", "by connections that a stamp is asked of, too"
    written = cluster.fill(500)
    cluster.add_member()
    for wanted, word in ((cluster.write_spec(), "present"), (cluster.write_spec(databases=16), "present")):
        refused = cluster.resize_start(wanted, wait=False, check=FAILED)
        assert f"the {word} spec has databases: 16" in refused.stderr, refused.stderr
    assert third.get("a") == b"1"
    members = ["cache-1", "cache-2", "cache-3"]
    cluster.apply(cluster.write_spec(members=members))
    # The client of a database that is gone is disconnected; its new connection is refused.
    wait_until("there is one database", lambda: refused_now(cluster))
    refused = cluster.resize_start(cluster.write_spec(databases=2), wait=False, check=FAILED)
    assert "the new spec has databases: 2" in refused.stderr
    refused = cluster.resize_start(cluster.write_spec(), wait=False, check=FAILED)
    assert "database 3 has keys" in refused.stderr, refused.stderr
    for member in cluster.members:
        other = redis.Redis(port=member.port, db=3)
        other.flushdb()
        other.connection_pool.disconnect()
    four = cluster.write_spec()
    cluster.resize_start(four)
    cluster.assert_placed(four)
    cluster.assert_filled(written)


def refused_now(cluster):
    try:
        return not cluster.client(db=3).ping()
    except redis.ResponseError as error:
        return "out of range" in str(error)


def test_databases_after_a_resize(make_cluster):
    """With a stamp at the members, which lies in database 0 and is neither counted nor flushed in any."""
    cluster = make_cluster(members=3, proxies=0)
    cluster.start()
    cluster.add_proxy("--allow-flush")
    cluster.add_member()
    cluster.resize_start(cluster.write_spec())
    cluster.apply(cluster.write_spec(databases=4))
    client = wait_until("there are four databases", lambda: selected(cluster, 2))
    assert client.dbsize() == 0 and client.set("a", 1) and client.dbsize() == 1
    stamps = [redis.Redis(port=member.port).get("rs:stamp") for member in cluster.members]
    assert all(stamps), stamps
    assert client.flushall() and client.dbsize() == 0
    assert [redis.Redis(port=member.port).get("rs:stamp") for member in cluster.members] == stamps
    assert client.set("b", 1) and client.flushdb() and client.dbsize() == 0
    assert not any(redis.Redis(port=member.port, db=2).dbsize() for member in cluster.members)


def selected(cluster, database):
    client = cluster.client(db=database)
    try:
        return client.ping() and client
    except redis.ResponseError:
        return None


def test_wrong_numbers_of_databases(make_cluster):
    cluster = make_cluster(members=2, proxies=0)
    for wrong in (0, 257, "many"):
        spec = cluster.write_spec(databases=wrong)
        said = run("proxy", "--spec", spec, "--listen", "127.0.0.1:0")
        assert said.returncode == FAILED and "databases" in said.stderr, said.stderr


def test_the_fewest_of_the_clusters_count(make_cluster):
    """Two clusters behind one proxy, with four databases and two; a user who reaches one of them has its four."""
    cluster = make_cluster(members=2, proxies=0)
    files = []
    for name, member, databases in (("left", "cache-1", 4), ("right", "cache-2", 2)):
        document = {**cluster.spec_document(members=[member], databases=databases), "cluster": name}
        files.append(cluster.directory / f"{name}.json")
        files[-1].write_text(json.dumps(document))
    port = free_port()
    file = cluster.directory / "proxy.yaml"
    file.write_text(f"listen: 127.0.0.1:{port}\nclusters:\n  - {{name: left, spec: left.json}}\n"
                    "  - {name: right, spec: right.json}\n"
                    'users:\n  - {name: default, rules: "on nopass ~* &* +@all"}\n'
                    '  - {name: al, rules: "on >al ~* &* +@all"}\n'
                    'routes:\n  - {prefix: "r:", cluster: right}\n  - {cluster: left}\n'
                    "  - {cluster: left, user: al}\n")
    proxy = Process("proxy", [RINGSHIFT, "proxy", "--config", file], cluster.directory)
    cluster.proxies.append(proxy.start())
    proxy.wait_ready()
    both = redis.Redis(port=port, db=1)
    assert both.set("r:1", "right") and both.set("l", "left") and both.dbsize() == 2
    assert set(both.scan_iter()) == {b"r:1", b"l"}
    with pytest.raises(redis.ResponseError, match="out of range"):
        redis.Redis(port=port, db=2).ping()
    al = redis.Redis(port=port, db=3, username="al", password="al")
    assert al.set("r:1", "of al") and al.get("r:1") == b"of al" and list(al.scan_iter()) == [b"r:1"]
    assert redis.Redis(port=cluster.members[0].port, db=3).get("r:1") == b"of al"
    one = redis.Redis(port=port, db=1, username="al", password="al")
    assert one.get("l") == b"left" and list(one.scan_iter()) == [b"l"]
