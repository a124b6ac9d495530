#include "coord/router_record.h"

#include <nlohmann/json.hpp>

namespace ringshift::coord {

std::string to_json(const RouterRecord& record) {
  nlohmann::json out = {{"revision", record.revision},
                        {"digest", record.digest},
                        {"requests", record.requests},
                        {"hits", record.hits},
                        {"misses", record.misses},
                        {"keys_pulled", record.keys_pulled},
                        {"bytes_pulled", record.bytes_pulled}};
  if (record.p99_ms >= 0) out["p99_ms"] = record.p99_ms;
  return out.dump();
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
    record.p99_ms = object.value("p99_ms", -1.0);
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::invalid, std::string("router record: ") + error.what());
  }
  return record;
}

}  // namespace ringshift::coord
