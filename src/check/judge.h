// The judge: each key by the rules of its kind. See linearizable.h and expiry.h for what "right" means.
//
// Invariant: what is called a violation is one: no order of the operations explains what was seen. What the
// bound of the search cut off is `inconclusive`, and a run with one of those is not clean.
// Thread rule: no state. Cost: one key at a time; a violation costs some hundred searches more, to find the
// few operations that show it.
#pragma once
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "check/linearizable.h"
#include "check/operation.h"

namespace ringshift::check {

struct Violation {
  enum class Kind {
    lost_write,    // An acknowledged write left no trace, or an increment was swallowed.
    stale_read,    // A value was seen that a finished write had replaced, or that outlived its deadline.
    resurrected,   // A value came back after it was deleted, or seen absent.
    invented,      // A value that nobody wrote.
    inconclusive,  // The search reached its bound: nothing is proven, so the run is not clean.
  };
  Kind kind = Kind::stale_read;
  std::string key;
  std::string why;
  std::vector<Operation> operations;  // Few that nothing explains, by time of invocation.
  std::size_t culprit = 0;            // Of them: the one whose answer nothing explains.
  std::vector<Operation> around;      // Everything on the key around the culprit, kBefore and kAfter.
  std::size_t around_culprit = 0;
  std::size_t of = 0;  // Operations of the key in all.
};
inline constexpr std::size_t kBefore = 16, kAfter = 8;
inline constexpr std::size_t kMaxViolations = 1000;  // Kept in full; all are counted.
inline constexpr std::size_t kMaxShrunk = 20;        // For so many the few operations are looked for.

[[nodiscard]] const char* to_string(Violation::Kind kind) noexcept;

struct CheckOptions {
  std::chrono::milliseconds ttl_slack{250};
  Limits limits;
};

struct Judgement {
  std::uint64_t operations = 0, unknown = 0, not_executed = 0, keys = 0;
  std::uint64_t lost_writes = 0, stale_reads = 0, resurrected = 0, inconclusive = 0, invented = 0;
  std::array<std::uint64_t, kKinds> by_kind{};  // Operations.
  std::vector<Violation> violations;  // At most one a key: what follows a first fault proves nothing.
  [[nodiscard]] std::uint64_t broken() const noexcept {
    return lost_writes + stale_reads + resurrected + invented;
  }
  [[nodiscard]] bool clean() const noexcept { return broken() + inconclusive == 0; }
};

// Adds one key's verdict. REQUIRES: all operations on that key and no others, not empty; any order.
void judge_key(std::vector<const Operation*> operations, const CheckOptions& options, Judgement& result);
[[nodiscard]] Judgement judge(const History& history, const CheckOptions& options = {});

}  // namespace ringshift::check
