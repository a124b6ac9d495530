// How a connection comes to serve: dial, greet, look, and again after a rest.
#include <algorithm>
#include <utility>

#include "backend/access.h"
#include "backend/connection.h"
#include "base/jitter.h"
#include "base/log.h"

namespace ringshift::backend {
namespace {

base::Duration backoff(int failed_attempts, std::mt19937_64& random) {
  return base::backoff<base::Duration>(Connection::kFirstBackoff, Connection::kMaxBackoff,
                                       static_cast<unsigned>(failed_attempts), random);
}

}  // namespace

void Connection::connect() {
  state_ = State::connecting;
  second_round_ = false;
  stream_ = net::Stream::connect(shared_.loop, address_, shared_.options.connect_timeout, *this,
                                 shared_.options.access ? shared_.options.access->tls() : nullptr);
}

void Connection::rest() {
  state_ = State::resting;
  timer_->cancel();
  if (!retired_) timer_->arm(backoff(failed_attempts_, shared_.random));
}

void Connection::timer_fired() {
  switch (state_) {
    case State::resting:
      return connect();
    case State::confirming:
      return confirm();
    case State::greeting:
      return broke("connected, but no answer within " +
                   std::to_string(shared_.options.connect_timeout.count()) + " ms");
    case State::connecting:
    case State::serving:
    case State::lost:
      return;
  }
}

void Connection::on_connected() {
  state_ = State::greeting;
  timer_->arm(shared_.options.connect_timeout);
  handshake_.emplace(resp_, shared_.options.name, shared_.look != nullptr,
                     shared_.options.access ? shared_.options.access->credentials() : Credentials{},
                     shared_.options.database);
  stream_->append(handshake_->first_round());
  stream_->flush();
}

// False when the connection broke.
bool Connection::on_handshake_reply(std::string_view raw) {
  if (state_ != State::greeting || !handshake_->waiting()) {
    broke("a reply to nothing: " + std::string(raw.substr(0, 80)));
    return false;
  }
  if (const Status status = handshake_->on_reply(raw); !status) {
    broke(status.error().message);
    return false;
  }
  forget_killed();
  if (handshake_->waiting()) return true;
  if (!second_round_) {
    second_round_ = true;
    const std::string commands = handshake_->second_round(orphans_to_kill());
    stream_->append(commands);
    stream_->flush();
    if (handshake_->waiting()) return true;
  }
  handshake_done();
  return true;
}

// What is left of the orphans once those of earlier processes of the member are dropped.
std::vector<std::uint64_t> Connection::orphans_to_kill() {
  const auto died_with_its_process = [this](const Orphan& orphan) {
    return orphan.run_id != handshake_->run_id();
  };
  if (std::erase_if(member_->orphans, died_with_its_process) != 0) progressed();
  std::vector<std::uint64_t> ids;
  for (const Orphan& orphan : member_->orphans) {
    if (orphan.client_id != 0) ids.push_back(orphan.client_id);
  }
  return ids;
}

void Connection::forget_killed() {
  const std::vector<std::uint64_t> killed = handshake_->take_killed();
  if (killed.empty()) return;
  std::erase_if(member_->orphans, [&](const Orphan& orphan) {
    return orphan.run_id == handshake_->run_id() &&
           std::ranges::find(killed, orphan.client_id) != killed.end();
  });
  progressed();
}

void Connection::handshake_done() {
  timer_->cancel();
  if (shared_.look == nullptr ||
      shared_.look->stamp_matches(member_->id, handshake_->stamp(), handshake_->run_id())) {
    return serve();
  }
  state_ = State::confirming;
  down_ = false;  // The member is well: commands may wait for the registry, up to their deadlines.
  confirm();
}

void Connection::confirm() {
  confirm_token_ = std::make_shared<int>();
  const std::weak_ptr<int> token = confirm_token_;
  shared_.look->confirm([this, token](bool ok) {
    if (token.expired()) return;  // That connection is gone, or we are.
    confirm_token_.reset();
    if (ok) return serve();
    ++failed_attempts_;
    timer_->arm(backoff(failed_attempts_, shared_.random));
  });
}

void Connection::serve() {
  if (down_) {
    base::log_fields(base::LogLevel::info,
                     {{"member", member_->id}, {"address", address_}, {"state", "connected"}},
                     "member {} at {}: serves again", member_->id, address_);
  }
  state_ = State::serving;
  counters_.connected(std::exchange(ever_served_, true));
  if (is_the_first()) counters_.serves(true);
  failed_attempts_ = 0;
  down_ = false;
  output_base_ = stream_->written_bytes() + stream_->queued_bytes() - queue_begin_;
  stream_->append(queue_);
  std::string().swap(queue_);
  stream_->flush();
  tell_counters();
  // Those that were left since this handshake asked for the list.
  if (!member_->orphans.empty()) shared_.orphans_wait = true;
  if (is_private()) tell_ready_ = true;
  if (is_private() || shared_.orphans_wait) shared_.keep_house_soon();
}

}  // namespace ringshift::backend
