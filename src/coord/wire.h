// etcd's JSON as a client writes and reads it. Pure; an answer that is not what etcd sends is an `internal`
// error that shows its beginning.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coord/coordinator.h"

namespace ringshift::coord {

// The end of the range of all keys with `prefix`: its last byte plus one ("\0", to the end, for none such).
[[nodiscard]] std::string prefix_end(std::string prefix);

[[nodiscard]] std::string range_body(std::string_view key, std::string_view range_end);
[[nodiscard]] std::string put_body(std::string_view key, std::string_view value, LeaseId lease);
[[nodiscard]] std::string delete_body(std::string_view key);
[[nodiscard]] std::string txn_body(const std::vector<Compare>& compares, const std::vector<Op>& ops);
[[nodiscard]] std::string lease_body(LeaseId id, std::int64_t ttl_seconds);
[[nodiscard]] std::string authenticate_body(std::string_view name, std::string_view password);
[[nodiscard]] std::string watch_body(std::string_view prefix, Revision start);

[[nodiscard]] Result<Range> read_range(std::string_view answer);
struct Written {
  Revision revision = 0;
  std::int64_t deleted = 0;
  bool succeeded = false;  // txn
};
[[nodiscard]] Result<Written> read_written(std::string_view answer);
struct LeaseAnswer {
  LeaseId id = 0;
  std::int64_t ttl_seconds = 0;  // 0: the lease is gone.
};
[[nodiscard]] Result<LeaseAnswer> read_lease(std::string_view answer);

// Of authenticate's answer.
[[nodiscard]] Result<std::string> read_token(std::string_view answer);

struct WatchMessage {
  std::uint64_t cluster_id = 0;
  Revision revision = 0;
  bool created = false, canceled = false;
  Revision compact_revision = 0;
  std::string reason;  // Of a cancellation, or of the stream's error.
  std::vector<Event> events;
};
[[nodiscard]] Result<WatchMessage> read_watch(std::string_view line);

// What etcd says, with the code of a bad request, to who sends no token, and to who sends one from before a
// user or role was changed.
[[nodiscard]] bool says_no_token(std::string_view message);
[[nodiscard]] bool says_old_token(std::string_view message);

// The error in an answer whose HTTP status is not 200.
[[nodiscard]] Error read_error(int status, std::string_view answer, std::string_view url);

}  // namespace ringshift::coord
