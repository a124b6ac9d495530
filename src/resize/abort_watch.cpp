#include "resize/abort_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "coord/router_record.h"

namespace ringshift::resize {

void AbortWatch::count(base::TimePoint now, const std::map<std::string, coord::KeyValue>& routers) {
  Look look{now};
  std::erase_if(routers_, [&](const auto& entry) { return !routers.contains(entry.first); });
  double worst = -1;
  for (const auto& [key, kv] : routers) {
    const auto record = coord::parse_router_record(kv.value);
    if (!record) continue;
    const auto [at, is_new] = routers_.try_emplace(key);
    Router& router = at->second;
    if (router.revision != kv.mod_revision) {
      // A counter that fell belongs to a router that began anew; what it had counted before we saw it, is not
      // of this window.
      if (!is_new && record->hits >= router.hits && record->misses >= router.misses) {
        look.hits += record->hits - router.hits;
        look.misses += record->misses - router.misses;
      }
      router = {record->hits, record->misses, kv.mod_revision, now, record->p99_ms};
    }
    if (now - router.reported_at <= kReportAge) worst = std::max(worst, router.p99_ms);
  }
  figures_.p99_ms = worst >= 0 ? std::optional(worst) : std::nullopt;
  looks_.push_back(look);
  while (looks_.size() > kMaxLooks || now - looks_.front().at > kFigureWindow) looks_.pop_front();
}

void AbortWatch::count_origin(base::TimePoint now, const std::optional<coord::KeyValue>& origin) {
  if (origin && origin->mod_revision != origin_revision_) {
    origin_revision_ = origin->mod_revision;
    origin_at_ = now;
    double qps = 0;
    const std::string& text = origin->value;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), qps);
    origin_qps_ = code == std::errc() && std::isfinite(qps) ? std::optional(qps) : std::nullopt;
  }
  if (origin) {
    figures_.origin_qps = now - origin_at_ <= kFigureWindow ? origin_qps_ : std::nullopt;
    return;
  }
  std::uint64_t misses = 0;
  for (std::size_t i = 1; i < looks_.size(); ++i) misses += looks_[i].misses;
  const double seconds =
      looks_.empty() ? 0 : std::chrono::duration<double>(looks_.back().at - looks_.front().at).count();
  figures_.origin_qps =
      seconds > 0 && !routers_.empty() ? std::optional(static_cast<double>(misses) / seconds) : std::nullopt;
}

std::optional<double> AbortWatch::value(Condition::Figure figure) const {
  switch (figure) {
    case Condition::Figure::hit_rate:
      return figures_.hit_rate;
    case Condition::Figure::p99_ms:
      return figures_.p99_ms;
    case Condition::Figure::origin_qps:
      return figures_.origin_qps;
  }
  return std::nullopt;
}

bool AbortWatch::look(base::TimePoint now, const std::map<std::string, coord::KeyValue>& routers,
                      const std::optional<coord::KeyValue>& origin,
                      const std::vector<Condition>& conditions) {
  if (!due(now)) return false;
  // After a gap (a long barrier, another resize) the looks are no longer one after the other.
  if (begun_ && now - looked_at_ > kFigureWindow) held_.clear();
  begun_ = true;
  looked_at_ = now;
  count(now, routers);
  std::uint64_t hits = 0, misses = 0;
  for (const Look& one : looks_) hits += one.hits, misses += one.misses;
  figures_.hit_rate = hits + misses >= kLookupsForAHitRate
                          ? std::optional(static_cast<double>(hits) / static_cast<double>(hits + misses))
                          : std::nullopt;
  count_origin(now, origin);
  held_.resize(conditions.size(), 0);
  broken_.clear();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const std::optional<double> known = value(conditions[i].figure);
    held_[i] = known && conditions[i].holds(*known) ? held_[i] + 1 : 0;
    if (held_[i] < kSecondsThatTell || !broken_.empty()) continue;
    broken_ = fmt::format("{} {:.4g} {} {:g} for {} s", name(conditions[i].figure), *known,
                          conditions[i].below ? '<' : '>', conditions[i].limit, held_[i]);
  }
  return true;
}

}  // namespace ringshift::resize
