#include "proxy/worker_admin.h"

#include <malloc.h>

#include <algorithm>

#include "proxy/session.h"
#include "proxy/upstream.h"
#include "proxy/worker.h"

namespace ringshift::proxy {
namespace {

constexpr std::size_t kTrimAfter = 4U << 20;  // Bytes that clients of one worker gave back within a second.

}  // namespace

void WorkerAdmin::count_error(std::string_view reply) {
  const std::string_view word = reply.substr(1, std::min(reply.find_first_of(" \r"), reply.size()) - 1);
  if (const auto known = errors.find(word); known != errors.end()) {
    ++known->second;
  } else if (errors.size() < kMaxErrors) {
    errors.emplace(word, 1);
  }
}

bool Worker::write_to(std::function<void()> letter) {
  if (!admin_.mailbox.put(std::move(letter))) return false;
  loop_.post([this] { admin_.mailbox.read(); });
  return true;
}

void Worker::look_at_settings() {
  const Settings& settings = shared_.settings;
  admin_.measuring = settings.slowlog_slower_than.get() >= 0 || settings.latency_threshold.get() > 0 ||
                     settings.latency_tracking.get() != 0 || settings.slow_log_ms.get() > 0;
  admin_.attentive = admin_.measuring || admin_.pause != PauseMode::none;
  admin_.until_look = 1;
  while (admin_.slow.size() > settings.slowlog_max_len.size()) admin_.slow.pop_back();
}

void Worker::pause_clients(PauseMode mode, base::TimePoint until) {
  if (admin_.pause_timer == nullptr) return;  // It has ended.
  // A pause under way is never made shorter or weaker.
  admin_.pause = std::max(admin_.pause, mode);
  admin_.paused_until = std::max(admin_.paused_until, until);
  admin_.pause_timer->arm(std::max(base::Duration(0), admin_.paused_until - loop_.now()));
  look_at_settings();
}

void Worker::unpause_clients() {
  if (admin_.pause_timer == nullptr) return;
  admin_.pause_timer->cancel();
  admin_.pause = PauseMode::none;
  admin_.paused_until = {};
  look_at_settings();
  for (const auto& session : sessions_) session->release();
}

std::map<std::string, std::string> Worker::members_down(std::size_t cluster) const {
  std::map<std::string, std::string> down;
  if (cluster >= upstreams_.size()) return down;
  const auto members = upstreams_[cluster]->snapshot().members();
  for (topology::MemberIndex i = 0; i < members.size(); ++i) {
    const backend::MemberFigures figures = upstreams_[cluster]->pool().figures(i);
    if (!figures.connected && !figures.down_reason.empty()) down.emplace(members[i].id, figures.down_reason);
  }
  return down;
}

void Worker::every_second() {
  std::size_t given_back = 0;
  for (const auto& session : sessions_) given_back += session->every_second(loop_.now());
  // What many small clients gave back lies between what they keep: the allocator alone would hold it for
  // ever.
  if (given_back >= kTrimAfter) ::malloc_trim(0);
  telemetry::Totals totals{};
  counters_.add_to(totals);
  constexpr telemetry::Counter kOfASecond[] = {telemetry::Counter::requests, telemetry::Counter::bytes_in,
                                               telemetry::Counter::bytes_out};
  for (std::size_t i = 0; i < admin_.counted.size(); ++i) {
    const auto now = static_cast<std::int64_t>(telemetry::get(totals, kOfASecond[i]));
    admin_.last_second[i] = now - admin_.counted[i];
    admin_.counted[i] = now;
  }
  admin_.a_second_begins();
  const HotKeySampler::Seen seen{telemetry::get(totals, telemetry::Counter::requests), admin_.samples_taken};
  for (const auto& upstream : upstreams_) upstream->hot_keys().every_second(seen, loop_.now());
  for (const auto& [number, database] : databases_) {
    for (const auto& upstream : database.upstreams) upstream->hot_keys().every_second(seen, loop_.now());
  }
  admin_.every_second->arm(std::chrono::seconds(1));
}

}  // namespace ringshift::proxy
