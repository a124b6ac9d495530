#include "proxy/hot_keys.h"

#include <algorithm>
#include <random>

namespace ringshift::proxy {

void HotKeyBoard::put_up(const void* worker, std::vector<HeavyKeeper::Counted> keys) {
  const std::lock_guard lock(mutex_);
  lists_[worker] = std::move(keys);
}

void HotKeyBoard::take_down(const void* worker) {
  const std::lock_guard lock(mutex_);
  lists_.erase(worker);
}

std::vector<HeavyKeeper::Counted> HotKeyBoard::top(std::size_t most) const {
  std::map<std::string, std::uint64_t> sums;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [worker, keys] : lists_) {
      for (const auto& [key, count] : keys) sums[key] += count;
    }
  }
  std::vector<HeavyKeeper::Counted> out(sums.begin(), sums.end());
  std::ranges::stable_sort(out, std::ranges::greater{}, &HeavyKeeper::Counted::second);
  if (out.size() > most) out.resize(most);
  return out;
}

HotKeySampler::HotKeySampler(std::shared_ptr<HotKeyBoard> board)
    : board_(std::move(board)), keeper_(std::random_device{}()) {}

HotKeySampler::~HotKeySampler() { board_->take_down(this); }

void HotKeySampler::every_second(const Seen& seen, base::TimePoint now) {
  if (began_ == base::TimePoint{}) began_ = now - std::chrono::seconds(1);
  const std::uint64_t sampled = seen.of_them_sampled - began_with_.of_them_sampled;
  const double each =
      sampled == 0 ? 0
                   : static_cast<double>(seen.commands - began_with_.commands) / static_cast<double>(sampled);
  std::map<std::string, double> counts;
  for (const auto& [key, count] : keeper_.top()) counts[key] = static_cast<double>(count) * each;
  const double part = std::chrono::duration<double>(now - began_) / kWindow;
  std::map<std::string, double> all = counts;
  for (const auto& [key, count] : before_) all[key] += count * std::max(0.0, 1 - part);
  std::vector<HeavyKeeper::Counted> top;
  for (const auto& [key, count] : all) {
    if (const auto whole = static_cast<std::uint64_t>(count + 0.5); whole != 0) top.emplace_back(key, whole);
  }
  std::ranges::stable_sort(top, std::ranges::greater{}, &HeavyKeeper::Counted::second);
  if (top.size() > HeavyKeeper::kKept) top.resize(HeavyKeeper::kKept);
  board_->put_up(this, std::move(top));
  if (part < 1) return;
  before_ = std::move(counts);
  keeper_.clear();
  began_with_ = seen;
  began_ = now;
}

HotKeyCounter::HotKeyCounter(std::shared_ptr<HotKeyBoard> board,
                             std::shared_ptr<const topology::Snapshot> snapshot)
    : board_(std::move(board)), snapshot_(std::move(snapshot)), keeper_(std::random_device{}()) {}

HotKeyCounter::~HotKeyCounter() { board_->take_down(this); }

void HotKeyCounter::count(std::string_view key) {
  keeper_.add(key, [this](std::string_view one) { return will_move(one); });
  ++counted_;
  if (counted_ % kAgesEvery == 0) keeper_.age();
  const bool early = counted_ < kShownEvery && (counted_ & (counted_ - 1)) == 0;
  if (early || counted_ % kShownEvery == 0) board_->put_up(this, keeper_.top());
}

bool HotKeyCounter::will_move(std::string_view key) const {
  const topology::Resize& resize = *snapshot_->topology().resize;
  if (snapshot_->owner_before(key) == snapshot_->owner_after(key)) return false;
  return resize.rollback || !topology::contains(resize.done, snapshot_->slice(key));
}

}  // namespace ringshift::proxy
