#include "tests/history/operation.h"

#include <array>

namespace ringshift::history {
namespace {

constexpr std::array<const char*, 14> kNames = {"SET",     "SET NX", "GET",     "GETSET", "DEL",
                                                "EXISTS",  "INCR",   "HSET",    "HGET",   "HDEL",
                                                "HGETALL", "SET PX", "PEXPIRE", "PTTL"};

std::string answer(const Operation& op) {
  if (op.outcome == Outcome::unknown) return "outcome unknown";
  if (op.outcome == Outcome::not_executed) return "not executed";
  switch (op.verb) {
    case Verb::del:
    case Verb::exists:
    case Verb::incr:
    case Verb::hset:
    case Verb::hdel:
    case Verb::pexpire:
    case Verb::pttl:
      return std::to_string(op.number);
    case Verb::hgetall: {
      std::string out = "{";
      for (const auto& [field, value] : op.fields) out += (out.size() > 1 ? ", " : "") + field + ": " + value;
      return out + "}";
    }
    default:
      return op.text ? *op.text : "nil";
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
      return false;
    default:
      return true;
  }
}

std::string describe(const Operation& op) {
  std::string out = kNames[static_cast<std::size_t>(op.verb)];
  if (!op.field.empty()) out += " " + op.field;
  if (!op.value.empty()) out += " " + op.value;
  if (op.verb == Verb::set_px || op.verb == Verb::pexpire) out += " " + std::to_string(op.ttl_ms) + " ms";
  return out + " -> " + answer(op);
}

}  // namespace ringshift::history
