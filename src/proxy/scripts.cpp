#include "proxy/scripts.h"

#include <utility>

#include "backend/access.h"
#include "net/stream.h"
#include "protocol/resp/value.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::CommandParser;

namespace {

constexpr std::size_t kMaxAnswerBytes = 16U << 10;  // To SCRIPT KILL.

// Whole, so that a script's own error that begins like it is not taken for it.
constexpr std::string_view kNoScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

}  // namespace

// --- EVALSHA -----------------------------------------------------------------------------------------------

void ScriptCall::run(Session& session, const CommandParser& arguments, CommandKeys located) {
  const std::uint64_t number = session.take_number();
  auto owned = std::make_unique<ScriptCall>(session, number, std::move(located.keys), arguments.raw(),
                                            arguments.argument(1));
  ScriptCall& call = *owned;
  session.hold_task(number, std::move(owned));
  call.send(located.where, call.command_, 1);
}

ScriptCall::ScriptCall(Session& session, std::uint64_t number, std::vector<std::string> keys,
                       std::string_view command, std::string_view sha)
    : session_(session),
      number_(number),
      resp_(session.resp()),
      keys_(std::move(keys)),
      command_(command),
      sha_(sha) {}

void ScriptCall::send(const Destination& where, std::string bytes, std::size_t count) {
  if (where.settled) {
    where.upstream->pool()
        .at(where.member, resp_)
        .send_block(bytes, count, *this, 0, backend::Traffic::write);
    return;
  }
  where.upstream->dual().submit_multi({.bytes = std::move(bytes),
                                       .count = count,
                                       .keys = keys_,
                                       .member = where.upstream->snapshot().members()[where.member].id,
                                       .traffic = backend::Traffic::write,
                                       .resp = resp_,
                                       .sink = this,
                                       .tag = 0});
}

void ScriptCall::on_reply(std::uint64_t, std::string_view raw) {
  if (only_loading_) return session_.task_done(number_, kNoScript);
  if (raw == kNoScript && !loaded_ && load_and_send_again()) return;
  if (raw.starts_with('-')) session_.worker().counters().add(telemetry::Counter::errors_member);
  session_.task_done(number_, raw);
}

bool ScriptCall::load_and_send_again() {
  const auto known = session_.worker().scripts().find(sha_);
  if (!known) return false;
  std::string_view error;
  const Destination where = locate_again(session_.reach(), keys_, error);
  if (!error.empty()) return false;  // The members changed; the client may try again.
  loaded_ = true;
  only_loading_ = !session_.is_last(number_);
  std::string block;
  protocol::resp::append_command(block, {"SCRIPT", "LOAD", known->script});
  if (!only_loading_) {
    block += command_;
    session_.hold_back();
  }
  send(where, std::move(block), only_loading_ ? 1 : 2);
  return true;
}

void ScriptCall::on_failure(std::uint64_t, const backend::Failure& failure) {
  if (only_loading_) return session_.task_done(number_, kNoScript);
  session_.count_failure(failure.kind);
  session_.task_done(number_, failure_reply(failure));
}

// --- SCRIPT KILL
// ---------------------------------------------------------------------------------------------

// One member's connection.
class KillScript::Asked final : public net::StreamHandler {
 public:
  Asked(KillScript& kill, std::uint64_t tag, std::string member)
      : kill_(kill), tag_(tag), member_(std::move(member)) {}
  void start(Worker& worker, std::string_view address, std::chrono::milliseconds timeout) {
    const backend::MemberAccess* access = worker.options().member_access.get();
    if (access != nullptr) credentials_ = access->credentials();
    stream_ = net::Stream::connect(worker.loop(), address, timeout, *this,
                                   access != nullptr ? access->tls() : nullptr);
  }
  // False when it has its answer. Else *this may be gone.
  bool give_up(std::string_view why) {
    if (done_) return false;
    done_ = true;
    stream_.reset();
    kill_.on_failure(tag_, {backend::Failure::Kind::unknown, member_, why});
    return true;
  }

 private:
  void on_connected() override {
    if (!credentials_.password.empty()) {
      std::string auth;
      backend::append_auth(auth, credentials_);
      stream_->append(auth);
      skip_ = 1;
    }
    stream_->append(kill_.command_);
    stream_->flush();
  }
  std::size_t on_data(std::string_view bytes) override {
    std::size_t begin = 0;
    for (; skip_ > 0; --skip_) {  // AUTH's answer; a member that refuses it refuses the next as well.
      const std::size_t line = bytes.find("\r\n", begin);
      if (line == std::string_view::npos) return 0;
      begin = line + 2;
    }
    if (done_) return bytes.size();
    if (begin == bytes.size()) return begin;
    // Its answers are lines: +OK, or an error.
    const bool line = bytes[begin] == '+' || bytes[begin] == '-';
    const std::size_t end = bytes.find("\r\n", begin);
    if (!line || (end == std::string_view::npos && bytes.size() - begin > kMaxAnswerBytes)) {
      static_cast<void>(give_up("its answer was not of the expected form"));
      return 0;
    }
    if (end == std::string_view::npos) return begin;
    done_ = true;
    kill_.on_reply(tag_, bytes.substr(begin, end + 2 - begin));  // May destroy *this.
    return 0;
  }
  void on_end() override { static_cast<void>(give_up("closed by the member")); }
  void on_closed(std::string_view reason) override { static_cast<void>(give_up(std::string(reason))); }

  KillScript& kill_;
  const std::uint64_t tag_;
  const std::string member_;
  bool done_ = false;
  std::unique_ptr<net::Stream> stream_;
  backend::Credentials credentials_;
  unsigned skip_ = 0;  // Lines that answer something else.
};

void KillScript::run(Session& session, const CommandParser& arguments) {
  const std::uint64_t number = session.take_number();
  auto owned = std::make_unique<KillScript>(session, number, arguments.raw());
  KillScript& kill = *owned;
  session.hold_task(number, std::move(owned));
  kill.start();
}

KillScript::KillScript(Session& session, std::uint64_t number, std::string_view command)
    : session_(session), number_(number), command_(command) {}
KillScript::~KillScript() = default;

void KillScript::start() {
  Worker& worker = session_.worker();
  const auto timeout = worker.options().request_timeout;
  const auto upstreams = session_.reach().upstreams();
  for (const Upstream* upstream : upstreams) waiting_ += upstream->snapshot().members().size();
  for (const Upstream* upstream : upstreams) {
    for (const topology::Member& member : upstream->snapshot().members()) {
      asked_.push_back(std::make_unique<Asked>(*this, asked_.size(), member.id));
      asked_.back()->start(worker, member.address, timeout);
    }
  }
  deadline_ = worker.loop().timer([this] {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      const bool last = waiting_ == 1;
      if (asked_[i]->give_up("timed out") && last) return;  // That was the end of this.
    }
  });
  deadline_->arm(timeout);
}

void KillScript::on_reply(std::uint64_t, std::string_view raw) {
  if (!raw.starts_with('-')) {
    ok_ = raw;
  } else if (error_.empty()) {
    error_ = raw;
  }
  one_done();
}

void KillScript::on_failure(std::uint64_t, const backend::Failure& failure) {
  session_.count_failure(failure.kind);
  if (error_.empty()) error_ = failure_reply(failure);
  one_done();
}

void KillScript::one_done() {
  if (--waiting_ == 0) finish();
}

void KillScript::finish() {
  const std::string answer = ok_.empty() ? error_ : ok_;
  session_.task_done(number_, answer);
}

void KillScript::abandon() {
  ok_.clear();
  finish();
}

}  // namespace ringshift::proxy
