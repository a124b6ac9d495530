// A large command of one key on its way from the client to its member, in pieces; or one that is refused,
// whose rest is swallowed.
//
// It has a private connection, so that nobody waits behind it; its client's earlier commands are answered
// before it begins, and the later ones are read when it is answered: so a client's order is kept. At most
// kWindow bytes and what one wakeup reads are queued for the member; beyond that the client is not read from.
// A client that sends nothing for slow_client_timeout loses the connection to the member, and gets an error.
//
// Between members (HOLD, DUAL) it begins when the dual router has pulled the key to its new member, and is
// sent there. Invariant, for a barrier of a resize: from its first byte to its answer it is in flight on its
// connection, which only is exempt from drains while its key stays where it is. When that ends, a command
// that is not wholly sent is cut off at once, so that the member cannot execute it any more, and refused; one
// that is waits for its answer, and the drain for it.
//
// Ends like any task, when the whole command was read and is answered, or its client has gone.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "protocol/resp/command_tail.h"
#include "proxy/dual_router.h"
#include "proxy/task.h"

namespace ringshift::proxy {

class Session;
class Upstream;

class Upload final : public Task, private backend::PrivateOwner {
 public:
  static constexpr std::size_t kWindow = 1U << 20;

  Upload(Session& session, std::uint64_t number, protocol::resp::CommandTail tail)
      : session_(session), number_(number), tail_(std::move(tail)) {}
  ~Upload() override;

  // Once it is in its slot, one of these. `head`: the command's bytes before the tail.
  void start(Upstream& upstream, std::string_view key, std::string_view head, backend::Traffic traffic);
  void skip(std::string answer);  // "": it was answered already.

  // What the client sent next; how much of it is done with. May end this.
  [[nodiscard]] std::size_t take(std::string_view bytes);
  // take() would take nothing: the session does not read until Session::upload_goes_on().
  [[nodiscard]] bool choked() const noexcept;

  void abandon() override;
  void topology_changed() override;

  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  enum class Phase : std::uint8_t {
    pulling,   // The dual router has the key.
    opening,   // The connection is not ready; nothing was sent.
    sending,   // Some of it was.
    sent,      // All of it: the answer is due.
    skipping,  // Nothing is sent any more; the answer comes when the rest was read.
  };
  void on_ready() override;
  void on_lost(const backend::Failure& failure) override;
  void on_drained() override;
  void locate();
  void open(topology::MemberIndex member);
  [[nodiscard]] bool stays() const;
  void give_up(std::string answer);  // Before or after all of it was read.
  void finish(std::string answer);
  void look_for_stall();

  Session& session_;
  const std::uint64_t number_;
  protocol::resp::CommandTail tail_;
  Phase phase_ = Phase::skipping;
  Upstream* upstream_ = nullptr;
  std::string key_, head_, answer_;
  backend::Traffic traffic_ = backend::Traffic::none;
  std::unique_ptr<backend::PrivateConnection> connection_;
  std::optional<Pulled> pulled_;  // Nullopt: the key was settled when it began.
  std::unique_ptr<net::Timer> stall_;
  std::uint64_t received_ = 0, received_then_ = 0;
  bool abandoned_ = false;
};

}  // namespace ringshift::proxy
