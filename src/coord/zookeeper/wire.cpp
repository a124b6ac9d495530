#include "coord/zookeeper/wire.h"

#include <fmt/format.h>

#include <type_traits>

namespace ringshift::coord::zookeeper {
namespace {

template <class Number>
void put_number(std::string& out, Number number) {
  const auto bits = static_cast<std::make_unsigned_t<Number>>(number);
  for (int shift = static_cast<int>(sizeof bits) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((bits >> shift) & 0xff));
  }
}

void put_buffer(std::string& out, std::optional<std::string_view> bytes) {
  put_number(out, bytes ? static_cast<std::int32_t>(bytes->size()) : std::int32_t{-1});
  if (bytes) out.append(*bytes);
}

std::string begin_request(OpCode op, std::int32_t xid = 0) {
  std::string out;
  put_number(out, xid);
  put_number(out, static_cast<std::int32_t>(op));
  return out;
}

std::string path_request(OpCode op, std::string_view path, bool with_watch_flag) {
  std::string out = begin_request(op);
  put_buffer(out, path);
  if (with_watch_flag) out.push_back('\0');
  return out;
}

void put_create(std::string& out, std::string_view path, std::optional<std::string_view> data, Access access,
                bool ephemeral) {
  constexpr std::int32_t kAllPermissions = 31;
  put_buffer(out, path);
  put_buffer(out, data);
  put_number(out, std::int32_t{1});  // One ACL.
  put_number(out, kAllPermissions);
  put_buffer(out, access == Access::world ? "world" : "auth");
  put_buffer(out, access == Access::world ? "anyone" : "");
  put_number(out, std::int32_t{ephemeral ? 1 : 0});
}

void put_set_data(std::string& out, std::string_view path, std::optional<std::string_view> data,
                  std::int32_t version) {
  put_buffer(out, path);
  put_buffer(out, data);
  put_number(out, version);
}

void put_path_version(std::string& out, std::string_view path, std::int32_t version) {
  put_buffer(out, path);
  put_number(out, version);
}

void put_multi_header(std::string& out, std::int32_t type, bool done) {
  put_number(out, type);
  out.push_back(done ? '\1' : '\0');
  put_number(out, std::int32_t{-1});
}

// Reads fields one after another; once something did not fit, all that follows is nothing and ok() is false.
class JuteReader {
 public:
  explicit JuteReader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    if (rest_.size() < sizeof(Number)) return bad<Number>();
    std::make_unsigned_t<Number> bits = 0;
    for (std::size_t i = 0; i < sizeof bits; ++i) {
      bits = static_cast<decltype(bits)>((bits << 8) | static_cast<unsigned char>(rest_[i]));
    }
    rest_.remove_prefix(sizeof bits);
    return static_cast<Number>(bits);
  }
  std::int32_t i32() { return number<std::int32_t>(); }
  std::int64_t i64() { return number<std::int64_t>(); }
  bool boolean() { return number<std::uint8_t>() != 0; }

  std::optional<std::string> buffer() {
    const std::int32_t size = i32();
    if (!ok_ || size == -1) return std::nullopt;
    if (size < 0 || static_cast<std::size_t>(size) > rest_.size()) return bad<std::optional<std::string>>();
    std::string out(rest_.substr(0, static_cast<std::size_t>(size)));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return out;
  }
  std::string text() { return buffer().value_or(""); }

  Stat stat() {
    Stat s;
    s.czxid = i64();
    s.mzxid = i64();
    s.ctime = i64();
    s.mtime = i64();
    s.version = i32();
    s.cversion = i32();
    s.aversion = i32();
    s.ephemeral_owner = i64();
    s.data_length = i32();
    s.children = i32();
    s.pzxid = i64();
    return s;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  template <class T>
  T bad() {
    ok_ = false;
    rest_ = {};
    return T{};
  }
  std::string_view rest_;
  bool ok_ = true;
};

template <class T>
Result<T> whole(const JuteReader& reader, T value, const char* what) {
  if (!reader.ok()) {
    return fail(ErrorKind::internal,
                fmt::format("what came is no ZooKeeper {}: is it another service?", what));
  }
  return value;
}

}  // namespace

void set_xid(std::string& request, std::int32_t xid) {
  std::string number;
  put_number(number, xid);
  request.replace(0, number.size(), number);
}

std::string connect_request(std::int32_t timeout_ms, std::int64_t session, std::string_view password) {
  std::string out;
  put_number(out, std::int32_t{0});  // Protocol version.
  // The last zxid seen: 0, since a rebuilt ensemble would refuse us for ever by it. Being sent to a server
  // that lags is dealt with by `sync`; an ensemble that fell back is noticed by Epoch.
  put_number(out, std::int64_t{0});
  put_number(out, timeout_ms);
  put_number(out, session);
  put_buffer(out, password.empty() ? std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16) : password);
  out.push_back('\0');  // Not content with a read-only server.
  return out;
}

std::string ping_request() { return begin_request(OpCode::ping, kXidPing); }

std::string close_request() { return begin_request(OpCode::close); }

std::string auth_request(std::string_view scheme, std::string_view credentials) {
  std::string out = begin_request(OpCode::auth, kXidAuth);
  put_number(out, std::int32_t{0});
  put_buffer(out, scheme);
  put_buffer(out, credentials);
  return out;
}

std::string sync_request(std::string_view path) { return path_request(OpCode::sync, path, false); }
std::string exists_request(std::string_view path) { return path_request(OpCode::exists, path, true); }
std::string get_data_request(std::string_view path) { return path_request(OpCode::get_data, path, true); }
std::string get_children_request(std::string_view path) {
  return path_request(OpCode::get_children, path, true);
}

std::string set_data_request(std::string_view path, std::optional<std::string_view> data,
                             std::int32_t version) {
  std::string out = begin_request(OpCode::set_data);
  put_set_data(out, path, data, version);
  return out;
}

std::string create_request(std::string_view path, std::optional<std::string_view> data, Access access,
                           bool ephemeral) {
  std::string out = begin_request(OpCode::create2);
  put_create(out, path, data, access, ephemeral);
  return out;
}

std::string delete_request(std::string_view path, std::int32_t version) {
  std::string out = begin_request(OpCode::remove);
  put_path_version(out, path, version);
  return out;
}

std::string add_watch_request(std::string_view path, bool recursive) {
  std::string out = begin_request(OpCode::add_watch);
  put_path_version(out, path, recursive ? 1 : 0);
  return out;
}

Multi::Multi() : body_(begin_request(OpCode::multi)) {}

void Multi::create(std::string_view path, std::optional<std::string_view> data, Access access,
                   bool ephemeral) {
  put_multi_header(body_, static_cast<std::int32_t>(OpCode::create2), false);
  put_create(body_, path, data, access, ephemeral);
  ++parts_;
}

void Multi::set_data(std::string_view path, std::optional<std::string_view> data, std::int32_t version) {
  put_multi_header(body_, static_cast<std::int32_t>(OpCode::set_data), false);
  put_set_data(body_, path, data, version);
  ++parts_;
}

void Multi::remove(std::string_view path, std::int32_t version) {
  put_multi_header(body_, static_cast<std::int32_t>(OpCode::remove), false);
  put_path_version(body_, path, version);
  ++parts_;
}

void Multi::check(std::string_view path, std::int32_t version) {
  put_multi_header(body_, static_cast<std::int32_t>(OpCode::check), false);
  put_path_version(body_, path, version);
  ++parts_;
}

std::string Multi::request() const {
  std::string out = body_;
  put_multi_header(out, -1, true);
  return out;
}

Result<Connected> read_connected(std::string_view packet) {
  JuteReader reader(packet);
  Connected out;
  reader.i32();  // Protocol version.
  out.timeout_ms = reader.i32();
  out.session = reader.i64();
  out.password = reader.text();  // A boolean may follow: read-only.
  return whole(reader, std::move(out), "greeting");
}

Result<Header> read_header(std::string_view& packet) {
  JuteReader reader(packet);
  Header out;
  out.xid = reader.i32();
  out.zxid = reader.i64();
  out.code = static_cast<Code>(reader.i32());
  packet = reader.rest();
  return whole(reader, out, "reply");
}

Result<Node> read_node(std::string_view body) {
  JuteReader reader(body);
  Node out;
  out.data = reader.buffer();
  out.stat = reader.stat();
  return whole(reader, std::move(out), "node");
}

Result<Stat> read_stat(std::string_view body) {
  JuteReader reader(body);
  const Stat out = reader.stat();
  return whole(reader, out, "node's state");
}

Result<std::vector<std::string>> read_children(std::string_view body) {
  JuteReader reader(body);
  std::vector<std::string> out;
  const std::int32_t count = reader.i32();  // -1 for none; a claim that grows nothing before it is read.
  for (std::int32_t i = 0; i < count && reader.ok(); ++i) out.push_back(reader.text());
  return whole(reader, std::move(out), "list of children");
}

Result<Notification> read_notification(std::string_view body) {
  JuteReader reader(body);
  Notification out;
  out.type = reader.i32();
  out.state = reader.i32();
  out.path = reader.text();
  return whole(reader, std::move(out), "notification");
}

Result<MultiAnswer> read_multi(std::string_view body) {
  JuteReader reader(body);
  MultiAnswer out;
  for (std::size_t part = 0; reader.ok(); ++part) {
    const std::int32_t type = reader.i32();
    const bool done = reader.boolean();
    reader.i32();  // The same code that the part's body has.
    if (done || !reader.ok()) break;
    switch (static_cast<OpCode>(type)) {
      case OpCode::create:  // What 3.8 makes of a create2 in a multi: no stat.
        reader.text();
        break;
      case OpCode::create2:
        reader.text();
        [[fallthrough]];
      case OpCode::set_data:
        out.last_stat = reader.stat();
        break;
      case OpCode::remove:
      case OpCode::check:
        break;
      default: {
        if (type != -1) return fail(ErrorKind::internal, fmt::format("a multi's answer has a part {}", type));
        // Parts before the failed one say 0, those after it that they were not tried.
        const auto code = static_cast<Code>(reader.i32());
        const bool tells = code != Code::ok && code != Code::runtime_inconsistency;
        if (tells && (out.code == Code::ok || out.code == Code::runtime_inconsistency)) {
          out.code = code;
          out.failed = part;
        } else if (out.code == Code::ok) {
          out.code = code;
        }
      }
    }
  }
  return whole(reader, std::move(out), "multi's answer");
}

std::string describe(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::runtime_inconsistency:
      return "not tried";
    case Code::marshalling:
      return "the server could not read the request";
    case Code::bad_arguments:
      return "bad arguments";
    case Code::no_node:
      return "no such node";
    case Code::no_auth:
      return "not allowed by the node's ACL";
    case Code::bad_version:
      return "the node was changed meanwhile";
    case Code::no_children_for_ephemerals:
      return "a leased key can have no keys below it";
    case Code::node_exists:
      return "the node exists";
    case Code::not_empty:
      return "the node has children";
    case Code::session_expired:
      return "the session expired";
    case Code::invalid_acl:
      return "the server refuses the ACL";
    case Code::auth_failed:
      return "the server refuses the credentials";
    case Code::session_moved:
      return "the session moved to another connection";
  }
  return fmt::format("code {}", static_cast<std::int32_t>(code));
}

Error to_error(Code code, std::string_view what) {
  ErrorKind kind = ErrorKind::retryable;
  switch (code) {
    case Code::no_auth:
    case Code::invalid_acl:
    case Code::auth_failed:
      kind = ErrorKind::denied;
      break;
    case Code::no_node:
      kind = ErrorKind::not_found;
      break;
    case Code::bad_arguments:
    case Code::marshalling:
    case Code::no_children_for_ephemerals:
      kind = ErrorKind::invalid;
      break;
    default:
      break;
  }
  std::string message = fmt::format("ZooKeeper, {}: {}", what, describe(code));
  if (code == Code::no_auth) message += ": give the right user and password by --registry-auth-file";
  return {kind, std::move(message)};
}

}  // namespace ringshift::coord::zookeeper
