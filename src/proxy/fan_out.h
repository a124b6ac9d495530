// A command that every member is asked, and the one answer made of theirs: DBSIZE, KEYS, SCRIPT LOAD, ...
//
// A member that fails makes the whole answer an error: a part of the truth would look like all of it. The
// error of a command that changed something on the other members says on which it failed. Keys that begin
// with rs: are ours and are not shown. While a resize moves keys, one that moved between two members' answers
// could be missed, so the members of KEYS are asked twice; each key is shown once.
//
// DBSIZE counts what the members say at slightly different moments: a key that moves just then may be counted
// twice or not at all.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"
#include "proxy/task.h"

namespace ringshift::proxy {

class Session;
class Upstream;

// What each member is sent for the client's command: the command itself, or a script where the members'
// reserved keys must be spared (DBSIZE, FLUSHALL).
[[nodiscard]] std::string member_command(const protocol::resp::Command& command,
                                         const protocol::resp::CommandParser& arguments);

class FanOut final : public Task {
 public:
  FanOut(Session& session, std::uint64_t number, protocol::resp::FanOut kind);

  // After it is in its slot. `command`: the whole command in RESP, as every member gets it.
  void start(std::string_view command);

  void on_reply(std::uint64_t tag, std::string_view raw) override;  // The tag is the member's place.
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  void ask_all();
  void take(std::string_view raw, const Upstream* from);
  void take_keys(std::string_view raw, const Upstream* from);
  void take_flags(std::string_view raw);
  void round_done();
  void failed_on(std::uint64_t member);
  [[nodiscard]] std::string answer();
  [[nodiscard]] std::string partial_error() const;
  void look_at_scripts();

  Session& session_;
  const std::uint64_t number_;
  const protocol::resp::FanOut kind_;
  const backend::Resp resp_;
  std::string command_;
  std::size_t waiting_ = 0;
  unsigned rounds_left_ = 1;
  std::int64_t number_sum_ = 0;
  bool some_ok_ = false;
  std::string first_reply_, error_;
  std::unordered_set<std::string> keys_;
  std::vector<bool> flags_;      // Of SCRIPT EXISTS: every member has it;
  std::vector<bool> any_flags_;  // some member has it.
  struct Asked {
    Upstream* upstream;
    std::string member;  // Id.
  };
  std::vector<Asked> asked_;
  std::vector<std::string> failed_on_;  // Ids.
};

}  // namespace ringshift::proxy
