// ZooKeeper's wire protocol as far as cluster state needs it: requests written, replies read.
//
// Every packet is a 4-byte length and that many bytes; numbers are big-endian; text and buffers carry their
// own 4-byte length, and -1 means none. Pure: no sockets, no state. Bytes that are not what a server sends
// are an `internal` error, never a read beyond them; nothing is reserved by a length that they claim.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::coord::zookeeper {

enum class OpCode : std::int32_t {
  create = 1,
  remove = 2,
  exists = 3,
  get_data = 4,
  set_data = 5,
  sync = 9,
  ping = 11,
  get_children = 12,
  check = 13,
  multi = 14,
  create2 = 15,
  auth = 100,
  add_watch = 106,
  close = -11,
};

enum class Code : std::int32_t {
  ok = 0,
  runtime_inconsistency = -2,
  marshalling = -5,
  bad_arguments = -8,
  no_node = -101,
  no_auth = -102,
  bad_version = -103,
  no_children_for_ephemerals = -108,
  node_exists = -110,
  not_empty = -111,
  session_expired = -112,
  invalid_acl = -114,
  auth_failed = -115,
  session_moved = -118,
};

// Transaction ids of packets that answer no request.
inline constexpr std::int32_t kXidNotification = -1, kXidPing = -2, kXidAuth = -4;
// A request beyond this is refused before it is sent: the server's jute.maxbuffer is 0xfffff bytes unless
// told otherwise, and it cuts the connection of who exceeds it.
inline constexpr std::size_t kRequestBytesMax = 0xfffff - 4096;
inline constexpr std::size_t kReplyBytesMax = 64U << 20;

struct Stat {
  std::int64_t czxid = 0, mzxid = 0, ctime = 0, mtime = 0;
  std::int32_t version = 0, cversion = 0, aversion = 0;
  std::int64_t ephemeral_owner = 0;
  std::int32_t data_length = 0, children = 0;
  std::int64_t pzxid = 0;
};

struct Connected {
  std::int32_t timeout_ms = 0;  // What the server granted; 0: the session that was asked for is over.
  std::int64_t session = 0;
  std::string password;
};

struct Header {
  std::int32_t xid = 0;
  std::int64_t zxid = 0;
  Code code = Code::ok;
};

struct Node {
  std::optional<std::string> data;  // Absent for a directory.
  Stat stat;
};

struct Notification {
  enum class Type : std::int32_t { created = 1, deleted = 2, data_changed = 3, children_changed = 4 };
  std::int32_t type = 0;   // -1: only the session's state.
  std::int32_t state = 0;  // 3: connected; -112: expired.
  std::string path;
};

enum class Access { world, creator };  // ACL of created nodes: anyone, or who authenticated.

// --- requests, without the leading length; `xid` 0 is filled in by set_xid ---

void set_xid(std::string& request, std::int32_t xid);
[[nodiscard]] std::string connect_request(std::int32_t timeout_ms, std::int64_t session,
                                          std::string_view password);
[[nodiscard]] std::string ping_request();
[[nodiscard]] std::string close_request();
[[nodiscard]] std::string auth_request(std::string_view scheme, std::string_view credentials);
[[nodiscard]] std::string sync_request(std::string_view path);
[[nodiscard]] std::string exists_request(std::string_view path);
[[nodiscard]] std::string get_data_request(std::string_view path);
[[nodiscard]] std::string get_children_request(std::string_view path);
[[nodiscard]] std::string set_data_request(std::string_view path, std::optional<std::string_view> data,
                                           std::int32_t version);
[[nodiscard]] std::string create_request(std::string_view path, std::optional<std::string_view> data,
                                         Access access, bool ephemeral);
[[nodiscard]] std::string delete_request(std::string_view path, std::int32_t version);
[[nodiscard]] std::string add_watch_request(std::string_view path, bool recursive);

// All of its parts or none.
class Multi {
 public:
  Multi();
  void create(std::string_view path, std::optional<std::string_view> data, Access access, bool ephemeral);
  void set_data(std::string_view path, std::optional<std::string_view> data, std::int32_t version);
  void remove(std::string_view path, std::int32_t version);
  void check(std::string_view path, std::int32_t version);
  [[nodiscard]] std::string request() const;
  [[nodiscard]] bool empty() const { return parts_ == 0; }

 private:
  std::string body_;
  int parts_ = 0;
};

// --- replies ---

[[nodiscard]] Result<Connected> read_connected(std::string_view packet);
// Takes the header off the front of `packet`.
[[nodiscard]] Result<Header> read_header(std::string_view& packet);
[[nodiscard]] Result<Node> read_node(std::string_view body);
[[nodiscard]] Result<Stat> read_stat(std::string_view body);
[[nodiscard]] Result<std::vector<std::string>> read_children(std::string_view body);
[[nodiscard]] Result<Notification> read_notification(std::string_view body);

struct MultiAnswer {
  Code code = Code::ok;           // The first part's that failed; then nothing was done.
  std::size_t failed = 0;         // Which part that was.
  std::optional<Stat> last_stat;  // Of the last part that has one.
};
[[nodiscard]] Result<MultiAnswer> read_multi(std::string_view body);

// What a code means, in words.
[[nodiscard]] std::string describe(Code code);
// The error that callers of a Coordinator see.
[[nodiscard]] Error to_error(Code code, std::string_view what);

}  // namespace ringshift::coord::zookeeper
