#include "check/key_remover.h"

#include <algorithm>

#include "backend/sync_client.h"
#include "protocol/resp/value.h"

namespace ringshift::check {
namespace {

constexpr std::chrono::milliseconds kRest{200};      // After a failure.
constexpr std::chrono::milliseconds kRequest{5000};  // A batch, at a proxy that may hold it back for a while.
constexpr std::chrono::milliseconds kLateWrites{500};

}  // namespace

KeyRemover::KeyRemover(std::vector<std::string> proxies, std::shared_ptr<const backend::MemberAccess> access)
    : proxies_(std::move(proxies)),
      access_(std::move(access)),
      thread_([this](std::stop_token stop) { run(stop); }) {}

KeyRemover::~KeyRemover() {
  thread_.request_stop();
  changed_.notify_all();
}

void KeyRemover::add(std::string key, bool again) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() + again_.size() + 2 > kMaxNames) {
    ++dropped_;
    return;
  }
  if (again) again_.push_back(key);
  waiting_.push_back(std::move(key));
  changed_.notify_all();
}

std::size_t KeyRemover::finish(std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    deadline_ = Clock::now() + patience;
    changed_.notify_all();
  }
  thread_.join();
  return waiting_.size() + again_.size() + dropped_;
}

void KeyRemover::run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  bool second_round = false;
  while (!stop.stop_requested() && Clock::now() < deadline_) {
    if (waiting_.empty()) {
      if (!closed_) {
        changed_.wait_for(lock, kRest);
        continue;
      }
      if (second_round || again_.empty()) return;
      second_round = true;
      waiting_.swap(again_);
      changed_.wait_for(lock, kLateWrites, [&] { return stop.stop_requested(); });
      continue;
    }
    std::vector<std::string> names;
    while (!waiting_.empty() && names.size() < kBatch) {
      names.push_back(std::move(waiting_.back()));
      waiting_.pop_back();
    }
    lock.unlock();
    const bool done = remove_some(names);
    lock.lock();
    if (done) continue;
    std::ranges::move(names, std::back_inserter(waiting_));
    changed_.wait_for(lock, kRest, [&] { return stop.stop_requested(); });
  }
}

bool KeyRemover::remove_some(std::vector<std::string>& names) {
  backend::SyncOptions how;
  how.request_timeout = kRequest;
  how.access = access_;
  const std::string& proxy = proxies_[next_proxy_ % proxies_.size()];
  const auto client = backend::SyncClient::connect(proxy, how);
  std::string commands;
  for (const std::string& name : names) protocol::resp::append_command(commands, {"UNLINK", name});
  if (!client) {
    ++next_proxy_;
    return false;
  }
  auto replies = (*client)->pipeline(commands, names.size());
  if (!replies) {
    ++next_proxy_;
    return false;
  }
  std::vector<std::string> left;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((*replies)[i].is_error()) left.push_back(std::move(names[i]));
  }
  names = std::move(left);
  return names.empty();
}

}  // namespace ringshift::check
