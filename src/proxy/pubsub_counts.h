// How many clients of this proxy are subscribed to what, over all its workers. A member counts a worker as
// one subscriber, whatever the number of its clients; with these figures its count becomes one of clients.
//
// Any thread. Cost: one hash under a lock; of a published message one more match for each pattern that
// anybody here has subscribed to (as at a member). Exact for what was confirmed before the question was
// asked.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ringshift::proxy {

enum class ChannelKind : std::uint8_t { channel, pattern, shard };
inline constexpr std::size_t kChannelKinds = 3;

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
};
template <class T>
using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

class PubsubCounts {
 public:
  // Of one name at one cluster. Workers subscribed to it there, and clients for which they are.
  void add(const std::string& cluster, ChannelKind kind, const std::string& name, int workers, int clients);
  // What `at_member` becomes, which a member of the cluster said of the channel itself (PUBSUB NUMSUB) or,
  // with patterns, of a message published to it.
  [[nodiscard]] std::int64_t of_clients(std::string_view cluster, ChannelKind kind, std::string_view name,
                                        bool with_patterns, std::int64_t at_member) const;

 private:
  struct Count {
    std::int64_t workers = 0, clients = 0;
  };
  using Cluster = std::array<ByName<Count>, kChannelKinds>;
  mutable std::shared_mutex mutex_;
  std::map<std::string, Cluster, std::less<>> clusters_;  // Guarded by mutex_.
};

}  // namespace ringshift::proxy
