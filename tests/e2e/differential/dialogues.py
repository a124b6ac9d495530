"""Holds the dialogues of dialogues.txt with one server."""
import shlex
import time
from pathlib import Path

from .resp import Closed, Connection, encode


def read_dialogues():
    found = {}
    for line in Path(__file__).with_name("dialogues.txt").read_text().splitlines():
        if line.startswith("== "):
            lines = found[line[3:]] = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def words(text):
    return [word.encode().replace(b"\\n", b"\n") for word in shlex.split(text)]


def hold(lines, port, protocol):
    """Yields (line, arguments, answer); an answer is the bytes of a reply, or a word for what happened instead."""
    connections, sent = {}, {}
    try:
        for line in lines:
            who, _, text = line.partition(" ")
            name, mode = who[:1], who[1:]
            if name == ".":
                time.sleep(0.03)
                continue
            if name not in connections:
                connections[name] = Connection(port, timeout=2.0)
                connections[name].ask("HELLO", protocol)
            arguments = words(text)
            if mode == ">":
                sent.setdefault(name, []).append(arguments)
            elif mode == "<" and sent.get(name):
                arguments = sent[name].pop(0)
            try:
                yield line, arguments or [b"?"], _step(connections[name], mode, arguments)
            except Closed as closed:
                yield line, arguments or [b"?"], str(closed).split(",")[0].encode()
    finally:
        for connection in connections.values():
            connection.close()


def _step(connection, mode, arguments):
    if mode == "#":
        return b"silence" if connection.silent(0.06) else b"something"
    if mode == "!":
        return b"closed" if connection.closed() else b"open"
    if mode == "!!":
        connection.close()
        return b"left"
    if mode == ">":
        connection.send(encode(arguments))
        return b"sent"
    if mode == "<":
        return connection.reply()
    return connection.ask(*arguments)
