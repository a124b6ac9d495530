#include "check/translate.h"

#include <algorithm>
#include <cstdlib>

namespace ringshift::check {
namespace {

using Test = Guard::Test;

}  // namespace

Translator::Translator(const std::vector<const Operation*>& operations) : operations_(operations) {
  for (const Operation* op : operations) {
    if (is_write(op->verb) && !op->value.empty()) written_.try_emplace(op->value, written_.size() + 1);
    if (!op->field.empty()) cells_.try_emplace(op->field, cells_.size());
  }
}

std::vector<Step> Translator::run() {
  std::vector<Step> steps;
  std::unordered_map<std::uint32_t, int> last;  // Client -> its last answered step.
  for (const Operation* op : operations_) {
    const bool answered = op->outcome == Outcome::answered;
    if (op->outcome == Outcome::not_executed || (!answered && !is_write(op->verb))) continue;
    Step step;
    step.invoked = op->invoked;
    step.returned = op->returned;
    step.uncertain = !answered;
    if (answered) {
      const auto [found, fresh] = last.try_emplace(op->client, -1);
      step.previous = found->second;
      found->second = static_cast<int>(steps.size());
    }
    fill(step, *op);
    if (step.uncertain) {
      if (op->verb != Verb::set_nx) step.guards.clear();  // What it would have answered is not known.
      step.key_test = KeyTest::none;
    }
    steps.push_back(std::move(step));
    kept_.push_back(op);
  }
  return steps;
}

std::int64_t Translator::number(const std::optional<std::string>& value, const Operation& op) {
  if (!value) return 0;
  const auto found = written_.find(*value);
  if (found != written_.end()) return static_cast<std::int64_t>(found->second);
  if (invention_ == nullptr) invention_ = &op;
  return -1;
}

void Translator::fill(Step& step, const Operation& op) {
  if (is_counter(op.kind)) return fill_counter(step, op);
  if (has_fields(op.kind)) return fill_fields(step, op);
  fill_register(step, op);
}

void Translator::fill_register(Step& step, const Operation& op) {
  const bool answered = op.outcome == Outcome::answered;
  switch (op.verb) {
    case Verb::get:
      step.guards = {{0, Test::equals, number(op.text, op)}};
      break;
    case Verb::set:
      step.effects = {{0, false, number(op.value, op)}};
      break;
    case Verb::getset:
      if (answered) step.guards = {{0, Test::equals, number(op.text, op)}};
      step.effects = {{0, false, number(op.value, op)}};
      break;
    case Verb::set_nx:  // Uncertain: it may have happened, where the key was absent.
      step.guards = {{0, !answered || op.text ? Test::absent : Test::present, 0}};
      if (!answered || op.text) step.effects = {{0, false, number(op.value, op)}};
      break;
    case Verb::del:
      if (answered) step.guards = {{0, op.number != 0 ? Test::present : Test::absent, 0}};
      if (!answered || op.number != 0) step.effects = {{0, false, 0}};
      break;
    case Verb::exists:
      step.guards = {{0, op.number != 0 ? Test::present : Test::absent, 0}};
      break;
    default:
      break;
  }
}

void Translator::fill_counter(Step& step, const Operation& op) {
  switch (op.verb) {
    case Verb::get:
      step.guards = {{0, Test::equals, op.text ? std::strtoll(op.text->c_str(), nullptr, 10) : 0}};
      break;
    case Verb::llen:
    case Verb::xlen:
      step.guards = {{0, Test::equals, op.number}};
      break;
    case Verb::incr:
    case Verb::rpush:
      if (op.outcome == Outcome::answered) step.guards = {{0, Test::equals, op.number - 1}};
      step.effects = {{0, true, 1}};
      break;
    case Verb::xadd:  // Answers with an id of its own: nothing about those before it.
      step.effects = {{0, true, 1}};
      break;
    default:
      break;
  }
}

void Translator::fill_fields(Step& step, const Operation& op) {
  switch (op.verb) {
    case Verb::hget:
    case Verb::zscore:
      step.guards = {{cell(op.field), Test::equals, number(op.text, op)}};
      break;
    case Verb::sismember:
      step.guards = {{cell(op.field), op.number != 0 ? Test::present : Test::absent, 0}};
      break;
    case Verb::hset:
    case Verb::zadd:
    case Verb::sadd: {
      step.guards = {{cell(op.field), op.number != 0 ? Test::absent : Test::present, 0}};
      step.effects = {{cell(op.field), false, op.verb == Verb::sadd ? 1 : number(op.value, op)}};
      break;
    }
    case Verb::hdel:
    case Verb::zrem:
    case Verb::srem:
      step.guards = {{cell(op.field), op.number != 0 ? Test::present : Test::absent, 0}};
      if (op.outcome != Outcome::answered || op.number != 0) step.effects = {{cell(op.field), false, 0}};
      break;
    default:
      fill_whole(step, op);
      break;
  }
}

// Those that see or write all cells.
void Translator::fill_whole(Step& step, const Operation& op) {
  if (op.verb == Verb::del) {
    step.key_test = op.number != 0 ? KeyTest::present : KeyTest::absent;
    if (op.outcome == Outcome::answered && op.number == 0) return;
    for (const auto& [name, index] : cells_)
      step.effects.push_back({static_cast<std::uint8_t>(index), false, 0});
    return;
  }
  for (const auto& [name, index] : cells_) {
    const auto found = std::ranges::find(op.fields, name, &std::pair<std::string, std::string>::first);
    const bool there = found != op.fields.end();
    const std::int64_t value = op.verb == Verb::smembers ? (there ? 1 : 0)
                               : there                   ? number(found->second, op)
                                                         : 0;
    step.guards.push_back({static_cast<std::uint8_t>(index), Test::equals, value});
  }
  for (const auto& [name, value] : op.fields) {
    if (!cells_.contains(name) && invention_ == nullptr) invention_ = &op;
  }
}

std::string Translator::name(const State& state, Kind kind) const {
  if (is_counter(kind)) return std::to_string(state[0]);
  const auto value = [&](std::int64_t number) -> std::string {
    for (const auto& [text, n] : written_) {
      if (static_cast<std::int64_t>(n) == number) return text;
    }
    return "nil";
  };
  if (!has_fields(kind)) return value(state[0]);
  std::string out = "{";
  for (const auto& [field, index] : cells_) {
    if (kind == Kind::set && state[index] == 0) continue;
    out += (out.size() > 1 ? ", " : "") + field + (kind == Kind::set ? "" : ": " + value(state[index]));
  }
  return out + "}";
}

}  // namespace ringshift::check
