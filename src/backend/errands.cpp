#include "backend/errands.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "protocol/resp/value.h"

namespace ringshift::backend {

void Errands::kill_orphans(const std::shared_ptr<MemberState>& member) {
  Connection* const shared = member->shared;
  if (shared == nullptr || !shared->connected()) return;  // Its handshake does it.
  for (Orphan& orphan : member->orphans) {
    if (orphan.being_killed || orphan.client_id == 0 || orphan.run_id != shared->run_id()) continue;
    orphan.being_killed = true;
    const std::uint64_t tag = ++last_kill_ << 1 | kKill;
    kills_.emplace(tag, Kill{member, orphan.client_id, orphan.run_id});
    std::string command;
    protocol::resp::append_command(command, {"CLIENT", "KILL", "ID", std::to_string(orphan.client_id)});
    shared->send(command, *this, tag, Traffic::none);
  }
}

void Errands::unblock(const MemberState& member, std::uint64_t client_id, bool with_error,
                      std::uint64_t serial) {
  std::string command;
  protocol::resp::append_command(
      command, {"CLIENT", "UNBLOCK", std::to_string(client_id), with_error ? "ERROR" : "TIMEOUT"});
  if (member.shared != nullptr)
    return member.shared->send(command, *this, serial << 1 | kUnblock, Traffic::none);
  if (Connection* const connection = find_(serial)) connection->unblock_answered();
}

void Errands::on_reply(std::uint64_t tag, std::string_view raw) {
  // 0 and "No such client" both mean that the connection is gone.
  const bool killed = !raw.starts_with('-') || raw.find("No such client") != std::string_view::npos;
  over(tag, killed, raw.substr(0, raw.find('\r')));
}

void Errands::on_failure(std::uint64_t tag, const Failure& failure) { over(tag, false, failure.reason); }

void Errands::over(std::uint64_t tag, bool killed, std::string_view problem) {
  if ((tag & 1) == kUnblock) {
    if (Connection* const connection = find_(tag >> 1)) connection->unblock_answered();
    return;
  }
  const Kill kill = kills_.extract(tag).mapped();
  const auto member = kill.member.lock();
  if (member == nullptr) return;
  const auto orphan = std::ranges::find_if(member->orphans, [&](const Orphan& one) {
    return one.client_id == kill.client_id && one.run_id == kill.run_id;
  });
  if (orphan == member->orphans.end()) return;
  if (killed) {
    member->orphans.erase(orphan);
    shared_.keep_house_soon();  // A drain may wait for this.
    return;
  }
  orphan->being_killed = false;
  if (std::exchange(orphan->lamented, true)) return;  // A drain asks again and again.
  base::log(base::LogLevel::warning,
            "member {}: CLIENT KILL of our closed connection {} failed: {}; a resize waits until the member "
            "allows it",
            member->id, kill.client_id, problem);
}

}  // namespace ringshift::backend
