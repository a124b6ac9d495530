// A command on many keys, cut into one command a member and put together again: MGET, MSET, and those that
// count (DEL, UNLINK, EXISTS, TOUCH). Keys that are between two members are a part each and go through the
// DualRouter.
//
// Invariant: waits for every part, then answers once. A part that failed makes the whole answer an error,
// never a nil: a nil would say "not in the cache". Owned by its session's slot; on the worker's thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "protocol/resp/command_table.h"
#include "proxy/task.h"

namespace ringshift::proxy {

class Session;
class Upstream;

class Split final : public Task {
 public:
  Split(Session& session, std::uint64_t number, const protocol::resp::Command& command, backend::Resp resp)
      : session_(session), number_(number), command_(command), resp_(resp) {}

  // The parts of a command, before they are sent. Key i of the command belongs to part part_of_key[i].
  void expect(std::size_t parts, std::vector<std::uint32_t> part_of_key);

  void on_reply(std::uint64_t tag, std::string_view raw) override;  // The tag is the part.
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  void part_done();
  [[nodiscard]] std::string weave() const;
  [[nodiscard]] std::string failure_text() const;
  [[nodiscard]] bool writes() const noexcept;

  Session& session_;
  const std::uint64_t number_;
  const protocol::resp::Command& command_;
  const backend::Resp resp_;
  std::vector<std::uint32_t> part_of_key_;
  std::vector<std::string> replies_;  // MGET: one a part.
  std::size_t remaining_ = 0;
  std::size_t executed_ = 0;  // Parts that a member answered without an error.
  std::int64_t sum_ = 0;
  std::string error_;    // A member's first error reply.
  bool failed_ = false;  // Some part got no reply; the first one that says most is kept here:
  backend::Failure::Kind failure_kind_ = backend::Failure::Kind::unsent;
  std::string failure_member_, failure_reason_;
};

// Where a split command's parts are put together, one per worker and used again and again.
//
// A part grows behind kHeaderRoom bytes, into which its header ("*3\r\n$4\r\nMGET\r\n") is written last, when
// the number of its arguments is known.
class SplitScratch {
 public:
  static constexpr std::size_t kHeaderRoom = 64;

  struct Part {
    std::string text;
    std::size_t arguments = 0;
    Upstream* upstream = nullptr;
    topology::MemberIndex member = topology::kNoMember;  // kNoMember: one key, for the DualRouter.
    std::size_t key = 0;                                 // That key's place among the arguments.
  };

  void begin();
  // The part of a settled key's member.
  std::uint32_t part_of(Upstream& upstream, topology::MemberIndex member);
  // A part of its own.
  std::uint32_t lone_part(Upstream& upstream, std::size_t key);
  void add_argument(std::uint32_t part, std::string_view argument);
  // The whole command of a part.
  std::string_view command(std::uint32_t part, std::string_view name);
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  [[nodiscard]] const Part& operator[](std::uint32_t part) const noexcept { return parts_[part]; }

 private:
  std::uint32_t next();

  std::vector<Part> parts_;
  std::size_t used_ = 0;
  struct Parts {  // Of one cluster's members.
    Upstream* upstream = nullptr;
    std::vector<std::uint32_t> of_member;
  };
  std::vector<Parts> clusters_;  // Those that this command has met; one nearly always.
  std::size_t clusters_used_ = 0;
};

}  // namespace ringshift::proxy
