// What an agent says of its instance: the value of `instances/<id>`. Where it is, whether it can serve, and
// what the operator called it by --label: as much as everybody needs who may read the registry, and written
// only when it changes. Never a weight or a zone, which are the cluster's to give. The server's figures are
// at the agent's admin port. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ringshift::agent {

inline constexpr std::size_t kMaxLabels = 32;
inline constexpr std::size_t kMaxReasonBytes = 200;  // Of the reason, in the record.

enum class State { ready, unhealthy, draining };
[[nodiscard]] std::string_view name(State state) noexcept;

// What one look at the server found.
struct Health {
  bool good = false;
  std::string reason;  // Why not; "" when good.
  std::string version, role;
  bool loading = false;
  std::uint64_t used_memory = 0, max_memory = 0, clients = 0, ops_per_second = 0;
  bool counted = false;                  // The server told the next two; else nobody knows them.
  bool absent = false;                   // Nothing listens at its address: nobody can be using it.
  std::uint64_t commands = 0;            // Stands still when nobody but us asks.
  std::uint64_t router_connections = 0;  // Named rs:..., where the server lists them.
};

struct Record {
  std::string id, address, protocol = "redis";
  State state = State::unhealthy;
  std::int64_t started_at = 0;  // Unix seconds: of the agent.
  std::map<std::string, std::string> labels;
  std::string reason;  // Why it is unhealthy.
};
[[nodiscard]] std::string to_json(const Record& record);

// A state that does not flap: it turns only after so many looks in a row that say so. The first look counts
// at once.
class Judge {
 public:
  Judge(unsigned rise, unsigned fall) : rise_(rise), fall_(fall) {}
  bool add(bool good) noexcept;  // Whether the server is healthy now.
  [[nodiscard]] bool healthy() const noexcept { return healthy_; }

 private:
  const unsigned rise_, fall_;
  bool any_ = false, healthy_ = false;
  unsigned against_ = 0;  // Looks in a row that contradict.
};

// Whether nobody uses the server any more: no command but ours between two looks, twice in a row, or no
// router's connection is left where the server says. A server that does not answer (it hangs, a script runs,
// it wants another password) may be in use; one that is not there is not.
class Quiet {
 public:
  static constexpr unsigned kLooks = 2;
  bool add(const Health& now) noexcept;

 private:
  bool any_ = false;
  std::uint64_t commands_ = 0;
  unsigned quiet_ = 0;
};

}  // namespace ringshift::agent
