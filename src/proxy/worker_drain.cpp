// How a worker lets go of its clients: see Proxy::drain().
//
// Three stages. First only clients that have been quiet for a while are closed, so that nobody is in the
// middle of writing a pipeline. Then any client at the end of an answer, with the answer, since some are
// never quiet. At last the waiting and the subscribed. A worker without clients goes on, for the sake of the
// resize barriers, until stop_soon().
#include <algorithm>
#include <utility>

#include "proxy/session.h"
#include "proxy/worker.h"

namespace ringshift::proxy {
namespace {

constexpr std::chrono::milliseconds kDrainTick{10};
constexpr std::chrono::milliseconds kOnlyQuiet{1000};  // The first stage, and half of the time at most.
constexpr std::chrono::milliseconds kLastWords{500};   // The last stage, and a quarter of the time at most.

}  // namespace

struct Worker::Draining {
  base::TimePoint since, until;
  std::unique_ptr<net::Timer> tick;
};

Worker::Worker(std::size_t number, Shared& shared) : number_(number), shared_(shared) {}
Worker::~Worker() = default;

void Worker::own_socket_files() {
  for (const auto& listener : listeners_) listener->own_file(shared_.options.unix_permissions);
}

void Worker::drain(base::TimePoint until, const std::vector<std::string>& passed_on) {
  if (stopping_) return;
  if (draining_ != nullptr) {
    draining_->until = std::min(draining_->until, until);
    return;
  }
  draining_ = std::make_unique<Draining>(Draining{loop_.now(), until, loop_.timer([this] { drain_step(); })});
  for (const auto& listener : listeners_) {
    if (std::ranges::find(passed_on, listener->address()) != passed_on.end()) {
      listener->leave_to_successor();
    } else {
      listener->accept_the_rest();
    }
  }
  listeners_.clear();
  shared_.draining.fetch_add(1);
  drain_step();
}

void Worker::drain_step() {
  const base::TimePoint now = loop_.now();
  const base::Duration all = draining_->until - draining_->since;
  using Stage = Session::DrainStage;
  Stage stage = Stage::quiet;
  if (now >= draining_->since + std::min<base::Duration>(kOnlyQuiet, all / 2)) stage = Stage::any_answer;
  if (now >= draining_->until - std::min<base::Duration>(kLastWords, all / 4)) stage = Stage::last_words;
  for (const auto& session : sessions_) session->drain(stage, now);
  draining_->tick->arm(kDrainTick);
}

}  // namespace ringshift::proxy
