// A question to every worker's thread, and the one answer made of what they say: CLIENT LIST, CLIENT KILL,
// CONFIG SET, INFO, ... It waits in the slot of the session that asks.
//
// Any worker may end meanwhile: its Mailbox answers for it as one that has nothing, or refuses, which counts
// as such an answer. So no question is left without an answer, and none holds up a shutdown.
// Nor need it be abandoned when the client sends no more.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/task.h"

namespace ringshift::proxy {

class Session;
class Worker;

class Gather final : public Task {
 public:
  struct Row {
    std::uint64_t order = 0;
    std::string text;
  };
  struct Part {  // What one worker says.
    std::int64_t number = 0;
    std::vector<Row> rows;
  };
  // On each worker's thread in its turn. It may have lost its sessions and upstreams already.
  using Ask = std::function<Part(Worker&)>;
  // Back on the session's: the whole reply, of all parts as one: numbers added, rows in their order.
  using Finish = std::function<std::string(const Part& all)>;

  Gather(Session& session, std::uint64_t number, Finish finish);
  ~Gather() override;

  // After it is in its slot.
  void start(const Ask& ask);

  void on_reply(std::uint64_t, std::string_view) override {}  // It asks no member.
  void on_failure(std::uint64_t, const backend::Failure&) override {}

 private:
  struct State;
  void finish();

  Session& session_;
  const std::uint64_t number_;
  const Finish finish_;
  std::shared_ptr<State> state_;  // Used by this session's thread alone.
};

}  // namespace ringshift::proxy
