// RANDOMKEY over all members: a member is drawn in proportion to its size, and gives a key of its own that is
// not reserved. nil only when no member gives one. Two rounds of questions; a member that fails makes it an
// error. (Within a member the draw is Redis' own. A key may go while we ask: the next member is asked then.)
#pragma once
#include <random>
#include <vector>

#include "proxy/task.h"

namespace ringshift::proxy {

class Session;
class Upstream;

class RandomKey final : public Task {
 public:
  static void run(Session& session);

  RandomKey(Session& session, std::uint64_t number);
  void start();
  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  struct Member {
    Upstream* upstream;
    std::string id;
    std::uint64_t size = 0;
  };
  void draw();
  void finish(std::string_view answer);

  Session& session_;
  const std::uint64_t number_;
  const backend::Resp resp_;
  std::vector<Member> members_;
  std::size_t waiting_ = 0;
  bool sized_ = false;
  std::string error_;
  std::size_t drawn_ = 0;
};

}  // namespace ringshift::proxy
