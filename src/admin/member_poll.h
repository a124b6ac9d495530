// What members say of themselves: INFO of each, every few seconds, from threads of its own.
//
// Thread rule: everything may be called from any thread; nobody ever waits for a member. A member that does
// not answer is asked less often. The connections carry the name that a fence lets live (resize/observer.h).
// Bounds: kThreads connections at work, one connection a member, and none kept above kConnectionsKept members
// a thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/access.h"
#include "ringshift/topology.h"

namespace ringshift::admin {

struct MemberInfo {
  std::int64_t at_ms = 0;
  std::string error;  // "" when it answered: then what follows holds.
  std::string server_version, role;
  std::optional<std::uint64_t> keys, memory_used, memory_max, clients, uptime_seconds, evicted;
  std::optional<double> ops_per_second, evicted_per_second;
};
// Without what needs a second look.
[[nodiscard]] MemberInfo parse_member_info(std::string_view info, bool has_stamp);

class MemberPoll {
 public:
  using Infos = std::map<std::string, std::shared_ptr<const MemberInfo>>;  // By member id.
  static constexpr std::size_t kThreads = 4, kConnectionsKept = 256;
  static constexpr std::chrono::milliseconds kEvery{5000}, kAfterFailure{10'000};

  explicit MemberPoll(std::shared_ptr<const backend::MemberAccess> access);
  ~MemberPoll();  // Waits for the answers under way: up to a request's timeout.
  MemberPoll(const MemberPoll&) = delete;
  MemberPoll& operator=(const MemberPoll&) = delete;

  void set_members(std::vector<topology::Member> members);
  [[nodiscard]] Infos infos() const;

 private:
  void run(std::size_t part);
  [[nodiscard]] std::vector<topology::Member> part_of(std::size_t part) const;

  const std::shared_ptr<const backend::MemberAccess> access_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_:
  std::vector<topology::Member> members_;
  std::uint64_t changes_ = 0;  // Of members_.
  Infos infos_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // Last: they use all above.
};

}  // namespace ringshift::admin
