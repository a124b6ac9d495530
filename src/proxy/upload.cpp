#include "proxy/upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using backend::Failure;
using protocol::resp::CommandTail;
using topology::KeyState;

namespace {

constexpr std::string_view kMoved =
    "-TRYAGAIN the key began to move to another member while its value was coming in: nothing was "
    "written\r\n";

}  // namespace

Upload::~Upload() = default;

void Upload::start(Upstream& upstream, std::string_view key, std::string_view head,
                   backend::Traffic traffic) {
  upstream_ = &upstream;
  traffic_ = traffic;
  key_ = key;
  head_ = head;
  stall_ = session_.worker().loop().timer([this] { look_for_stall(); });
  look_for_stall();
  locate();
}

void Upload::skip(std::string answer) {
  phase_ = Phase::skipping;
  answer_ = std::move(answer);
}

// ---- where to ----

void Upload::locate() {
  const topology::Route route = upstream_->snapshot().route(key_);
  if (route.state == KeyState::settled && !upstream_->dual().pending(key_)) {
    pulled_.reset();
    return open(route.member);
  }
  phase_ = Phase::pulling;
  upstream_->dual().pull({key_}, [this](const Pulled& pulled) {
    if (abandoned_) return finish("");
    pulled_ = pulled;
    if (!pulled.error.empty()) return give_up(pulled.error);
    open(pulled.member);
  });
}

void Upload::open(topology::MemberIndex member) {
  phase_ = Phase::opening;
  connection_ = upstream_->pool().open_private(member, session_.resp(), *this);
  connection_->set_exempt(true);  // It stays where it is, as of now.
}

void Upload::on_ready() {
  phase_ = Phase::sending;
  connection_->begin_command(*this, 0, traffic_);
  connection_->add_piece(head_);
  std::string().swap(head_);
  session_.upload_goes_on();
}

// Whether the key is still where the connection leads.
bool Upload::stays() const {
  const topology::Snapshot& snapshot = upstream_->snapshot();
  const topology::Route route = snapshot.route(key_);
  if (snapshot.members()[route.member].id != connection_->member()) return false;
  if (route.state == KeyState::settled) return true;
  const topology::Fence& fence = snapshot.topology().fence;
  return route.state == KeyState::dual && pulled_ && pulled_->epoch == fence.epoch &&
         pulled_->step == fence.step;
}

void Upload::topology_changed() {
  if (connection_ == nullptr) return;
  const bool stays = this->stays();
  connection_->set_exempt(stays);
  if (stays || phase_ == Phase::sent) return;
  if (phase_ == Phase::sending) return give_up(std::string(kMoved));
  connection_.reset();  // Nothing was sent.
  locate();
}

// ---- what comes from the client ----

std::size_t Upload::take(std::string_view bytes) {
  if (choked()) return 0;
  const CommandTail::Step step = tail_.take(bytes);
  received_ += step.taken;
  if (step.state == CommandTail::State::broken) {
    session_.upload_whole();
    session_.upload_malformed();
    finish(tail_.error() + "\r\n");
    return bytes.size();
  }
  if (phase_ == Phase::sending) connection_->add_piece(bytes.substr(0, step.taken));
  if (step.state == CommandTail::State::more) return step.taken;
  session_.upload_whole();
  if (phase_ == Phase::skipping) {
    finish(std::move(answer_));
    return step.taken;
  }
  connection_->end_command();
  phase_ = Phase::sent;
  stall_.reset();
  return step.taken;
}

bool Upload::choked() const noexcept {
  switch (phase_) {
    case Phase::skipping:
      return false;
    case Phase::sending:
      return connection_->unsent() > kWindow;
    default:
      return true;
  }
}

void Upload::on_drained() { session_.upload_goes_on(); }

void Upload::look_for_stall() {
  const auto limit =
      std::chrono::seconds(std::max<std::int64_t>(1, session_.shared().settings.slow_client_timeout.get()));
  const bool waits_for_client = phase_ == Phase::sending && connection_->unsent() == 0;
  if (waits_for_client && received_ == received_then_) {
    return give_up(fmt::format(
        "-ERR the rest of the command did not come within {} s: nothing was written\r\n", limit.count()));
  }
  received_then_ = received_;
  stall_->arm(limit);
}

// ---- how it ends ----

void Upload::on_reply(std::uint64_t, std::string_view raw) {
  std::string answer(raw);
  if (raw.starts_with('-')) {
    session_.worker().counters().add(telemetry::Counter::errors_member);
    session_.worker().admin().count_error(raw);
  }
  upstream_->pool().give_back(std::move(connection_));
  finish(std::move(answer));
}

void Upload::on_failure(std::uint64_t, const Failure& failure) {
  session_.count_failure(failure.kind);
  give_up(failure_reply(failure));
}

// Its command's failure was told before, if there was one.
void Upload::on_lost(const Failure& failure) { on_failure(0, failure); }

void Upload::give_up(std::string answer) {
  const bool all_read = phase_ == Phase::sent;
  connection_.reset();
  if (stall_ != nullptr) stall_->cancel();
  if (all_read) return finish(std::move(answer));
  skip(std::move(answer));
  session_.upload_goes_on();
}

void Upload::abandon() {
  abandoned_ = true;
  // While it pulls, the dual router still knows us; what was sent has its answer soon.
  if (phase_ == Phase::pulling || phase_ == Phase::sent) return;
  finish("");
}

void Upload::finish(std::string answer) {
  connection_.reset();
  session_.upload_done(number_, answer);  // Destroys this.
}

}  // namespace ringshift::proxy
