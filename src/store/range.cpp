// Reading: the present, the past, and the events between them.
#include <algorithm>
#include <cassert>
#include <climits>

#include "store/errors.h"
#include "store/write.h"

namespace ringshift::store {
namespace {

constexpr std::size_t kHistoryBytes = 1U << 20;  // One portion of history, give or take a revision.

KeyValue row(const Statement& statement) {
  return {statement.blob(0),    statement.blob(1),    statement.integer(2),
          statement.integer(3), statement.integer(4), statement.integer(5)};
}

bool to_the_end(const std::string& range_end) { return range_end.size() == 1 && range_end[0] == '\0'; }

bool less(const KeyValue& a, const KeyValue& b, SortTarget target) {
  switch (target) {
    case SortTarget::version:
      return a.version < b.version;
    case SortTarget::create:
      return a.create_revision < b.create_revision;
    case SortTarget::mod:
      return a.mod_revision < b.mod_revision;
    case SortTarget::value:
      return a.value < b.value;
    case SortTarget::key:
      break;
  }
  return a.key < b.key;
}

bool outside(const KeyValue& kv, const RangeRequest& r) {
  return (r.min_mod > 0 && kv.mod_revision < r.min_mod) || (r.max_mod > 0 && kv.mod_revision > r.max_mod) ||
         (r.min_create > 0 && kv.create_revision < r.min_create) ||
         (r.max_create > 0 && kv.create_revision > r.max_create);
}

}  // namespace

std::vector<KeyValue> Store::current(const std::string& key, const std::string& range_end) {
  std::vector<KeyValue> kvs;
  const auto collect = [&](Statement& statement) {
    while (statement.step()) kvs.push_back(row(statement));
  };
  if (range_end.empty()) {
    Statement one = db_->statement(
        "SELECT h.key,h.value,h.create_revision,h.revision,h.version,h.lease FROM current c JOIN history h "
        "ON h.id=c.id WHERE c.key=?1");
    collect(one.bind(1, key));
  } else if (to_the_end(range_end)) {
    Statement rest = db_->statement(
        "SELECT h.key,h.value,h.create_revision,h.revision,h.version,h.lease FROM current c JOIN history h "
        "ON h.id=c.id WHERE c.key>=?1 ORDER BY c.key");
    collect(rest.bind(1, key));
  } else {
    Statement part = db_->statement(
        "SELECT h.key,h.value,h.create_revision,h.revision,h.version,h.lease FROM current c JOIN history h "
        "ON h.id=c.id WHERE c.key>=?1 AND c.key<?2 ORDER BY c.key");
    collect(part.bind(1, key).bind(2, range_end));
  }
  return kvs;
}

std::vector<KeyValue> Store::past(const std::string& key, const std::string& range_end, Revision revision) {
  // The newest version of each key at `revision`; deleted keys fall out.
  Statement query = db_->statement(
      "SELECT key,value,create_revision,revision,version,lease FROM history AS h WHERE key>=?1 AND (?3 OR "
      "key<?2) "
      "AND revision<=?4 AND NOT deleted AND NOT EXISTS (SELECT 1 FROM history AS newer WHERE newer.key=h.key "
      "AND "
      "newer.revision>h.revision AND newer.revision<=?4) ORDER BY key");
  const std::string end = range_end.empty() ? key + '\0' : range_end;
  query.bind(1, key).bind(2, end).bind(3, std::int64_t{to_the_end(range_end)}).bind(4, revision);
  std::vector<KeyValue> kvs;
  while (query.step()) kvs.push_back(row(query));
  return kvs;
}

Result<RangeResult> Store::range(const RangeRequest& request) {
  return guarded([&] { return range_at(request, revision_); });
}

RangeResult Store::range_at(const RangeRequest& request, Revision now) {
  if (request.key.empty()) throw Failure{{ErrorKind::invalid, errors::kEmptyKey}};
  if (request.revision > now) throw Failure{{ErrorKind::invalid, errors::kFutureRevision}};
  if (request.revision > 0 && request.revision < compacted_)
    throw Failure{{ErrorKind::stale, errors::kCompacted}};
  RangeResult result;
  result.revision = now;
  result.kvs = request.revision > 0 && request.revision < now
                   ? past(request.key, request.range_end, request.revision)
                   : current(request.key, request.range_end);
  result.count = static_cast<std::int64_t>(result.kvs.size());
  if (request.count_only) {
    result.kvs.clear();
    return result;
  }
  std::erase_if(result.kvs, [&](const KeyValue& kv) { return outside(kv, request); });
  if (request.order == SortOrder::descend) {
    std::stable_sort(result.kvs.begin(), result.kvs.end(),
                     [&](const KeyValue& a, const KeyValue& b) { return less(b, a, request.target); });
  } else if (request.target != SortTarget::key) {
    std::stable_sort(result.kvs.begin(), result.kvs.end(),
                     [&](const KeyValue& a, const KeyValue& b) { return less(a, b, request.target); });
  }
  if (request.limit > 0 && static_cast<std::int64_t>(result.kvs.size()) > request.limit) {
    result.kvs.resize(static_cast<std::size_t>(request.limit));
    result.more = true;
  }
  if (request.keys_only) {
    for (KeyValue& kv : result.kvs) kv.value.clear();
  }
  return result;
}

Result<Store::History> Store::history(const std::string& key, const std::string& range_end, Revision from,
                                      std::size_t limit) {
  return guarded([&] {
    assert(!grouped_);  // What it gives is told at once.
    if (from < compacted_) throw Failure{{ErrorKind::stale, errors::kCompacted}};
    Statement query = db_->statement(
        "SELECT key,value,create_revision,revision,version,lease,deleted FROM history WHERE revision>=?1 "
        "ORDER BY revision, id");
    query.bind(1, from);
    History found;
    std::size_t bytes = 0;
    found.next = revision_ + 1;
    while (query.step()) {
      const Revision revision = query.integer(3);
      // A revision is never cut in two: stop at the first row of the one after the limit was reached.
      if ((found.events.size() >= limit || bytes >= kHistoryBytes) && !found.events.empty() &&
          revision != found.events.back().kv.mod_revision) {
        found.next = revision;
        break;
      }
      if (!in_range(query.blob(0), key, range_end)) continue;
      KeyValue kv = row(query);
      const bool removed = query.integer(6) != 0;
      bytes += kv.key.size() + kv.value.size();
      found.events.push_back({removed, std::move(kv)});
    }
    return found;
  });
}

Result<std::optional<KeyValue>> Store::before(const std::string& key, Revision revision) {
  return guarded([&]() -> std::optional<KeyValue> {
    Statement query = db_->statement(
        "SELECT key,value,create_revision,revision,version,lease,deleted FROM history WHERE key=?1 AND "
        "revision<?2 "
        "ORDER BY revision DESC LIMIT 1");
    query.bind(1, key).bind(2, revision);
    if (!query.step() || query.integer(6) != 0) return std::nullopt;
    return row(query);
  });
}

}  // namespace ringshift::store
