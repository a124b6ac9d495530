#include "coord/router_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/encoding.h"

namespace ringshift::coord {
namespace {

using Json = nlohmann::json;
using RecordMember = RouterRecord::Member;
using HotKeys = std::vector<std::pair<std::string, std::uint64_t>>;

struct Figure {
  const char* name;
  std::uint64_t RouterRecord::* value;
};
constexpr Figure kFigures[] = {{"requests", &RouterRecord::requests},
                               {"hits", &RouterRecord::hits},
                               {"misses", &RouterRecord::misses},
                               {"errors", &RouterRecord::errors},
                               {"bytes_in", &RouterRecord::bytes_in},
                               {"bytes_out", &RouterRecord::bytes_out},
                               {"keys_pulled", &RouterRecord::keys_pulled},
                               {"bytes_pulled", &RouterRecord::bytes_pulled},
                               {"clients", &RouterRecord::clients},
                               {"max_clients", &RouterRecord::max_clients},
                               {"open_file_limit", &RouterRecord::open_file_limit}};

struct MemberFigure {
  const char* name;
  std::uint64_t RecordMember::* value;
};
constexpr MemberFigure kMemberFigures[] = {
    {"requests", &RecordMember::requests}, {"hits", &RecordMember::hits},
    {"misses", &RecordMember::misses},     {"errors", &RecordMember::errors},
    {"timeouts", &RecordMember::timeouts}, {"in_flight", &RecordMember::in_flight}};

// Keys are bytes, JSON is not.
void put_hot_keys(Json& out, const char* name, const HotKeys& keys) {
  for (const auto& [key, count] : keys)
    out[name].push_back({{"key", base::to_base64(key)}, {"count", count}});
}

HotKeys hot_keys_of(const Json& object, const char* name) {
  HotKeys keys;
  const auto hot = object.find(name);
  if (hot == object.end()) return keys;
  for (const auto& entry : *hot) {
    const auto key = base::from_base64(entry.value("key", std::string()));
    if (key && keys.size() < RouterRecord::kHotKeysMax)
      keys.emplace_back(*key, entry.value("count", std::uint64_t{0}));
  }
  return keys;
}

Json json_of(const RecordMember& member) {
  Json out = Json::object();
  for (const auto& [name, value] : kMemberFigures)
    if (member.*value != 0) out[name] = member.*value;
  if (member.p99_ms >= 0) out["p99_ms"] = member.p99_ms;
  return out;
}

RecordMember member_of(const Json& object) {
  RecordMember member;
  for (const auto& [name, value] : kMemberFigures) member.*value = object.value(name, std::uint64_t{0});
  member.p99_ms = object.value("p99_ms", -1.0);
  return member;
}

}  // namespace

std::string to_json(const RouterRecord& record) {
  Json out = {{"revision", record.revision}, {"digest", record.digest}, {"listen", record.listen}};
  for (const auto& [name, value] : kFigures) out[name] = record.*value;
  if (record.started_at != 0) out["started_at"] = record.started_at;
  if (record.applied_at != 0) out["applied_at"] = record.applied_at;
  if (record.p50_ms >= 0) out["p50_ms"] = record.p50_ms;
  if (record.p99_ms >= 0) out["p99_ms"] = record.p99_ms;
  if (record.p999_ms >= 0) out["p999_ms"] = record.p999_ms;
  out["unreachable"] = record.unreachable;
  put_hot_keys(out, "hot_keys", record.hot_keys);
  put_hot_keys(out, "moving_keys", record.moving_keys);
  for (const auto& [id, member] : record.members) out["members"][id] = json_of(member);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RouterRecord> parse_router_record(std::string_view text) {
  const auto object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorKind::invalid, "router record: not a JSON object");
  RouterRecord record;
  try {
    record.revision = object.value("revision", Revision{0});
    record.digest = object.value("digest", std::string());
    record.listen = object.value("listen", std::string());
    for (const auto& [name, value] : kFigures) record.*value = object.value(name, std::uint64_t{0});
    record.started_at = object.value("started_at", std::int64_t{0});
    record.applied_at = object.value("applied_at", std::int64_t{0});
    record.p50_ms = object.value("p50_ms", -1.0);
    record.p99_ms = object.value("p99_ms", -1.0);
    record.p999_ms = object.value("p999_ms", -1.0);
    record.unreachable = object.value("unreachable", std::map<std::string, std::string>());
    record.hot_keys = hot_keys_of(object, "hot_keys");
    record.moving_keys = hot_keys_of(object, "moving_keys");
    if (const auto members = object.find("members"); members != object.end() && members->is_object()) {
      for (const auto& [id, member] : members->items()) {
        if (record.members.size() == RouterRecord::kMembersMax) break;
        record.members.emplace(id, member_of(member));
      }
    }
  } catch (const Json::exception& error) {
    return fail(ErrorKind::invalid, std::string("router record: ") + error.what());
  }
  return record;
}

void keep_busiest(std::map<std::string, RecordMember>& members) {
  if (members.size() <= RouterRecord::kMembersMax) return;
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [id, member] : members) order.emplace_back(member.requests, id);
  // The busiest first; of equals, the first by id.
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (std::size_t i = RouterRecord::kMembersMax; i < order.size(); ++i) members.erase(order[i].second);
}

}  // namespace ringshift::coord
