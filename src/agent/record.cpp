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
  nlohmann::json out = {{"id", record.id},
                        {"address", record.address},
                        {"protocol", record.protocol},
                        {"state", name(record.state)},
                        {"started_at", record.started_at},
                        {"labels", record.labels}};
  if (!record.reason.empty()) out["reason"] = record.reason.substr(0, kMaxReasonBytes);
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
  const bool unused = now.counted && any_ && (now.commands == commands_ || now.router_connections == 0);
  const bool idle = now.absent || unused;
  any_ = now.counted;
  commands_ = now.commands;
  quiet_ = idle ? quiet_ + 1 : 0;
  return quiet_ >= kLooks;
}

}  // namespace ringshift::agent
