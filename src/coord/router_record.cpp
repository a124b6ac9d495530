#include "coord/router_record.h"

#include <nlohmann/json.hpp>

namespace ringshift::coord {

std::string to_json(const RouterRecord& record) {
  return nlohmann::json{{"revision", record.revision},
                        {"digest", record.digest},
                        {"requests", record.requests},
                        {"hits", record.hits},
                        {"misses", record.misses},
                        {"keys_pulled", record.keys_pulled},
                        {"bytes_pulled", record.bytes_pulled},
                        {"listen", record.listen},
                        {"unreachable", record.unreachable},
                        {"max_clients", record.max_clients},
                        {"open_file_limit", record.open_file_limit}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::invalid, std::string("router record: ") + error.what());
  }
  return record;
}

}  // namespace ringshift::coord
