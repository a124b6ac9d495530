#include "check/operation.h"

#include <algorithm>
#include <array>

namespace ringshift::check {
namespace {

constexpr std::array<std::string_view, kKinds> kKindNames = {"register", "counter", "hash", "expiry",
                                                             "list",     "set",     "zset", "stream"};
constexpr std::array<std::string_view, kVerbs> kVerbNames = {
    "SET",       "SET NX",   "GET",    "GETSET",  "DEL",    "EXISTS", "INCR", "HSET", "HGET",
    "HDEL",      "HGETALL",  "SET PX", "PEXPIRE", "PTTL",   "RPUSH",  "LLEN", "SADD", "SREM",
    "SISMEMBER", "SMEMBERS", "ZADD",   "ZREM",    "ZSCORE", "XADD",   "XLEN"};
constexpr std::array<std::string_view, 3> kOutcomeNames = {"answered", "unknown", "not executed"};

template <class T, std::size_t N>
std::optional<T> named(const std::array<std::string_view, N>& names, std::string_view text) noexcept {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<T>(found - names.begin());
}

std::string answer(const Operation& op) {
  if (op.outcome == Outcome::unknown) return "outcome unknown";
  if (op.outcome == Outcome::not_executed) return "not executed";
  switch (op.verb) {
    case Verb::set:
    case Verb::set_nx:
    case Verb::get:
    case Verb::getset:
    case Verb::hget:
    case Verb::set_px:
    case Verb::zscore:
    case Verb::xadd:
      return op.text ? *op.text : "nil";
    case Verb::hgetall:
    case Verb::smembers: {
      std::string out = "{";
      for (const auto& [field, value] : op.fields) {
        out += (out.size() > 1 ? ", " : "") + field + (value.empty() ? "" : ": " + value);
      }
      return out + "}";
    }
    default:
      return std::to_string(op.number);
  }
}

}  // namespace

bool is_write(Verb verb) noexcept {
  switch (verb) {
    case Verb::get:
    case Verb::exists:
    case Verb::hget:
    case Verb::hgetall:
    case Verb::pttl:
    case Verb::llen:
    case Verb::sismember:
    case Verb::smembers:
    case Verb::zscore:
    case Verb::xlen:
      return false;
    default:
      return true;
  }
}

std::string describe(const Operation& op) {
  std::string out{to_string(op.verb)};
  if (!op.field.empty()) out += " " + op.field;
  if (!op.value.empty()) out += " " + op.value;
  if (op.verb == Verb::set_px || op.verb == Verb::pexpire) out += " " + std::to_string(op.ttl_ms) + " ms";
  return out + " -> " + answer(op);
}

std::string_view to_string(Kind kind) noexcept { return kKindNames[static_cast<std::size_t>(kind)]; }
std::optional<Kind> parse_kind(std::string_view text) noexcept { return named<Kind>(kKindNames, text); }
std::string_view to_string(Verb verb) noexcept { return kVerbNames[static_cast<std::size_t>(verb)]; }
std::optional<Verb> parse_verb(std::string_view text) noexcept { return named<Verb>(kVerbNames, text); }
std::string_view to_string(Outcome outcome) noexcept {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}
std::optional<Outcome> parse_outcome(std::string_view text) noexcept {
  return named<Outcome>(kOutcomeNames, text);
}

}  // namespace ringshift::check
