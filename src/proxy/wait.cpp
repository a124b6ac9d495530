#include "proxy/wait.h"

#include <algorithm>
#include <utility>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/value.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::CommandParser;
using protocol::resp::Value;

namespace {

constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

// PING's answer says nothing; its failure is followed by WAIT's.
class Ignore final : public backend::ReplySink {
  void on_reply(std::uint64_t, std::string_view) override {}
  void on_failure(std::uint64_t, const backend::Failure&) override {}
};
Ignore ignore;

}  // namespace

// One member's connection.
class WaitAll::Leg final : public backend::PrivateOwner {
 public:
  Leg(WaitAll& all, std::uint64_t tag, Upstream& upstream, topology::MemberIndex member, backend::Resp resp)
      : all_(all),
        tag_(tag),
        upstream_(upstream),
        connection_(upstream.pool().open_private(member, resp, *this)) {}

  void ask(std::string_view command) {
    connection_->set_exempt(true);  // It changes nothing that a resize step could mind.
    connection_->send(kPing, ignore, 0);
    connection_->send_untimed(command, all_, tag_, backend::Traffic::other);
  }
  void answered() {
    done_ = true;
    upstream_.pool().give_back(std::move(connection_));
  }
  void failed() { done_ = true; }
  void unblock(bool with_error) {
    if (!done_) connection_->unblock(with_error);
  }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] const std::string& member() const noexcept { return connection_->member(); }
  [[nodiscard]] bool has_left() const {
    return upstream_.snapshot().index_of(connection_->member()) == topology::kNoMember;
  }

 private:
  void on_lost(const backend::Failure& failure) override {
    if (!done_) all_.on_failure(tag_, failure);
  }

  WaitAll& all_;
  const std::uint64_t tag_;
  Upstream& upstream_;
  bool done_ = false;
  std::unique_ptr<backend::PrivateConnection> connection_;
};

void WaitAll::run(Session& session, const CommandParser& arguments) {
  const std::string command(arguments.raw());
  const std::uint64_t number = session.take_waiting();
  auto owned = std::make_unique<WaitAll>(session, number);
  WaitAll& wait = *owned;
  session.hold_task(number, std::move(owned));
  wait.start(command, protocol::resp::blocks(*protocol::resp::find_command("wait"), arguments));
}

WaitAll::WaitAll(Session& session, std::uint64_t number) : session_(session), number_(number) {}
WaitAll::~WaitAll() = default;

void WaitAll::start(std::string_view command, const protocol::resp::Blocks& blocks) {
  for (Upstream* upstream : session_.reach().upstreams()) {
    const std::size_t members = upstream->snapshot().members().size();
    for (topology::MemberIndex member = 0; member < members; ++member) {
      legs_.push_back(std::make_unique<Leg>(*this, legs_.size(), *upstream, member, session_.resp()));
    }
  }
  waiting_ = legs_.size();
  for (const auto& leg : legs_) leg->ask(command);
  if (blocks.forever) return;
  Worker& worker = session_.worker();
  deadline_ = worker.loop().timer([this] { overdue(); });
  deadline_->arm(blocks.timeout + worker.options().request_timeout);
}

void WaitAll::overdue() {
  for (std::size_t tag = 0; tag < legs_.size(); ++tag) {
    if (legs_[tag]->done()) continue;
    const std::string member = legs_[tag]->member();
    return on_failure(tag, {backend::Failure::Kind::unknown, member, "is silent beyond WAIT's own timeout"});
  }
}

void WaitAll::on_reply(std::uint64_t tag, std::string_view raw) {
  const std::string reply(raw);  // It may live in the connection.
  legs_[tag]->answered();
  if (reply.starts_with('-')) return finish(reply);
  const auto decoded = protocol::resp::decode(reply);
  if (!decoded || !*decoded || (*decoded)->value.type != Value::Type::integer) return finish(kBadReply);
  const std::int64_t replicas = (*decoded)->value.integer;
  smallest_ = smallest_ < 0 ? replicas : std::min(smallest_, replicas);
  leg_done();
}

void WaitAll::on_failure(std::uint64_t tag, const backend::Failure& failure) {
  if (legs_[tag]->has_left()) {
    legs_[tag]->failed();
    return leg_done();
  }
  session_.count_failure(failure.kind);
  finish(failure_reply(failure));
}

void WaitAll::leg_done() {
  if (--waiting_ != 0) return;
  std::string answer;
  append_integer(answer, std::max<std::int64_t>(smallest_, 0));
  finish(answer);
}

bool WaitAll::unblock(bool with_error) {
  for (const auto& leg : legs_) leg->unblock(with_error);
  return true;
}

void WaitAll::abandon() { finish(""); }

void WaitAll::finish(std::string_view answer) { session_.task_done(number_, answer); }

}  // namespace ringshift::proxy
