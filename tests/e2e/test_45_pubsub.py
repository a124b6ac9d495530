"""Publish and subscribe with real client libraries while the cluster grows and shrinks: nobody misses a message, none
comes twice."""
import json
import subprocess
import threading
import time
from collections import Counter

import redis

CHANNELS = [f"live:{i}" for i in range(40)]


class Publisher(threading.Thread):
    """Publishes numbered texts to one channel after another, until told to stop."""

    def __init__(self, client, name):
        super().__init__()
        self.client, self.name, self.sent, self.failed, self.stopping = client, name, [], [], threading.Event()

    def run(self):
        while not self.stopping.is_set() and not self.failed:
            text = f"{self.name}-{len(self.sent)}"
            try:
                self.client.publish(CHANNELS[len(self.sent) % len(CHANNELS)], text)
            except redis.RedisError as error:
                self.failed.append(repr(error))
            self.sent.append(text)
            time.sleep(0.001)


class Listener(threading.Thread):
    """redis-py. An error ends it: a subscriber's connection must not break."""

    def __init__(self, client, proxy, patterns):
        super().__init__()
        self.name = f"redis-py at proxy {proxy}{', patterns' if patterns else ''}"
        self.listener, self.heard, self.failed, self.stopping = client.pubsub(), [], [], threading.Event()
        subscribe, names = (self.listener.psubscribe, ["live:*"]) if patterns else (self.listener.subscribe, CHANNELS)
        subscribe(*names)
        for _ in names:
            assert self.listener.get_message(timeout=5)["type"].endswith("subscribe")

    def run(self):
        try:
            while True:
                message = self.listener.get_message(timeout=0.2)
                if message is not None:
                    self.heard.append(message["data"].decode())
                elif self.stopping.is_set():
                    return
        except redis.RedisError as error:
            self.failed.append(repr(error))


def test_nobody_misses_a_message_through_growth_and_shrink(make_cluster, node_clients):
    cluster = make_cluster(members=4, proxies=2).start()
    cluster.add_member()
    four, five = cluster.write_spec(members=["cache-1", "cache-2", "cache-3", "cache-4"]), cluster.write_spec()
    cluster.fill(2000)
    listeners = [Listener(cluster.client(proxy), proxy, patterns) for proxy in (0, 1) for patterns in (False, True)]
    node = subprocess.Popen(["node", "subscribers.mjs", str(cluster.proxies[0].port), str(len(CHANNELS))],
                            cwd=node_clients, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    publishers = [Publisher(cluster.client(proxy), f"p{proxy}") for proxy in (0, 1)]
    try:
        assert node.stdout.readline() == "ready\n", node.stderr.read()
        for thread in listeners + publishers:
            thread.start()
        cluster.resize_start(five)
        cluster.assert_placed(five)
        cluster.resize_start(four)
        cluster.assert_placed(four)
    finally:
        for publisher in publishers:
            publisher.stopping.set()
        for publisher in publishers:
            if publisher.ident:
                publisher.join()
        time.sleep(0.3)
        for listener in listeners:
            listener.stopping.set()
        for listener in listeners:
            if listener.ident:
                listener.join()
        out, err = node.communicate(timeout=20)
    assert node.returncode == 0, err
    assert [p.failed for p in publishers] == [[], []]
    sent = [text for publisher in publishers for text in publisher.sent]
    assert len(sent) > 200
    everyone = {listener.name: listener.heard for listener in listeners} | json.loads(out)
    for name, heard in everyone.items():
        counted = Counter(heard)
        missed = [text for text in sent if text not in counted]
        twice = [text for text, times in counted.items() if times > 1]
        assert not missed and not twice, f"{name}: missed {len(missed)} {missed[:5]}, twice {len(twice)} {twice[:5]}"
    assert all(listener.failed == [] for listener in listeners)


def test_a_member_that_dies_ends_its_subscribers_who_come_back(make_cluster):
    cluster = make_cluster(members=3, proxies=1).start()
    listener = cluster.client().pubsub()
    listener.psubscribe("*")
    assert listener.get_message(timeout=5)["type"] == "psubscribe"
    victim = cluster.members[0]
    victim.process.kill()
    publisher = cluster.client()
    ended = time.monotonic() + 15
    victim.start()
    heard = None
    while heard is None and time.monotonic() < ended:
        try:  # redis-py subscribes again by itself on a new connection; until the member is there that is an error.
            message = listener.get_message(timeout=0.2)
            if message and message["type"] == "pmessage":
                heard = message["data"]
            publisher.publish("again", "here")
        except redis.RedisError:
            time.sleep(0.1)
    assert heard == b"here"
