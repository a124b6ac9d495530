"""docs/limits.md says what the source says: each bound named here is looked up in both."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"MiB": 1 << 20, "KiB": 1 << 10, "GiB": 1 << 30, "MB": 1 << 20}

# Source, the name in it, how the row of the page begins, and which of the numbers in that row it is.
BOUNDS = [
    ("src/topology/validate.h", "kMaxMembers", "members of a cluster", 0),
    ("src/topology/document.h", "kMaxTextBytes", "a spec file", 0),
    ("src/topology/document.h", "kMaxDepth", "a spec file", 1),
    ("src/topology/document.h", "kMaxNodes", "a spec file", 2),
    ("src/topology/validate.h", "kMaxNameBytes", "id, cluster, zone, host", 0),
    ("src/topology/validate.h", "kMaxAddressBytes", "address; path of a unix socket", 0),
    ("src/topology/address.cpp", "kMaxUnixPath", "address; path of a unix socket", 1),
    ("src/topology/validate.h", "kMaxWeight", "`weight`", 1),
    ("src/topology/validate.h", "kMaxPointsPerWeight", "`placement.points`", 0),
    ("src/topology/validate.h", "kMaxPoints", "`placement.points`", 1),
    ("src/topology/validate.h", "kMaxResidues", "`modulo`", 0),
    ("src/topology/validate.h", "kMaxTableSize", "`maglev`", 0),
    ("src/placement/multi_probe.h", "kMaxProbes", "`multi-probe`", 0),
    ("src/placement/partitions.h", "kMaxPartitions", "`partitions`", 0),
    ("src/topology/validate.h", "kMaxDatabases", "`databases`", 0),
    ("src/discovery/instances.h", "kInstancesMax", "instances of a source", 0),
    ("src/discovery/instances.h", "kLabelsMax", "labels of an instance", 0),
    ("src/discovery/instances.h", "kLabelBytesMax", "labels of an instance", 1),
    ("src/discovery/guard.h", "kConfirmAfter", "a list that lost more than half", 0),
    ("include/ringshift/topology.h", "move_keys_per_second", "`move_keys_per_second`", 0),
    ("include/ringshift/topology.h", "move_bytes_per_second", "`move_bytes_per_second`", 0),
    ("include/ringshift/topology.h", "move_latency_ms", "`move_latency_ms`", 0),
    ("include/ringshift/topology.h", "origin_misses_per_second", "`origin_misses_per_second`", 0),
    ("include/ringshift/topology.h", "big_key_bytes", "`big_key_bytes`", 0),
    ("include/ringshift/topology.h", "move_batch_keys", "`move_batch_keys`", 0),
    ("src/topology/validate.cpp", "kMaxBatch", "`move_batch_keys`", 1),
    ("include/ringshift/topology.h", "move_batches_in_flight", "`move_batches_in_flight`", 0),
    ("src/topology/validate.cpp", "kMaxInFlight", "`move_batches_in_flight`", 1),
    ("include/ringshift/topology.h", "move_batches_in_all", "`move_batches_in_all`", 0),
    ("include/ringshift/topology.h", "move_memory_bytes", "`move_memory_bytes`", 0),
    ("src/resize/controller.h", "lease_ttl", "controller's lease", 0),
    ("src/resize/members.cpp", "kRequestTimeout", "the controller's wait for a member", 0),
    ("src/backend/sync_client.h", "request_timeout", "the controller's wait for a member", 1),
    ("src/resize/mover_source.h", "kTriesMax", "the controller's wait for a member", 4),
    ("src/resize/controls.h", "kMaxConditions", "conditions in", 0),
    ("src/resize/mover.h", "kBigKeysListed", "big keys named", 0),
    ("src/resize/mover.h", "kHotKeysMax", "hot keys that go first", 0),
    ("src/coord/router_record.h", "kHotKeysMax", "hot keys that go first", 1),
    ("src/resize/decisions.h", "kResizesLogged", "logs kept", 0),
    ("src/resize/decisions.h", "kDecisionsKept", "logs kept", 1),
    ("src/resize/decisions.h", "kDecisionTextMax", "logs kept", 2),
    ("src/resize/leader_steps.cpp", "kHistoryKept", "topologies kept", 0),
    ("src/proxy/proxy.h", "max_clients", "clients: `--max-clients`", 0),
    ("src/proxy/proxy.h", "max_in_flight", "commands of one client without an answer", 0),
    ("src/proxy/proxy.h", "cut_output_bytes", "unread answers of one client", 0),
    ("src/proxy/proxy.h", "max_total_output_bytes", "unread answers of all clients", 0),
    ("src/proxy/proxy.h", "max_output_bytes", "unread answers of all clients", 1),
    ("src/proxy/settings.h", "kPubsubOutput", "unread messages of one subscriber", 0),
    ("src/proxy/proxy.h", "max_member_queue_bytes", "unsent commands of one connection", 0),
    ("src/backend/connection.h", "kMaxPending", "commands without an answer on such", 0),
    ("src/backend/backend.h", "max_private", "private connections", 0),
    ("src/backend/backend.h", "max_idle_per_member", "private connections", 1),
    ("src/proxy/proxy.h", "request_timeout", "wait for a member: `--request", 0),
    ("src/proxy/proxy.h", "connect_timeout", "wait for a connection: `--connect", 0),
    ("src/proxy/proxy.h", "hold_timeout", "wait in HOLD", 0),
    ("src/proxy/dual_router.h", "max_parked_bytes", "commands parked in HOLD", 0),
    ("src/proxy/dual_router.h", "max_waiting_bytes", "commands parked in HOLD", 1),
    ("src/proxy/dual_router.h", "max_known_bytes", "names of keys known", 0),
    ("src/proxy/proxy.h", "shutdown_grace", "drain at SIGTERM", 0),
    ("src/proxy/proxy.h", "drain_timeout", "drain at SIGTERM", 1),
    ("src/config/proxy_file.cpp", "kMaxRoutes", "routes in the file", 0),
    ("src/access/user.h", "kMaxRules", "routes in the file", 1),
    ("src/protocol/resp/reply_framer.h", "kMaxBulk", "a value, an argument", 0),
    ("src/proxy/transaction.h", "kMaxBlockBytes", "a `MULTI` block", 0),
    ("src/protocol/resp/command_parser.h", "kStrangersBulkBytes", "an argument of a client that has not", 0),
    ("src/backend/backend.h", "max_handed_over", "answers passed on in pieces", 0),
    ("src/backend/backend.h", "large_reply", "answers passed on in pieces", 1),
    ("src/proxy/session.cpp", "kMaxBehindBlocked", "what is sent behind a waiting command", 0),
    ("src/proxy/subscriber.h", "kMaxNames", "channels and patterns", 0),
    ("src/proxy/pubsub_hub.h", "kMaxNames", "channels and patterns", 1),
    ("src/proxy/scan_state.h", "kMaxScans", "`SCAN`s under way", 0),
    ("src/proxy/scan_state.h", "kForgotten", "`SCAN`s under way", 1),
    ("src/proxy/scan_state.h", "kMaxHashes", "keys that move under one", 0),
    ("src/proxy/scan_state.h", "kMaxHashesOfAll", "keys that move under one", 1),
    ("src/proxy/script_cache.h", "kMaxScripts", "scripts that the proxy remembers", 0),
    ("src/proxy/script_cache.h", "kMaxBytes", "scripts that the proxy remembers", 1),
    ("src/proxy/proxy.h", "slowlog_max_len", "`SLOWLOG`", 0),
    ("src/proxy/acl_log.h", "kMaxEntries", "`ACL LOG`", 0),
    ("src/base/line_writer.h", "kMaxLines", "log lines not yet read", 0),
    ("src/base/line_writer.h", "kMaxBytes", "log lines not yet read", 1),
    ("src/registry/request.h", "kRequestBytesMax", "a request's keys and values", 1),
    ("src/registry/server.cpp", "kBodyBytesMax", "an HTTP body", 0),
    ("src/http/server.h", "header_bytes_max", "an HTTP body", 1),
    ("src/store/store.h", "kMaxTxnOps", "operations in a transaction", 0),
    ("src/store/store.h", "kMinLeaseSeconds", "a lease's time to live", 0),
    ("src/store/store.h", "kMaxLeaseSeconds", "a lease's time to live", 1),
    ("src/registry/watch_hub.h", "kWatchesMax", "watches; of one stream", 0),
    ("src/registry/watch_hub.h", "kWatchesPerStream", "watches; of one stream", 1),
    ("src/registry/watch_hub.h", "kBacklogMax", "bytes that a watcher", 0),
    ("src/registry/watch_hub.h", "kBacklogOfOwnerMax", "bytes that a watcher", 1),
    ("src/registry/verbs.cpp", "kLeasesPerToken", "leases of one token", 0),
    ("src/registry/rights.h", "kRecordBytesMax", "a record of `register-own`", 0),
    ("src/registry/verbs.cpp", "kKeysPerLease", "a record of `register-own`", 1),
    ("src/store/store.h", "retain_revisions", "revisions kept", 0),
    ("src/http/server.h", "idle_timeout", "idle connections; a reader", 0),
    ("src/http/server.h", "write_timeout", "idle connections; a reader", 1),
    ("src/http/client.h", "kAnswerBytesMax", "what a client of ours accepts", 0),
    ("src/telemetry/exposition.h", "kSamplesMax", "samples of one metric", 0),
    ("src/coord/router_record.h", "kMembersMax", "members that a router tells", 0),
    ("src/admin/listener.h", "kWorkers", "slow requests at work", 0),
    ("src/admin/listener.h", "kQueued", "slow requests at work", 1),
    ("src/admin/bodies.h", "kBodyBytesMax", "a body of the API", 0),
    ("src/admin/bodies.h", "kListMax", "a body of the API", 1),
    ("src/admin/events.h", "kStreamsMax", "streams of events", 0),
    ("src/admin/events.h", "kBacklogMax", "bytes that a reader", 0),
    ("src/admin/events.h", "kSnapshotMax", "bytes that a reader", 1),
    ("src/admin/tokens.h", "kTokensMax", "tokens in", 0),
    ("src/admin/audit.h", "kAuditKept", "actions kept", 0),
    ("src/plan/compare/key_set.h", "kMaxKeys", "`ringshift compare`", 0),
    ("src/plan/compare/change.h", "kMaxSyntheticMembers", "`ringshift compare`", 2),
    ("src/import/import.h", "kMaxTextBytes", "`ringshift import`", 0),
    ("src/import/import.h", "kMaxPools", "`ringshift import`", 1),
    ("src/check/workload.h", "kMaxClients", "`ringshift check`", 0),
    ("src/check/workload.h", "kMaxPipeline", "`ringshift check`", 1),
    ("src/check/workload.h", "kMaxValueBytes", "`ringshift check`", 2),
]


def in_source(path, name):
    """The value that `name` is given, as a number: literals, shifts and products only."""
    found = re.search(rf"\b{name}\s*(?:=\s*([^;,]+)|\{{([^}}]+)\}});", (ROOT / path).read_text())
    assert found, f"{path} gives {name} no value: the bound has another name or place"
    text = re.sub(r"(?<=\d)'(?=\d)", "", (found[1] or found[2]).replace("\n", " "))
    text = re.sub(r"std::size_t\{(\d+)\}", r"\1", text)
    text = re.sub(r"(?<=\d)(?:U|L|UL|LL|ULL)\b", "", text).strip()
    assert re.fullmatch(r"[\d\s.<>+*()-]+", text), f"{path}: {name} is '{text}', which this test cannot read"
    return eval(text)  # noqa: S307: digits and operators, as was just seen


def rows():
    for line in (ROOT / "docs/limits.md").read_text().splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def on_page(row, place):
    found = [cells for cells in rows() if cells[0].strip("| ").startswith(row)]
    assert len(found) == 1, f"docs/limits.md has {len(found)} rows that begin with '{row}'"
    text = re.sub(r"`--[^`]*`", "", " ".join(found[0][1:]))
    numbers = [float(number.replace(",", "")) * UNITS.get(unit, 1)
               for number, unit in re.findall(r"(\d[\d,]*(?:\.\d+)?)(?:\s+(KiB|MiB|GiB|MB)\b)?", text)]
    assert place < len(numbers), f"the row '{row}' has {len(numbers)} numbers"
    return numbers[place]


@pytest.mark.parametrize("path, name, row, place", BOUNDS, ids=[f"{Path(path).stem}:{name}" for path, name, _, _ in BOUNDS])
def test_the_page_has_the_bound(path, name, row, place):
    assert on_page(row, place) == in_source(path, name), f"{path}: {name}, and the row '{row}' of docs/limits.md"
