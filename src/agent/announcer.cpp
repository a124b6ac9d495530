#include "agent/announcer.h"

#include <utility>

#include "base/log.h"

namespace ringshift::agent {

using base::LogLevel;

Announcer::Announcer(Make make, std::function<Record()> record)
    : make_(std::move(make)), record_(std::move(record)), catalog_(make_()) {
  thread_.start([this] { run(); });
}

Announcer::~Announcer() {
  thread_.stop([this] { catalog_->cancel(); });
  if (!ever_) return;
  // The one that we had was cancelled for good.
  const auto last = make_();
  if (const Status gone = last->remove(record_()); !gone) {
    base::log(LogLevel::warning, "agent: {}: not taken out, and left to end by itself: {}", last->describe(),
              gone.error().message);
  }
}

void Announcer::run() {
  if (!thread_.back_off()) return;
  while (!thread_.stopping()) {
    const Status done = beat();
    if (thread_.stopping()) return;
    if (done) {
      if (!registered_.exchange(true))
        base::log(LogLevel::info, "agent: registered in {}", catalog_->describe());
      told_.clear();
      thread_.done();
      thread_.wait(catalog_->every());
      continue;
    }
    if (std::exchange(told_, done.error().message) != done.error().message) {
      base::log(LogLevel::warning, "agent: {}: {}; trying again, for ever", catalog_->describe(),
                done.error().message);
    }
    thread_.back_off();
  }
}

Status Announcer::beat() {
  if (registered_) {
    const Result<bool> known = catalog_->beat(record_());
    if (!known) return std::unexpected(known.error());
    if (*known) return {};
    base::log(LogLevel::warning, "agent: {} has forgotten us: registering again", catalog_->describe());
    registered_ = false;
  }
  ever_ = true;  // Also when the answer is lost.
  if (const Status put = catalog_->put(record_()); !put) return put;
  const Result<bool> known = catalog_->beat(record_());
  if (!known) return std::unexpected(known.error());
  if (*known) return {};
  return fail(ErrorKind::retryable, "took the registration and does not know it");
}

}  // namespace ringshift::agent
