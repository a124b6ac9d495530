#include "admin/figures.h"

#include <algorithm>

namespace ringshift::admin {
namespace {

double rate_of(std::uint64_t before, std::uint64_t now, double seconds) {
  return now > before ? static_cast<double>(now - before) / seconds : 0;  // One that fell began anew.
}

double seconds_of(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

void RouterHistory::add(Record record, SteadyTime at) {
  reports_.push_back({at, std::move(record)});
  while (reports_.size() > kReportsKept) reports_.pop_front();
}

bool RouterHistory::fresh(SteadyTime now) const {
  return !reports_.empty() && now - reports_.back().at <= kStale;
}

const RouterHistory::Report* RouterHistory::base_of(std::chrono::milliseconds window) const {
  if (reports_.size() < 2) return nullptr;
  const Report* base = nullptr;
  for (auto it = std::next(reports_.rbegin()); it != reports_.rend(); ++it) {
    if (reports_.back().at - it->at < kShortest) continue;
    base = &*it;
    if (reports_.back().at - it->at >= window) break;
  }
  return base;
}

std::optional<RouterRates> RouterHistory::rates(SteadyTime now, std::chrono::milliseconds window) const {
  const Report* base = base_of(window);
  if (base == nullptr || !fresh(now)) return std::nullopt;
  const coord::RouterRecord &a = *base->record, &b = *reports_.back().record;
  const double seconds = seconds_of(base->at, reports_.back().at);
  return RouterRates{
      rate_of(a.requests, b.requests, seconds),      rate_of(a.hits, b.hits, seconds),
      rate_of(a.misses, b.misses, seconds),          rate_of(a.errors, b.errors, seconds),
      rate_of(a.bytes_in, b.bytes_in, seconds),      rate_of(a.bytes_out, b.bytes_out, seconds),
      rate_of(a.keys_pulled, b.keys_pulled, seconds)};
}

void RouterHistory::add_members(SteadyTime now, std::map<std::string, MemberRates>& members) const {
  const Report* base = base_of(kSmooth);
  if (base == nullptr || !fresh(now)) return;
  const double seconds = seconds_of(base->at, reports_.back().at);
  for (const auto& [id, b] : reports_.back().record->members) {
    MemberRates& out = members[id];
    out.in_flight += b.in_flight;
    out.p99_ms = std::max(out.p99_ms, b.p99_ms);
    const auto before = base->record->members.find(id);
    if (before == base->record->members.end()) continue;  // It was not among the busiest then.
    const auto& a = before->second;
    out.requests += rate_of(a.requests, b.requests, seconds);
    out.hits += rate_of(a.hits, b.hits, seconds);
    out.misses += rate_of(a.misses, b.misses, seconds);
    out.errors += rate_of(a.errors, b.errors, seconds);
    out.timeouts += rate_of(a.timeouts, b.timeouts, seconds);
  }
}

}  // namespace ringshift::admin
