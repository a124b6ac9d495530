#include "proxy/pubsub_counts.h"

#include <algorithm>
#include <mutex>

#include "access/glob.h"

namespace ringshift::proxy {

void PubsubCounts::add(const std::string& cluster, ChannelKind kind, const std::string& name, int workers,
                       int clients) {
  const std::unique_lock lock(mutex_);
  auto& names = clusters_[cluster][static_cast<std::size_t>(kind)];
  Count& count = names[name];
  count.workers += workers;
  count.clients += clients;
  if (count.workers == 0 && count.clients == 0) names.erase(name);
}

std::int64_t PubsubCounts::of_clients(std::string_view cluster, ChannelKind kind, std::string_view name,
                                      bool with_patterns, std::int64_t at_member) const {
  const std::shared_lock lock(mutex_);
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return at_member;
  std::int64_t clients = 0, workers = 0;
  const auto take = [&](const Count& count) {
    clients += count.clients;
    workers += count.workers;
  };
  const auto& names = found->second[static_cast<std::size_t>(kind)];
  if (const auto known = names.find(name); known != names.end()) take(known->second);
  if (with_patterns) {
    for (const auto& [pattern, count] : found->second[static_cast<std::size_t>(ChannelKind::pattern)]) {
      if (access::matches_glob(pattern, name)) take(count);
    }
  }
  // A worker that leaves may be gone at the member before we hear of it: our own clients are there in any
  // case.
  return clients + std::max<std::int64_t>(0, at_member - workers);
}

}  // namespace ringshift::proxy
