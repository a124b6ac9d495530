#include "check/commands.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "check/value.h"

namespace ringshift::check {
namespace {

using protocol::resp::append_command;
using protocol::resp::Value;

// What the proxy says of commands that no member has seen, and Redis of those it refuses to run.
constexpr std::array<std::string_view, 10> kNotExecuted = {"TRYAGAIN",   "LOADING",     "READONLY", "OOM",
                                                           "MASTERDOWN", "CLUSTERDOWN", "MOVED",    "ASK",
                                                           "NOPERM",     "NOAUTH"};

}  // namespace

void encode(std::string& out, const Operation& op, std::size_t size) {
  const std::string ttl = std::to_string(op.ttl_ms);
  const std::string value = size > op.value.size() ? long_value(op.value, size) : op.value;
  switch (op.verb) {
    case Verb::set:
      return append_command(out, {"SET", op.key, value});
    case Verb::set_nx:
      return append_command(out, {"SET", op.key, value, "NX"});
    case Verb::getset:
      return append_command(out, {"GETSET", op.key, value});
    case Verb::hset:
      return append_command(out, {"HSET", op.key, op.field, value});
    case Verb::set_px:
      return append_command(out, {"SET", op.key, value, "PX", ttl});
    case Verb::pexpire:
      return append_command(out, {"PEXPIRE", op.key, ttl});
    case Verb::rpush:
      return append_command(out, {"RPUSH", op.key, "element"});
    case Verb::xadd:
      return append_command(out, {"XADD", op.key, "*", "f", "v"});
    case Verb::zadd:
      return append_command(out, {"ZADD", op.key, op.value, op.field});
    case Verb::hget:
    case Verb::hdel:
    case Verb::sadd:
    case Verb::srem:
    case Verb::sismember:
    case Verb::zrem:
    case Verb::zscore:
      return append_command(out, {to_string(op.verb), op.key, op.field});
    default:
      return append_command(out, {to_string(op.verb), op.key});
  }
}

Meaning take_answer(Operation& op, const Value& value) {
  op.outcome = Outcome::unknown;
  if (value.is_error()) {
    const std::string_view word = std::string_view(value.text).substr(0, value.text.find(' '));
    const bool refused = std::ranges::find(kNotExecuted, word) != kNotExecuted.end();
    if (refused) op.outcome = Outcome::not_executed;
    return word == "TRYAGAIN" || word == "TIMEOUT" ? Meaning::known_error : Meaning::unknown_error;
  }
  op.outcome = Outcome::answered;
  op.number = value.integer;
  const auto text_of = [](const Value& one) { return token_of(one.text); };
  if (value.type == Value::Type::bulk || value.type == Value::Type::simple) op.text = text_of(value);
  if (op.verb == Verb::hgetall) {
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
      op.fields.emplace_back(value.items[i].text, text_of(value.items[i + 1]));
    }
  } else if (op.verb == Verb::smembers) {
    for (const Value& item : value.items) op.fields.emplace_back(item.text, "");
    std::ranges::sort(op.fields);
  }
  return Meaning::answer;
}

}  // namespace ringshift::check
