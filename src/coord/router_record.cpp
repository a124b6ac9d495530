#include "coord/router_record.h"

#include <nlohmann/json.hpp>

#include "base/encoding.h"

namespace ringshift::coord {

std::string to_json(const RouterRecord& record) {
  nlohmann::json out = {{"revision", record.revision},
                        {"digest", record.digest},
                        {"requests", record.requests},
                        {"hits", record.hits},
                        {"misses", record.misses},
                        {"keys_pulled", record.keys_pulled},
                        {"bytes_pulled", record.bytes_pulled},
                        {"listen", record.listen},
                        {"unreachable", record.unreachable},
                        {"max_clients", record.max_clients},
                        {"open_file_limit", record.open_file_limit}};
  // Keys are bytes, JSON is not.
  for (const auto& [key, count] : record.hot_keys)
    out["hot_keys"].push_back({{"key", base::to_base64(key)}, {"count", count}});
  if (record.p99_ms >= 0) out["p99_ms"] = record.p99_ms;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<RouterRecord> parse_router_record(std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorKind::invalid, "router record: not a JSON object");
  RouterRecord record;
  try {
    record.revision = object.value("revision", Revision{0});
    record.digest = object.value("digest", std::string());
    record.requests = object.value("requests", std::uint64_t{0});
    record.hits = object.value("hits", std::uint64_t{0});
    record.misses = object.value("misses", std::uint64_t{0});
    record.keys_pulled = object.value("keys_pulled", std::uint64_t{0});
    record.bytes_pulled = object.value("bytes_pulled", std::uint64_t{0});
    record.listen = object.value("listen", std::string());
    record.unreachable = object.value("unreachable", std::map<std::string, std::string>());
    record.max_clients = object.value("max_clients", std::uint64_t{0});
    record.open_file_limit = object.value("open_file_limit", std::uint64_t{0});
    if (const auto hot = object.find("hot_keys"); hot != object.end()) {
      for (const auto& entry : *hot) {
        const auto key = base::from_base64(entry.value("key", std::string()));
        if (key && record.hot_keys.size() < RouterRecord::kHotKeysMax)
          record.hot_keys.emplace_back(*key, entry.value("count", std::uint64_t{0}));
      }
    }
    record.p99_ms = object.value("p99_ms", -1.0);
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::invalid, std::string("router record: ") + error.what());
  }
  return record;
}

}  // namespace ringshift::coord
