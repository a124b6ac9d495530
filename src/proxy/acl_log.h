// What ACL LOG shows: who was refused what, the newest first; the same refusal within a minute is counted
// instead of repeated. Shared by the workers; thread-safe. Bound: kMaxEntries.
#pragma once
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ringshift::proxy {

class AclLog {
 public:
  static constexpr std::size_t kMaxEntries = 128;
  static constexpr std::chrono::seconds kSame{60};
  static constexpr std::size_t kMaxText = 1024;  // Of what a client sent.

  struct Entry {
    std::uint64_t count = 1;
    std::string_view reason;   // "command", "key", "channel", "auth"
    std::string_view context;  // "toplevel", "multi"
    std::string object, user, client;
    std::chrono::steady_clock::time_point at;
  };

  void add(Entry entry) {
    const std::lock_guard lock(mutex_);
    for (auto known = entries_.begin(); known != entries_.end(); ++known) {
      if (known->reason != entry.reason || known->context != entry.context || known->object != entry.object ||
          known->user != entry.user || entry.at - known->at > kSame) {
        continue;
      }
      entry.count = known->count + 1;
      entries_.erase(known);
      break;
    }
    entries_.push_front(std::move(entry));
    if (entries_.size() > kMaxEntries) entries_.pop_back();
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
  }
  [[nodiscard]] std::vector<Entry> newest(std::size_t count) const {
    const std::lock_guard lock(mutex_);
    std::vector<Entry> out;
    for (const Entry& entry : entries_) {
      if (out.size() == count) break;
      out.push_back(entry);
    }
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // Guarded by mutex_.
};

}  // namespace ringshift::proxy
