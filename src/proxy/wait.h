// WAIT over all members: the smallest number of replicas that any of them answers.
//
// WAIT counts the replicas that have what its own connection wrote. Ours is a private one that wrote nothing;
// but Redis takes, after every command of a connection, the member's replication offset of that moment, other
// clients' writes included. So each connection sends PING first, when all earlier commands of the client are
// answered: its WAIT then covers them (and what others wrote before, which may make it wait longer, never
// shorter).
//
// Ends when all members have answered, or one has failed (an error; but one that leaves the cluster is not
// asked any more) or is silent beyond WAIT's own timeout and a request's, or the client leaves. The worker's
// thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "net/loop.h"
#include "protocol/resp/command_keys.h"
#include "proxy/task.h"

namespace ringshift::protocol::resp {
class CommandParser;
}

namespace ringshift::proxy {

class Session;

class WaitAll final : public Task {
 public:
  // REQUIRES: nothing is in flight, the arity fits.
  static void run(Session& session, const protocol::resp::CommandParser& arguments);

  WaitAll(Session& session, std::uint64_t number);
  ~WaitAll() override;
  void start(std::string_view command, const protocol::resp::Blocks& blocks);
  void abandon() override;
  bool unblock(bool with_error) override;
  void on_reply(std::uint64_t tag, std::string_view raw) override;  // The tag is the member's place.
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  class Leg;
  void leg_done();
  void overdue();
  void finish(std::string_view answer);

  Session& session_;
  const std::uint64_t number_;
  std::vector<std::unique_ptr<Leg>> legs_;
  std::size_t waiting_ = 0;
  std::int64_t smallest_ = -1;            // None yet.
  std::unique_ptr<net::Timer> deadline_;  // Null when it waits for ever.
};

}  // namespace ringshift::proxy
