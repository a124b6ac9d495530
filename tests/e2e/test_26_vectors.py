"""`ringshift vectors`: recordings that are wrong in every answer are mended by --record; whatever is no recording is an
error that names the place, never a crash."""
import json
import shutil
from pathlib import Path

import pytest

from harness import cluster as harness

RECORDINGS = Path(__file__).parents[1] / "vectors"
NAMES = sorted(path.name for path in RECORDINGS.glob("*.json"))
# What a recording says of itself, or asks; everything else in it is an answer.
ASKED = {"keys", "class", "tie_keys", "tie_nginx_keys", "servers", "nodes", "weights", "names", "node_order", "hosts",
         "options", "id", "count", "M", "min_ring", "max_ring", "servers_in_yaml_order", "servers_in_conf_order", "v", "point",
         "is_weighted_after", "hash_tag", "supported", "crc32_of_all_values_le", "source", "note"}


def wrong(value, path=()):
    """`value` with every answer in it another one; what is asked stays as it is."""
    if path and path[-1] in ASKED or "seed3_py" in path:
        return value
    if isinstance(value, dict):
        return {name: wrong(item, path + (name,)) for name, item in value.items()}
    if path and path[-1] == "assign":
        return "".join(c if c == "-" else "1" if c == "0" else "0" for c in value)
    if isinstance(value, list):
        if path and path[-1] == "rows" and value and isinstance(value[0], list):
            return [[key, buckets, answer + 1] for key, buckets, answer in value]
        return [wrong(item, path + (None,)) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or "collision_point" in path:
        return value
    return value + 1


def folder(tmp_path):
    shutil.copy(RECORDINGS / "keys.json", tmp_path)
    shutil.copy(RECORDINGS / "dalli.json", tmp_path)  # ring_points.json names its servers.
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_record_puts_our_answers_in_the_place_of_wrong_ones(name, tmp_path):
    right = json.loads((RECORDINGS / name).read_text())
    changed = wrong(right)
    if name != "keys.json":
        assert changed != right
    path = folder(tmp_path) / name
    path.write_text(json.dumps(changed))
    if name != "keys.json":
        assert harness.run("vectors", str(path)).returncode == 1, "each answer is wrong"
    recorded = harness.run("vectors", "--record", str(path))
    assert recorded.returncode == 0, recorded.stderr
    ours = json.loads(recorded.stdout)
    assert ours.pop("recorded_by") == "ringshift"
    assert ours == right
    path.write_text(recorded.stdout)
    again = harness.run("vectors", str(path))
    assert again.returncode == 0, again.stdout


CASE = '{"peer": "twemproxy", "cases": [{"id": "x", "hash": "md5", "servers": ["h1:1:1", "h2:1:1"], %s}]}'
BAD = {
    "cut short": (b'{"peer": "twemproxy", "cases": [{"id":', b"line 1"),
    "no UTF-8": (b'{"peer": "twem\xff\xfeproxy", "cases": []}', b"ill-formed UTF-8"),
    "a list": (b"[1, 2]", b"not a recording"),
    "empty": (b"", b""),
    "cases of another type": (b'{"peer": "twemproxy", "cases": {"a": 1}}', b"the block 'cases'"),
    "a case of another type": (b'{"peer": "twemproxy", "keys": ["61"], "cases": ["a", 7, null]}', b"no list 'servers'"),
    "an answer too few": ((CASE % '"keys": ["61", "62"], "assign": "0"').encode(), b"1 answers for 2 keys"),
    "an answer too many": ((CASE % '"keys": ["61"], "assign": "00"').encode(), b"2 answers for 1 keys"),
    "no base62": ((CASE % '"keys": ["61"], "assign": "\\u00e9"').encode(), b"answer 0 is the byte 0xc3"),
    "no answers": ((CASE % '"keys": ["61"]').encode(), b"no 'assign'"),
    "no key set": ((CASE % '"assign": "0"').encode(), b"the key set keys.json beside the recording cannot be read"),
    "a key set elsewhere": ((CASE % '"keys_file": "../keys.json", "assign": "0"').encode(), b"../keys.json"),
    "keys that are no hex": ((CASE % '"keys": ["6"], "assign": "0"').encode(), b"key 0 is not hex: '6'"),
    "a table of another size": (b'{"peer": "Cilium", "t": {"hosts": ["a:1"], "M": 7, "table": [0]}}', b"M is 7"),
    "a table that is not prime": (b'{"peer": "Cilium", "t": {"hosts": ["a:1"], "M": 8, "table": [0]}}', b"no M"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_recording_is_an_error_that_says_why(what, tmp_path):
    content, message = BAD[what]
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    done = harness.run("vectors", str(path))
    assert done.returncode == 1
    assert message.decode() in done.stdout + done.stderr, done.stdout + done.stderr
    assert harness.run("vectors", "--record", str(path)).returncode in (0, 1)


def test_a_file_without_answers_is_named_and_no_failure(tmp_path):
    done = harness.run("vectors", str(folder(tmp_path) / "keys.json"))
    assert done.returncode == 0
    assert "no recorded answers: a key set of 930 keys" in done.stdout


def test_all_recordings_match_and_what_is_not_computed_is_said():
    files = [str(RECORDINGS / name) for name in NAMES]
    done = harness.run("vectors", *files, check=0)
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == last[2] and last[3:] == ["assignments", "match"], done.stdout[-400:]
    assert "seed3_py: NOT COMPUTED, 12 recorded figures" in done.stdout
    assert harness.run("vectors", "--strict", *files).returncode == harness.FAILED
