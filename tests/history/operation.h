// What one client did and saw: the entries of a history.
//
// Times are monotonic nanoseconds of one machine. An operation took effect at one instant between `invoked`
// and `returned`; an `unknown` one at any instant after `invoked`, or never; a `not_executed` one never.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringshift::history {

// How the operations on a key are judged. A key has one kind for its whole life.
enum class Kind : std::uint8_t { register_, counter, hash, expiry };

enum class Verb : std::uint8_t {
  set,
  set_nx,
  get,
  getset,
  del,
  exists,  // register
  incr,    // counter, with get
  hset,
  hget,
  hdel,
  hgetall,  // hash, with del
  set_px,
  pexpire,
  pttl,  // expiry, with get
};

enum class Outcome : std::uint8_t { answered, unknown, not_executed };

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Operation {
  Kind kind = Kind::register_;
  Verb verb = Verb::get;
  Outcome outcome = Outcome::answered;
  std::uint32_t client = 0;
  std::uint64_t sequence = 0;  // Order in which the client sent its operations, pipelines included.
  std::string key;
  std::string field;        // hset, hget, hdel
  std::string value;        // What set, set_nx, getset, hset, set_px wrote.
  std::int64_t ttl_ms = 0;  // set_px, pexpire
  std::int64_t invoked = 0, returned = 0;
  // The answer, by verb. Absent text is nil.
  std::optional<std::string> text;
  std::int64_t number = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // hgetall
};

[[nodiscard]] bool is_write(Verb verb) noexcept;
// "SET k v -> OK", as people read it; times are added by the report.
[[nodiscard]] std::string describe(const Operation& operation);

struct History {
  std::vector<Operation> operations;
  std::uint64_t errors = 0;                 // Answers that were errors of no known meaning.
  std::vector<std::string> error_examples;  // A few distinct ones.
  std::uint64_t reconnects = 0;
};

}  // namespace ringshift::history
