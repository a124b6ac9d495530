// The store's words: keys with revisions, requests over them and their answers. Plain values; they follow
// etcd's, field by field, because src/registry speaks etcd's JSON over them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ringshift::store {

using Revision = std::int64_t;
using LeaseId = std::int64_t;

struct KeyValue {
  std::string key, value;
  Revision create_revision = 0, mod_revision = 0;
  std::int64_t version = 0;  // Writes since creation.
  LeaseId lease = 0;
};

enum class SortOrder { none, ascend, descend };
enum class SortTarget { key, version, create, mod, value };

// Keys from `key` up to, not including, `range_end`. "" means `key` alone, one zero byte means to the end.
struct RangeRequest {
  std::string key, range_end;
  Revision revision = 0;  // As of this revision; 0 or less: now.
  std::int64_t limit = 0;
  bool keys_only = false, count_only = false;
  SortOrder order = SortOrder::none;
  SortTarget target = SortTarget::key;
  Revision min_mod = 0, max_mod = 0, min_create = 0, max_create = 0;  // 0: no bound.
};
struct RangeResult {
  std::vector<KeyValue> kvs;
  bool more = false;       // `limit` left some out.
  std::int64_t count = 0;  // All keys in the range, whatever the limit.
  Revision revision = 0;
};

struct PutRequest {
  std::string key, value;
  LeaseId lease = 0;
  bool previous = false;                            // Answer with what was there.
  bool ignore_value = false, ignore_lease = false;  // Keep the current one; the key must exist.
};
struct PutResult {
  Revision revision = 0;
  std::optional<KeyValue> previous;
};

struct DeleteRequest {
  std::string key, range_end;
  bool previous = false;
};
struct DeleteResult {
  Revision revision = 0;
  std::int64_t deleted = 0;
  std::vector<KeyValue> previous;
};

struct Compare {
  enum class Target { version, create, mod, value, lease };
  enum class Result { equal, greater, less, not_equal };
  std::string key, range_end;  // With a range every key in it must hold.
  Target target = Target::version;
  Result result = Result::equal;
  std::int64_t number = 0;
  std::string value;
};

using Op = std::variant<RangeRequest, PutRequest, DeleteRequest>;
using OpResult = std::variant<RangeResult, PutResult, DeleteResult>;

struct TxnRequest {
  std::vector<Compare> compares;
  std::vector<Op> success, failure;
};
struct TxnResult {
  bool succeeded = false;
  std::vector<OpResult> results;
  Revision revision = 0;
};

struct Event {
  bool removed = false;
  KeyValue kv;  // removed: only key and mod_revision.
};

struct LeaseInfo {
  LeaseId id = 0;
  std::int64_t granted_seconds = 0;
  std::int64_t remaining_seconds = 0;
  std::vector<std::string> keys;
};

// Whether `key` is in [first, range_end) as RangeRequest means it.
[[nodiscard]] inline bool in_range(const std::string& key, const std::string& first,
                                   const std::string& range_end) {
  if (range_end.empty()) return key == first;
  return key >= first && (range_end == std::string(1, '\0') || key < range_end);
}

}  // namespace ringshift::store
