#include "coord/wire.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/encoding.h"

namespace ringshift::coord {
namespace {

using Json = nlohmann::json;

constexpr int kUnauthenticated = 16;  // gRPC's code.

struct Bad {};  // Thrown and caught in this file alone.

template <class T = std::int64_t>
T integer(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  if (found->is_number_integer()) return found->get<T>();
  if (!found->is_string()) throw Bad{};
  const auto& text = found->get_ref<const std::string&>();
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw Bad{};
  return value;
}

std::string bytes(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return {};
  if (!found->is_string()) throw Bad{};
  auto decoded = base::from_base64(found->get_ref<const std::string&>());
  if (!decoded) throw Bad{};
  return *std::move(decoded);
}

bool flag(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& member(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) throw Bad{};
  return *found;
}

const Json& list(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return kEmpty;
  if (!found->is_array()) throw Bad{};
  return *found;
}

KeyValue kv_of(const Json& json) {
  if (!json.is_object()) throw Bad{};
  return {bytes(json, "key"),
          bytes(json, "value"),
          integer(json, "create_revision"),
          integer(json, "mod_revision"),
          integer(json, "version"),
          integer(json, "lease")};
}

template <class Read>
auto reading(std::string_view answer, Read read) -> Result<decltype(read(Json()))> {
  try {
    const Json json = Json::parse(answer, nullptr, false);
    if (json.is_object()) return read(json);
  } catch (const Bad&) {
  } catch (const Json::exception&) {
  }
  return fail(ErrorKind::internal,
              fmt::format("the registry's answer is not etcd v3 JSON: '{}': does the URL point to "
                          "ringshift registry or to etcd 3.4 or later?",
                          answer.substr(0, 80)));
}

Json put_json(std::string_view key, std::string_view value, LeaseId lease) {
  Json put = {{"key", base::to_base64(key)}, {"value", base::to_base64(value)}};
  if (lease != 0) put["lease"] = std::to_string(lease);
  return put;
}

}  // namespace

std::string prefix_end(std::string prefix) {
  while (!prefix.empty()) {
    auto last = static_cast<unsigned char>(prefix.back());
    if (last != 0xff) {
      prefix.back() = static_cast<char>(last + 1);
      return prefix;
    }
    prefix.pop_back();
  }
  return std::string(1, '\0');
}

std::string range_body(std::string_view key, std::string_view range_end) {
  // An empty prefix means every key; the first key there can be is one zero byte.
  Json json = {{"key", base::to_base64(key.empty() ? std::string_view("\0", 1) : key)}};
  if (!range_end.empty()) json["range_end"] = base::to_base64(range_end);
  return json.dump();
}

std::string put_body(std::string_view key, std::string_view value, LeaseId lease) {
  return put_json(key, value, lease).dump();
}

std::string delete_body(std::string_view key) { return Json{{"key", base::to_base64(key)}}.dump(); }

std::string txn_body(const std::vector<Compare>& compares, const std::vector<Op>& ops) {
  Json json = {{"compare", Json::array()}, {"success", Json::array()}};
  for (const Compare& c : compares) {
    const bool mod = c.target == Compare::Target::mod_revision;
    const bool create = c.target == Compare::Target::create_revision;
    json["compare"].push_back({{"key", base::to_base64(c.key)},
                               {"result", "EQUAL"},
                               {"target", mod      ? "MOD"
                                          : create ? "CREATE"
                                                   : "LEASE"},
                               {mod      ? "mod_revision"
                                : create ? "create_revision"
                                         : "lease",
                                std::to_string(c.value)}});
  }
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::put) {
      json["success"].push_back({{"request_put", put_json(op.key, op.value, op.lease)}});
    } else {
      json["success"].push_back({{"request_delete_range", {{"key", base::to_base64(op.key)}}}});
    }
  }
  return json.dump();
}

std::string lease_body(LeaseId id, std::int64_t ttl_seconds) {
  Json json = Json::object();
  if (id != 0) json["ID"] = std::to_string(id);
  if (ttl_seconds != 0) json["TTL"] = std::to_string(ttl_seconds);
  return json.dump();
}

std::string authenticate_body(std::string_view name, std::string_view password) {
  return Json{{"name", name}, {"password", password}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool says_no_token(std::string_view message) {
  return message.find("user name is empty") != std::string_view::npos;
}

bool says_old_token(std::string_view message) {
  return message.find("revision of auth store is old") != std::string_view::npos;
}

std::string watch_body(std::string_view prefix, Revision start) {
  Json create = Json::parse(range_body(prefix, prefix_end(std::string(prefix))));
  create["start_revision"] = std::to_string(start);
  create["progress_notify"] = true;
  return Json{{"create_request", std::move(create)}}.dump();
}

Result<Range> read_range(std::string_view answer) {
  return reading(answer, [](const Json& json) {
    Range range;
    const Json& header = member(json, "header");
    range.revision = integer(header, "revision");
    range.cluster_id = integer<std::uint64_t>(header, "cluster_id");
    for (const Json& kv : list(json, "kvs")) range.kvs.push_back(kv_of(kv));
    return range;
  });
}

Result<Written> read_written(std::string_view answer) {
  return reading(answer, [](const Json& json) {
    return Written{integer(member(json, "header"), "revision"), integer(json, "deleted"),
                   flag(json, "succeeded")};
  });
}

Result<LeaseAnswer> read_lease(std::string_view answer) {
  return reading(answer, [](const Json& json) {
    const auto inner = json.find("result");
    const Json& lease = inner != json.end() ? *inner : json;
    if (!lease.is_object()) throw Bad{};
    return LeaseAnswer{integer(lease, "ID"), integer(lease, "TTL")};
  });
}

Result<std::string> read_token(std::string_view answer) {
  return reading(answer, [](const Json& json) {
    std::string token = text(json, "token");
    if (token.empty()) throw Bad{};
    return token;
  });
}

Result<WatchMessage> read_watch(std::string_view line) {
  return reading(line, [](const Json& json) {
    WatchMessage message;
    if (const auto error = json.find("error"); error != json.end()) {
      message.canceled = true;
      message.reason = error->is_object() ? text(*error, "message") : text(json, "error");
      return message;
    }
    const Json& result = member(json, "result");
    const Json& header = member(result, "header");
    message.cluster_id = integer<std::uint64_t>(header, "cluster_id");
    message.revision = integer(header, "revision");
    message.created = flag(result, "created");
    message.canceled = flag(result, "canceled");
    message.compact_revision = integer(result, "compact_revision");
    message.reason = text(result, "cancel_reason");
    for (const Json& event : list(result, "events")) {
      if (!event.is_object()) throw Bad{};
      const bool removed = text(event, "type") == "DELETE";
      message.events.push_back(
          {removed ? Event::Kind::remove : Event::Kind::put, kv_of(member(event, "kv"))});
    }
    return message;
  });
}

Error read_error(int status, std::string_view answer, std::string_view url) {
  const Json json = Json::parse(answer, nullptr, false);
  std::string message = json.is_object() ? text(json, "message") : "";
  if (json.is_object() && message.empty()) message = text(json, "error");
  if (message.empty()) message = std::string(answer.substr(0, 80));
  int code = 0;
  if (json.is_object() && json.contains("code") && json["code"].is_number_integer())
    code = json["code"].get<int>();
  std::string full = fmt::format("{} answered {}: {}", url, status, message);
  if (code == kUnauthenticated || says_no_token(message)) {  // etcd's code for a missing token is "invalid".
    full += ": say who you are by --registry-auth-file";
    return {ErrorKind::denied, std::move(full)};
  }
  if (says_old_token(message)) return {ErrorKind::retryable, std::move(full)};
  switch (code) {  // gRPC's codes.
    case 1:
    case 2:
    case 4:
    case 10:
    case 14:
      return {ErrorKind::retryable, full};
    case 3:
    case 9:
      return {ErrorKind::invalid, full};
    case 5:
      return {ErrorKind::not_found, full};
    case 7:
      return {ErrorKind::denied, full};
    case 8:
      return {ErrorKind::overloaded, full};
    case 11:
      return {ErrorKind::stale, full};
    default:
      break;
  }
  if (status == 503 || status == 502 || status == 504) return {ErrorKind::retryable, full};
  if (status == 404) {
    return {ErrorKind::internal,
            full + ": does the URL point to ringshift registry or to etcd 3.4 or later?"};
  }
  return {ErrorKind::internal, full};
}

}  // namespace ringshift::coord
