// What the pool asks members itself, over their shared connections: to kill an orphan, to unblock a client.
//
// Fire and forget, with a second try left to whoever wants it: an errand that fails only makes its orphan or
// its connection ready for another. Bound: one errand for each orphan and for each private connection.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "backend/connection.h"

namespace ringshift::backend {

class Errands final : public ReplySink {
 public:
  // `find`: a connection of the pool by its serial, or null.
  Errands(PoolShared& shared, std::function<Connection*(std::uint64_t serial)> find)
      : shared_(shared), find_(std::move(find)) {}

  // CLIENT KILL ID for each orphan that the member's process of now has. Those of earlier ones go with the
  // handshake that meets the new process.
  void kill_orphans(const std::shared_ptr<MemberState>& member);
  // `serial` of the private connection that hears when the errand is over; 0 for none.
  void unblock(const MemberState& member, std::uint64_t client_id, bool with_error, std::uint64_t serial);

 private:
  struct Kill {
    std::weak_ptr<MemberState> member;
    std::uint64_t client_id;
    std::string run_id;
  };
  static constexpr std::uint64_t kKill = 1, kUnblock = 0;  // A tag's lowest bit.

  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const Failure& failure) override;
  void over(std::uint64_t tag, bool killed, std::string_view problem);

  PoolShared& shared_;
  const std::function<Connection*(std::uint64_t)> find_;
  std::unordered_map<std::uint64_t, Kill> kills_;  // By tag.
  std::uint64_t last_kill_ = 0;
};

}  // namespace ringshift::backend
