// A recorded sequence of requests, read from a file of lines:
//
//   user:17            a read of that key
//   GET user:17        the same
//   SET user:17 512    an update of that object, whose body has 512 bytes from the beginning on
//
// Empty lines and those that begin with # are left out; GET and SET in either case. A key alone on a line
// holds no white space. Memory is bounded: kMaxTraceRequests requests (4 bytes each) of kMaxTraceKeys keys;
// what follows in a longer file is left out, and `cut` says so. A line longer than kMaxTraceLine, a size
// above kMaxTraceBody and a key above kMaxTraceKey are errors that name the line.
#pragma once
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::drill {

inline constexpr std::size_t kMaxTraceRequests = 20'000'000, kMaxTraceKeys = 2'000'000;
inline constexpr std::size_t kMaxTraceKey = 1024, kMaxTraceLine = 4096;
inline constexpr std::size_t kMaxTraceKeyBytes = 256U << 20;  // Of all keys.
inline constexpr std::uint64_t kMaxTraceBody = 1U << 20;

struct TraceLine {
  std::string_view key;
  std::optional<std::uint64_t> bytes;  // Of a SET; none: a GET.
};
// nullopt for a line that asks for nothing. REQUIRES: `line` has no line end but a trailing \r.
[[nodiscard]] Result<std::optional<TraceLine>> parse_trace_line(std::string_view line);

struct Trace {
  std::vector<std::string> keys;        // In the order of their first appearance.
  std::vector<std::uint32_t> bytes;     // Of each key's body: of its first SET; 0 when it has none.
  std::vector<std::uint32_t> requests;  // Key times two, plus one for an update.
  bool cut = false;

  [[nodiscard]] std::size_t size() const noexcept { return requests.size(); }
  [[nodiscard]] std::uint64_t key(std::size_t i) const { return requests[i] >> 1; }
  [[nodiscard]] bool update(std::size_t i) const { return (requests[i] & 1) != 0; }
};
// `place` names the source in errors. Fails when it has no request.
[[nodiscard]] Result<Trace> read_trace(std::istream& in, std::string_view place);

}  // namespace ringshift::drill
