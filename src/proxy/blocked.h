// One command that may wait at its member: BLPOP and its kin, XREAD with BLOCK.
//
// It has a private connection, so that nobody waits behind it. Its client's next command is not read until it
// is answered, as with Redis. When a key of it begins to move, it is unblocked at the old member and asked
// again, for the time that is left, where the key then is. (XREAD with `$` means "from now on": entries added
// between the two are not seen.)
//
// Ends when the member answers, when the connection breaks (an error to the client), or when the client
// leaves (the connection is closed, which ends the wait as with Redis). A member that is silent beyond the
// command's own timeout and a request's costs an error as well; without a timeout nobody can tell it from one
// that has nothing yet.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "proxy/key_set.h"
#include "proxy/task.h"

namespace ringshift::proxy {

class Session;

class Blocked final : public Task, private backend::PrivateOwner {
 public:
  Blocked(Session& session, std::uint64_t number, CommandKeys located, const protocol::resp::Command& command,
          const protocol::resp::CommandParser& arguments);
  ~Blocked() override;

  // After it is in its slot.
  void start();

  void abandon() override;
  void topology_changed() override;
  bool unblock(bool with_error) override;

  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  void on_lost(const backend::Failure& failure) override;
  void pull_and_open();
  void open(const Destination& where);
  [[nodiscard]] std::string command_for_the_time_left() const;
  [[nodiscard]] Destination locate(std::string_view& error) const;
  void overdue();
  void finish(std::string_view answer);

  Session& session_;
  const std::uint64_t number_;
  std::vector<std::string> keys_;
  std::vector<std::string> arguments_;
  std::size_t timeout_at_ = 0;  // Index of the timeout among the arguments; 0: it has none.
  const backend::Traffic traffic_;
  bool in_milliseconds_ = false;
  bool forever_ = false;
  base::TimePoint until_{};
  std::unique_ptr<net::Timer> deadline_;  // Null when it waits for ever.
  Upstream* upstream_ = nullptr;
  std::unique_ptr<backend::PrivateConnection> connection_;
  bool asked_ = false;
  bool pulling_ = false;
  bool moving_ = false;  // Unblocked by us, to be asked again.
  bool abandoned_ = false;
};

}  // namespace ringshift::proxy
