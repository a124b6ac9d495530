#include "registry/answer.h"

#include <fmt/format.h>

#include "base/encoding.h"
#include "store/errors.h"

namespace ringshift::registry {
namespace {

std::string bytes_field(std::string_view name, std::string_view value) {
  return value.empty() ? "" : fmt::format(",\"{}\":\"{}\"", name, base::to_base64(value));
}

// `,"a":1,"b":2` into `{"a":1,"b":2}`.
std::string object(std::string fields) {
  if (fields.empty()) return "{}";
  fields[0] = '{';
  return fields + '}';
}

std::string kv_json(const store::KeyValue& kv) {
  return object(bytes_field("key", kv.key) + number_field("create_revision", kv.create_revision) +
                number_field("mod_revision", kv.mod_revision) + number_field("version", kv.version) +
                bytes_field("value", kv.value) + number_field("lease", kv.lease));
}

std::string kv_list(std::string_view name, const std::vector<store::KeyValue>& kvs) {
  if (kvs.empty()) return "";
  std::string out = fmt::format(",\"{}\":[", name);
  for (std::size_t i = 0; i < kvs.size(); ++i) out += (i == 0 ? "" : ",") + kv_json(kvs[i]);
  return out + "]";
}

std::string header_json(const Header& h) {
  return fmt::format(R"({{"cluster_id":"{0}","member_id":"{0}",{1}"raft_term":"1"}})", h.cluster_id,
                     h.revision == 0 ? "" : fmt::format("\"revision\":\"{}\",", h.revision));
}

std::string fields(const store::RangeResult& r) {
  return kv_list("kvs", r.kvs) + (r.more ? ",\"more\":true" : "") + number_field("count", r.count);
}
std::string fields(const store::PutResult& r) {
  return r.previous ? ",\"prev_kv\":" + kv_json(*r.previous) : "";
}
std::string fields(const store::DeleteResult& r) {
  return number_field("deleted", r.deleted) + kv_list("prev_kvs", r.previous);
}

std::string op_json(const store::OpResult& result) {
  constexpr std::string_view kNames[] = {"response_range", "response_put", "response_delete_range"};
  return std::visit(
      [&](const auto& r) {
        return fmt::format(R"({{"{}":{{"header":{{"revision":"{}"}}{}}}}})", kNames[result.index()],
                           r.revision, fields(r));
      },
      result);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// gRPC codes and the HTTP statuses that etcd's gateway makes of them.
struct CodeRow {
  std::string_view message;
  int code, status;
};
constexpr CodeRow kCodes[] = {
    {store::errors::kCompacted, 11, 400},        {store::errors::kFutureRevision, 11, 400},
    {store::errors::kLeaseNotFound, 5, 404},     {store::errors::kLeaseExists, 9, 412},
    {store::errors::kLeaseTtlTooLarge, 11, 400},
};

CodeRow code_of(const Error& error) {
  for (const CodeRow& row : kCodes) {
    if (row.message == error.message) return row;
  }
  switch (error.kind) {
    case ErrorKind::invalid:
      return {"", 3, 400};
    case ErrorKind::not_found:
      return {"", 5, 404};
    case ErrorKind::stale:
      return {"", 11, 400};
    case ErrorKind::denied:
      return {"", 7, 403};
    case ErrorKind::overloaded:
      return {"", 8, 429};
    case ErrorKind::retryable:
      return {"", 14, 503};
    case ErrorKind::internal:
      break;
  }
  return {"", 13, 500};
}

}  // namespace

std::string number_field(std::string_view name, std::int64_t value) {
  return value == 0 ? "" : fmt::format(",\"{}\":\"{}\"", name, value);
}

std::string to_json(const Header& header, std::string_view more) {
  return fmt::format("{{\"header\":{}{}}}", header_json(header), more);
}
std::string to_json(const Header& header, const store::RangeResult& r) { return to_json(header, fields(r)); }
std::string to_json(const Header& header, const store::PutResult& r) { return to_json(header, fields(r)); }
std::string to_json(const Header& header, const store::DeleteResult& r) { return to_json(header, fields(r)); }

std::string to_json(const Header& header, const store::TxnResult& r) {
  std::string more = r.succeeded ? ",\"succeeded\":true" : "";
  for (std::size_t i = 0; i < r.results.size(); ++i) {
    more += (i == 0 ? ",\"responses\":[" : ",") + op_json(r.results[i]);
  }
  if (!r.results.empty()) more += "]";
  return to_json(header, more);
}

std::string key_list(const std::vector<std::string>& keys) {
  if (keys.empty()) return "";
  std::string out = ",\"keys\":[";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out += fmt::format("{}\"{}\"", i == 0 ? "" : ",", base::to_base64(keys[i]));
  }
  return out + "]";
}

std::string to_json(const store::Event& event, const store::KeyValue* previous) {
  return object((event.removed ? ",\"type\":\"DELETE\"" : "") + (",\"kv\":" + kv_json(event.kv)) +
                (previous != nullptr ? ",\"prev_kv\":" + kv_json(*previous) : ""));
}

ErrorAnswer error_answer(int status, int code, std::string_view message) {
  const std::string text = quoted(message);
  return {status, fmt::format(R"({{"error":{0},"message":{0},"code":{1}}})", text, code)};
}

ErrorAnswer to_answer(const Error& error) {
  const CodeRow row = code_of(error);
  return error_answer(row.status, row.code, error.message);
}

}  // namespace ringshift::registry
