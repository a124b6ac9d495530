// A peer's placement as one of Placement's algorithms: owned on the heap behind its interface, so that the
// variant stays small and our own algorithms' hot path is as it was.
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "placement/peers/peer.h"

namespace ringshift::placement {

class PeerPlacement {
 public:
  // REQUIRES: not null.
  explicit PeerPlacement(std::unique_ptr<const peers::Peer> peer) : peer_(std::move(peer)) {}

  [[nodiscard]] std::uint64_t hash(std::string_view tagged) const noexcept { return peer_->hash(tagged); }
  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept { return peer_->owner_of(hash); }
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    peer_->walk(hash, [&visit](MemberIndex member) -> bool { return visit(member); });
  }
  [[nodiscard]] const peers::Peer& peer() const noexcept { return *peer_; }

 private:
  std::unique_ptr<const peers::Peer> peer_;
};

}  // namespace ringshift::placement
