// The judge of a whole history: each key by the rules of its kind.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "tests/history/linearizable.h"
#include "tests/history/operation.h"

namespace ringshift::history {

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
  std::vector<std::string> excerpt;  // The key's history around the offending operation, a line each.
};

[[nodiscard]] const char* to_string(Violation::Kind kind) noexcept;

struct CheckOptions {
  std::chrono::milliseconds ttl_slack{250};
  Limits limits;
};

struct Judgement {
  std::uint64_t operations = 0, unknown = 0, not_executed = 0, errors = 0, keys = 0;
  std::uint64_t lost_writes = 0, stale_reads = 0, resurrected = 0, inconclusive = 0, invented = 0;
  std::vector<Violation> violations;  // At most one a key: what follows a first fault proves nothing.
  [[nodiscard]] bool clean() const noexcept { return violations.empty(); }
};

[[nodiscard]] Judgement check(const History& history, const CheckOptions& options = {});

}  // namespace ringshift::history
