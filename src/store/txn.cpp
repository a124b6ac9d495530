// Transactions: compares against the state before, then one branch of operations under one revision.
#include <algorithm>

#include "store/errors.h"
#include "store/write.h"

namespace ringshift::store {
namespace {

template <class T>
bool matches(const T& left, const T& right, Compare::Result wanted) {
  switch (wanted) {
    case Compare::Result::equal:
      return left == right;
    case Compare::Result::greater:
      return left > right;
    case Compare::Result::less:
      return left < right;
    case Compare::Result::not_equal:
      return left != right;
  }
  return false;
}

bool matches(const KeyValue& kv, const Compare& c) {
  switch (c.target) {
    case Compare::Target::version:
      return matches(kv.version, c.number, c.result);
    case Compare::Target::create:
      return matches(kv.create_revision, c.number, c.result);
    case Compare::Target::mod:
      return matches(kv.mod_revision, c.number, c.result);
    case Compare::Target::value:
      return matches(kv.value, c.value, c.result);
    case Compare::Target::lease:
      return matches(kv.lease, c.number, c.result);
  }
  return false;
}

// A key may be written once a transaction: two puts of it, or a put under a delete, have no one meaning.
void check_branch(const std::vector<Op>& ops) {
  if (ops.size() > kMaxTxnOps) throw Failure{{ErrorKind::invalid, errors::kTooManyOps}};
  std::vector<const PutRequest*> puts;
  for (const Op& op : ops) {
    const bool empty = std::visit([](const auto& request) { return request.key.empty(); }, op);
    if (empty) throw Failure{{ErrorKind::invalid, errors::kEmptyKey}};
    if (const auto* put = std::get_if<PutRequest>(&op)) puts.push_back(put);
  }
  std::sort(puts.begin(), puts.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
  for (std::size_t i = 1; i < puts.size(); ++i) {
    if (puts[i - 1]->key == puts[i]->key) throw Failure{{ErrorKind::invalid, errors::kDuplicateKey}};
  }
  for (const Op& op : ops) {
    const auto* remove = std::get_if<DeleteRequest>(&op);
    if (remove == nullptr) continue;
    for (const PutRequest* put : puts) {
      if (in_range(put->key, remove->key, remove->range_end)) {
        throw Failure{{ErrorKind::invalid, errors::kDuplicateKey}};
      }
    }
  }
}

}  // namespace

bool Store::holds(const Compare& c) {
  const std::vector<KeyValue> kvs = current(c.key, c.range_end);
  // An absent key has version and revisions 0, but no value: a compare of the value never holds.
  if (kvs.empty()) return c.target != Compare::Target::value && matches(KeyValue{}, c);
  return std::all_of(kvs.begin(), kvs.end(), [&](const KeyValue& kv) { return matches(kv, c); });
}

Result<TxnResult> Store::txn(const TxnRequest& request, const Actor* actor) {
  const auto body = [&](Write& w) {
    if (request.compares.size() > kMaxTxnOps) throw Failure{{ErrorKind::invalid, errors::kTooManyOps}};
    for (const Compare& compare : request.compares) {
      if (compare.key.empty()) throw Failure{{ErrorKind::invalid, errors::kEmptyKey}};
    }
    check_branch(request.success);
    check_branch(request.failure);
    TxnResult result;
    result.succeeded = std::all_of(request.compares.begin(), request.compares.end(),
                                   [&](const Compare& compare) { return holds(compare); });
    for (const Op& op : result.succeeded ? request.success : request.failure) {
      if (const auto* range = std::get_if<RangeRequest>(&op)) {
        result.results.emplace_back(range_at(*range, w.so_far()));
      } else if (const auto* put = std::get_if<PutRequest>(&op)) {
        result.results.emplace_back(put_in(w, *put));
      } else {
        result.results.emplace_back(remove_in(w, std::get<DeleteRequest>(op)));
      }
    }
    result.revision = w.so_far();
    return result;
  };
  return write(body, actor);
}

}  // namespace ringshift::store
