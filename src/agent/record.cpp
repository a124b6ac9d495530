#include "agent/record.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace ringshift::agent {

std::string_view name(State state) noexcept {
  switch (state) {
    case State::ready:
      return "ready";
    case State::unhealthy:
      return "unhealthy";
    case State::draining:
      return "draining";
  }
  return "?";
}

std::string to_json(const Record& record) {
  const Health& health = record.health;
  nlohmann::json figures = {{"used_memory", health.used_memory},
                            {"max_memory", health.max_memory},
                            {"clients", health.clients},
                            {"ops_per_second", health.ops_per_second},
                            {"loading", health.loading}};
  if (!health.role.empty()) figures["role"] = health.role;
  if (!health.version.empty()) figures["version"] = health.version;
  if (!health.reason.empty()) figures["reason"] = health.reason.substr(0, kMaxReasonBytes);
  const nlohmann::json out = {{"id", record.id},
                              {"address", record.address},
                              {"protocol", record.protocol},
                              {"state", name(record.state)},
                              {"started_at", record.started_at},
                              {"labels", record.labels},
                              {"health", std::move(figures)}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool Judge::add(bool good) noexcept {
  if (!std::exchange(any_, true)) return healthy_ = good;
  if (good == healthy_) {
    against_ = 0;
  } else if (++against_ >= (good ? rise_ : fall_)) {
    healthy_ = good;
    against_ = 0;
  }
  return healthy_;
}

bool Quiet::add(const Health& now) noexcept {
  const bool idle = any_ && (now.commands == commands_ || now.router_connections == 0);
  any_ = true;
  commands_ = now.commands;
  quiet_ = idle ? quiet_ + 1 : 0;
  return quiet_ >= kLooks;
}

}  // namespace ringshift::agent
