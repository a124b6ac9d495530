#include "proxy/script_cache.h"

#include <algorithm>
#include <cctype>

#include "hashing/sha1.h"
#include "hashing/xxh3.h"

namespace ringshift::proxy {

void ScriptCache::remember(std::string_view script, bool loaded) {
  if (script.size() > kMaxBytes / 4) return;  // It would drive out too many others.
  const std::uint64_t hash = hashing::xxh3(script);
  const std::lock_guard lock(mutex_);
  if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
    if (found->second->script != script) return;  // Another with the same hash: there can be one.
    found->second->loaded = found->second->loaded || loaded;
    entries_.splice(entries_.begin(), entries_, found->second);
    return;
  }
  entries_.push_front({std::string(script), "", hash, loaded});
  by_hash_.emplace(hash, entries_.begin());
  bytes_ += script.size();
  ++without_sha_;
  evict();
}

void ScriptCache::evict() {
  while (entries_.size() > kMaxScripts || bytes_ > kMaxBytes) {
    const Entry& last = entries_.back();
    bytes_ -= last.script.size();
    by_hash_.erase(last.hash);
    if (last.sha.empty()) {
      --without_sha_;
    } else {
      by_sha_.erase(last.sha);
    }
    entries_.pop_back();
  }
}

std::optional<ScriptCache::Found> ScriptCache::find(std::string_view sha) {
  std::string lower(sha);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::lock_guard lock(mutex_);
  if (without_sha_ != 0) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!entry->sha.empty()) continue;
      entry->sha = hashing::sha1_hex(entry->script);
      by_sha_.emplace(entry->sha, entry);
    }
    without_sha_ = 0;
  }
  const auto found = by_sha_.find(lower);
  if (found == by_sha_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return Found{found->second->script, found->second->loaded};
}

void ScriptCache::clear() {
  const std::lock_guard lock(mutex_);
  by_hash_.clear();
  by_sha_.clear();
  entries_.clear();
  bytes_ = without_sha_ = 0;
}

std::size_t ScriptCache::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace ringshift::proxy
