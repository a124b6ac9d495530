// etcd's JSON requests into the store's. Pure functions over untrusted bytes: any input gives a request or
// an `invalid` error, in time linear in its length.
//
// As etcd's gateway does: field names in snake_case or camelCase, unknown fields ignored, null is absent,
// int64 as string or number, bytes as padded base64, enums by name or number, no body is {}.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ringshift/error.h"
#include "store/types.h"

namespace ringshift::registry {

inline constexpr std::size_t kRequestBytesMax = 1'572'864;  // etcd's --max-request-bytes: keys plus values.
inline constexpr std::size_t kNestingMax = 32;              // Of brackets in a request.

[[nodiscard]] Result<store::RangeRequest> parse_range(std::string_view body);
[[nodiscard]] Result<store::PutRequest> parse_put(std::string_view body);
[[nodiscard]] Result<store::DeleteRequest> parse_delete(std::string_view body);
[[nodiscard]] Result<store::TxnRequest> parse_txn(std::string_view body);
[[nodiscard]] Result<store::Revision> parse_compaction(std::string_view body);

struct LeaseRequest {
  store::LeaseId id = 0;
  std::int64_t ttl_seconds = 0;
  bool keys = false;
};
[[nodiscard]] Result<LeaseRequest> parse_lease(std::string_view body);

struct WatchCreate {
  std::string key, range_end;
  store::Revision start_revision = 0;  // 0: from now.
  std::int64_t watch_id = 0;           // 0: the server picks one.
  bool progress_notify = false, previous = false, no_put = false, no_delete = false;
};
struct WatchCancel {
  std::int64_t watch_id = 0;
};
struct WatchProgress {};
using WatchCommand = std::variant<WatchCreate, WatchCancel, WatchProgress>;
// A body may hold several commands, one JSON object after another.
[[nodiscard]] Result<std::vector<WatchCommand>> parse_watch(std::string_view body);

}  // namespace ringshift::registry
