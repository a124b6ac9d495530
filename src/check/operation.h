// What one client did and saw: the entries of a history.
//
// Times are monotonic nanoseconds of one machine. An operation took effect at one instant between `invoked`
// and `returned`; an `unknown` one at any instant after `invoked`, or never; a `not_executed` one never.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringshift::check {

// How the operations on a key are judged. A key has one kind for its whole life.
enum class Kind : std::uint8_t { register_, counter, hash, expiry, list, set, zset, stream };
inline constexpr std::size_t kKinds = 8;

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
  rpush,
  llen,  // list: a counter that only grows
  sadd,
  srem,
  sismember,
  smembers,  // set, with del
  zadd,
  zrem,
  zscore,  // zset, with del
  xadd,
  xlen,  // stream: a counter whose increments do not tell their number
};
inline constexpr std::size_t kVerbs = 25;

enum class Outcome : std::uint8_t { answered, unknown, not_executed };

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Operation {
  Kind kind = Kind::register_;
  Verb verb = Verb::get;
  Outcome outcome = Outcome::answered;
  std::uint32_t client = 0;
  std::uint32_t proxy = 0;     // Index into the list of proxies.
  std::uint64_t sequence = 0;  // Order in which the client sent its operations, pipelines included.
  std::string key;
  std::string field;        // hset, hget, hdel; the member of sadd, srem, sismember, zadd, zrem, zscore
  std::string value;        // What set, set_nx, getset, hset, set_px, zadd (the score) wrote; see value.h.
  std::int64_t ttl_ms = 0;  // set_px, pexpire
  std::int64_t invoked = 0, returned = 0;
  // The answer, by verb. Absent text is nil.
  std::optional<std::string> text;
  std::int64_t number = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // hgetall; smembers with empty values
};

[[nodiscard]] bool is_write(Verb verb) noexcept;
// "SET v -> OK", as people read it; times and key are added by the report.
[[nodiscard]] std::string describe(const Operation& operation);

[[nodiscard]] std::string_view to_string(Kind kind) noexcept;  // "register", "counter", ...
[[nodiscard]] std::optional<Kind> parse_kind(std::string_view text) noexcept;
[[nodiscard]] std::string_view to_string(Verb verb) noexcept;  // "SET NX", "GET", ...
[[nodiscard]] std::optional<Verb> parse_verb(std::string_view text) noexcept;
[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;  // "answered", "unknown", "not executed"
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view text) noexcept;

struct History {
  std::vector<Operation> operations;
  std::uint64_t errors = 0;                 // Answers that were errors of no known meaning.
  std::vector<std::string> error_examples;  // A few distinct ones.
  std::uint64_t reconnects = 0;
};

}  // namespace ringshift::check
