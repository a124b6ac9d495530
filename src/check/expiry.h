// The rules for a key with a time to live, written by one client only and read by all:
//   - a value is not seen later than its deadline plus `slack` (a moved key's clock may stand still for the
//     time of its transfer), nor a PTTL that reaches past that;
//   - it is not gone before its deadline;
//   - once seen absent it does not come back without a new write, nor does the value before it.
// A deadline is an interval: the server set it at some instant between the write's invocation and return.
// What happened after a write of unknown outcome is not judged: the writer then turns to another key.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "check/operation.h"

namespace ringshift::check {

struct ExpiryFault {
  enum class Kind { early, outlived, resurrected, stale, no_deadline };
  Kind kind = Kind::early;
  std::size_t operation = 0;  // Index into the list.
  std::string why;
};

// REQUIRES: operations of one key, sorted by `invoked`; all its writes by one client.
[[nodiscard]] std::optional<ExpiryFault> check_expiry(const std::vector<const Operation*>& operations,
                                                      std::chrono::milliseconds slack);

}  // namespace ringshift::check
