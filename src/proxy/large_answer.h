// A large answer on its way from a member to the client, in pieces: what the client has not taken waits at
// the member, not here.
//
// In the slot of its command, which is `ready` all the while: so the session tells it from other tasks that
// its turn has come. Invariant: pieces go to the client only while its command is the oldest unanswered one;
// before that at most one piece is kept. At most kWindow bytes and one piece are queued for the client,
// unless the connection says hurry(): then all, within the bounds of unread answers.
//
// Failure: a member that breaks off leaves the client with half an answer, which cannot be mended: it is
// disconnected. If nothing had gone out yet, it gets an error.
#pragma once
#include "backend/backend.h"
#include "proxy/task.h"

namespace ringshift::proxy {

class Session;

class LargeAnswer final : public Task, public backend::PieceTaker {
 public:
  static constexpr std::size_t kWindow = 1U << 20;

  LargeAnswer(Session& session, std::uint64_t number, backend::LargeReply& from)
      : session_(session), number_(number), from_(&from) {}

  // Its turn has come, or the client has taken what it had.
  void go_on();
  void abandon() override;

  bool on_piece(std::string_view bytes, bool last) override;
  void hurry() override;
  void on_broken(const backend::Failure& failure) override;
  void on_gone() override { from_ = nullptr; }

  void on_reply(std::uint64_t, std::string_view) override {}  // Nothing is sent for it.
  void on_failure(std::uint64_t, const backend::Failure&) override {}

 private:
  Session& session_;
  const std::uint64_t number_;
  backend::LargeReply* from_;
  bool paused_ = false;
  bool hurried_ = false;
};

}  // namespace ringshift::proxy
