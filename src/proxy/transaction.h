// MULTI and WATCH of one client.
//
// The proxy itself keeps what is queued after MULTI, and sends MULTI ... EXEC as one block when EXEC comes.
// So an open transaction has nothing at a member, and a resize step has nothing of it to cancel. All keys
// must be on one member: the command that names another is answered CROSSSLOT, and EXEC then EXECABORT.
//
// WATCH needs the member. It goes over a private connection, and EXEC's block after it. When a watched key is
// no longer settled where it was watched (a resize step), or the connection is lost, EXEC answers nil:
// aborted though perhaps nothing was changed is allowed, the contrary is not.
//
// Belongs to a session; the worker's thread. Bound: kMaxBlockBytes of queued commands.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "proxy/key_set.h"

namespace ringshift::proxy {

class Session;

class Transaction final : private backend::ReplySink, private backend::PrivateOwner {
 public:
  static constexpr std::size_t kMaxBlockBytes = 32U << 20;

  explicit Transaction(Session& session);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  [[nodiscard]] bool queueing() const noexcept { return queueing_; }
  [[nodiscard]] bool watching() const noexcept { return watch_ != nullptr || watch_broken_; }
  // Nothing is open: the session may drop it.
  [[nodiscard]] bool idle() const noexcept { return !queueing_ && !watching() && awaited_ == 0; }

  [[nodiscard]] std::int64_t count() const noexcept {  // Queued commands.
    return static_cast<std::int64_t>(count_);
  }

  void begin() noexcept { queueing_ = true; }  // MULTI
  // A command between MULTI and EXEC. The answer, with its line end.
  [[nodiscard]] std::string queue(const protocol::resp::Command& command,
                                  const protocol::resp::CommandParser& arguments);
  void spoil() noexcept {
    spoiled_ = queueing_;
  }  // A command was refused instead of queued: EXEC will be too.
  // EXEC, DISCARD, UNWATCH. They answer. REQUIRES: with watching(), nothing is in flight.
  void exec();
  void discard();
  void unwatch();
  void drop();  // RESET: forgets all and answers nothing.

  // REQUIRES: not queueing(), and nothing is in flight. Answers by itself.
  void watch(const protocol::resp::Command& command, const protocol::resp::CommandParser& arguments);

  // The worker has adopted a snapshot.
  void topology_changed();

 private:
  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;
  void on_lost(const backend::Failure& failure) override;

  void send_watch(std::uint64_t number, const Destination& where, const std::string& bytes);
  void exec_watched(const std::string& block, std::size_t count);
  [[nodiscard]] bool member_is(const Destination& where) const;
  [[nodiscard]] bool is_watch_member(const Destination& where) const;
  void drop_and_refuse(std::string_view error);
  void drop_and_abort();  // EXEC's answer when a watched key has changed.
  void reset_queue();
  void settle();  // After the last command of a watch.

  Session& session_;
  bool queueing_ = false;
  bool spoiled_ = false;
  std::string block_;  // The queued commands.
  std::size_t count_ = 0;
  std::vector<std::string> keys_;  // That the queued commands name.
  Destination where_;

  std::unique_ptr<backend::PrivateConnection> watch_;
  std::vector<std::string> watched_;
  Upstream* watch_upstream_ = nullptr;
  std::string watch_member_;                      // Id.
  backend::Resp watch_resp_ = backend::Resp::v2;  // What the pool takes watch_ to speak,
  bool watch_switched_ = false;                   // and the client asked for another since.
  bool watch_broken_ = false;                     // EXEC must answer nil.
  std::uint64_t awaited_ = 0;                     // Commands of ours that are under way on watch_.
  bool over_ = false;                             // EXEC is under way: give watch_ back after it.
};

}  // namespace ringshift::proxy
