#include "tests/history/check.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tests/history/expiry.h"
#include "tests/history/report.h"

namespace ringshift::history {
namespace {

using Operations = std::vector<const Operation*>;

// Turns one key's operations into steps of the search: values become numbers, fields become cells.
class Translator {
 public:
  explicit Translator(const Operations& operations) : operations_(operations) {
    for (const Operation* op : operations) {
      if (is_write(op->verb) && !op->value.empty()) written_.try_emplace(op->value, written_.size() + 1);
      if (!op->field.empty()) cells_.try_emplace(op->field, cells_.size());
    }
  }

  // A read of a value that was never written; it needs no search.
  [[nodiscard]] const Operation* invention() const { return invention_; }
  [[nodiscard]] bool too_many_fields() const { return cells_.size() > kMaxFields; }
  [[nodiscard]] const std::vector<const Operation*>& kept() const { return kept_; }
  [[nodiscard]] std::string name(const State& state, Kind kind) const;

  std::vector<Step> run() {
    std::vector<Step> steps;
    std::unordered_map<std::uint32_t, int> last;  // Client -> its last answered step.
    std::vector<std::size_t> order;
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

 private:
  std::int64_t number(const std::optional<std::string>& value, const Operation& op) {
    if (!value) return 0;
    const auto found = written_.find(*value);
    if (found != written_.end()) return static_cast<std::int64_t>(found->second);
    if (invention_ == nullptr) invention_ = &op;
    return -1;
  }
  std::uint8_t cell(const std::string& field) const { return static_cast<std::uint8_t>(cells_.at(field)); }
  void fill(Step& step, const Operation& op);
  void fill_hash(Step& step, const Operation& op);

  const Operations& operations_;
  std::unordered_map<std::string, std::size_t> written_;
  std::map<std::string, std::size_t> cells_;
  std::vector<const Operation*> kept_;
  const Operation* invention_ = nullptr;
};

void Translator::fill(Step& step, const Operation& op) {
  using Test = Guard::Test;
  if (op.kind == Kind::hash) return fill_hash(step, op);
  const bool answered = op.outcome == Outcome::answered;
  switch (op.verb) {
    case Verb::get:
      if (op.kind != Kind::counter) {
        step.guards = {{0, Test::equals, number(op.text, op)}};
      } else {
        step.guards = {{0, Test::equals, op.text ? std::strtoll(op.text->c_str(), nullptr, 10) : 0}};
      }
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
    case Verb::incr:
      if (answered) step.guards = {{0, Test::equals, op.number - 1}};
      step.effects = {{0, true, 1}};
      break;
    default:
      break;
  }
}

void Translator::fill_hash(Step& step, const Operation& op) {
  using Test = Guard::Test;
  switch (op.verb) {
    case Verb::hget:
      step.guards = {{cell(op.field), Test::equals, number(op.text, op)}};
      break;
    case Verb::hset:
      step.guards = {{cell(op.field), op.number != 0 ? Test::absent : Test::present, 0}};
      step.effects = {{cell(op.field), false, number(op.value, op)}};
      break;
    case Verb::hdel:
      step.guards = {{cell(op.field), op.number != 0 ? Test::present : Test::absent, 0}};
      if (op.outcome != Outcome::answered || op.number != 0) step.effects = {{cell(op.field), false, 0}};
      break;
    case Verb::hgetall:
      for (const auto& [name, index] : cells_) {
        const auto found = std::ranges::find(op.fields, name, &std::pair<std::string, std::string>::first);
        const auto value = found == op.fields.end() ? std::nullopt : std::optional(found->second);
        step.guards.push_back({static_cast<std::uint8_t>(index), Test::equals, number(value, op)});
      }
      for (const auto& [name, value] : op.fields) {
        if (!cells_.contains(name) && invention_ == nullptr) invention_ = &op;
      }
      break;
    case Verb::del:
      step.key_test = op.number != 0 ? KeyTest::present : KeyTest::absent;
      if (op.outcome == Outcome::answered && op.number == 0) break;
      for (const auto& [name, index] : cells_)
        step.effects.push_back({static_cast<std::uint8_t>(index), false, 0});
      break;
    default:
      break;
  }
}

std::string Translator::name(const State& state, Kind kind) const {
  if (kind == Kind::counter) return std::to_string(state[0]);
  const auto value = [&](std::int64_t number) -> std::string {
    for (const auto& [text, n] : written_) {
      if (static_cast<std::int64_t>(n) == number) return text;
    }
    return "nil";
  };
  if (kind != Kind::hash) return value(state[0]);
  std::string out = "{";
  for (const auto& [field, index] : cells_)
    out += (out.size() > 1 ? ", " : "") + field + ": " + value(state[index]);
  return out + "}";
}

// What kind of wrong it is. The search says only that nothing explains the answer; this names the likeliest.
Violation::Kind classify(const Step& step, const std::vector<State>& possible, Kind kind) {
  const auto all = [&](auto test) { return std::ranges::all_of(possible, test); };
  if (step.key_test == KeyTest::present) return Violation::Kind::resurrected;
  if (step.key_test == KeyTest::absent) return Violation::Kind::lost_write;
  for (const Guard& guard : step.guards) {
    const auto cell = guard.cell;
    if (kind == Kind::counter) {
      if (!step.effects.empty()) return Violation::Kind::lost_write;  // Two increments got one number.
      return guard.value == 0 ? Violation::Kind::lost_write : Violation::Kind::stale_read;
    }
    const bool wants_absent =
        guard.test == Guard::Test::absent || (guard.test == Guard::Test::equals && guard.value == 0);
    if (wants_absent && all([&](const State& s) { return s[cell] != 0; })) return Violation::Kind::lost_write;
    if (!wants_absent && all([&](const State& s) { return s[cell] == 0; }))
      return Violation::Kind::resurrected;
  }
  return Violation::Kind::stale_read;
}

std::optional<Violation> check_steps(const Operations& operations, const Limits& limits) {
  const Operation& any = *operations.front();
  Translator translator(operations);
  if (translator.too_many_fields()) {
    return Violation{Violation::Kind::inconclusive, any.key, "more fields than the search handles", {}};
  }
  const std::vector<Step> steps = translator.run();
  if (const Operation* invented = translator.invention()) {
    return Violation{Violation::Kind::invented, any.key, "an answer that nobody ever wrote",
                     excerpt(operations, *invented)};
  }
  const Verdict verdict = check_linearizable(steps, limits);
  if (verdict.kind == Verdict::Kind::linearizable) return std::nullopt;
  const auto at = static_cast<std::size_t>(verdict.step);
  Violation violation{
      Violation::Kind::inconclusive, any.key,
      "the search ended at its bound after " + std::to_string(verdict.work) + " configurations",
      excerpt(operations, *translator.kept()[at])};
  if (verdict.kind == Verdict::Kind::broken) {
    violation.kind = classify(steps[at], verdict.possible, any.kind);
    violation.why = "nothing explains this answer; the key could be";
    const char* separator = " ";
    for (const State& state : verdict.possible) {
      violation.why += separator + translator.name(state, any.kind);
      separator = " or ";
    }
    violation.why += " before it";
  }
  return violation;
}

std::optional<Violation> check_ttl(const Operations& operations, std::chrono::milliseconds slack) {
  const auto fault = check_expiry(operations, slack);
  if (!fault) return std::nullopt;
  Violation violation{Violation::Kind::stale_read, operations.front()->key, fault->why,
                      excerpt(operations, *operations[fault->operation])};
  if (fault->kind == ExpiryFault::Kind::early) violation.kind = Violation::Kind::lost_write;
  if (fault->kind == ExpiryFault::Kind::resurrected) violation.kind = Violation::Kind::resurrected;
  return violation;
}

}  // namespace

const char* to_string(Violation::Kind kind) noexcept {
  switch (kind) {
    case Violation::Kind::lost_write:
      return "lost write";
    case Violation::Kind::stale_read:
      return "stale read";
    case Violation::Kind::resurrected:
      return "resurrected";
    case Violation::Kind::invented:
      return "invented value";
    case Violation::Kind::inconclusive:
      return "inconclusive";
  }
  return "?";
}

Judgement check(const History& history, const CheckOptions& options) {
  Judgement result;
  result.errors = history.errors;
  std::map<std::string_view, Operations> keys;
  for (const Operation& op : history.operations) {
    ++result.operations;
    if (op.outcome == Outcome::unknown) ++result.unknown;
    if (op.outcome == Outcome::not_executed) ++result.not_executed;
    keys[op.key].push_back(&op);
  }
  result.keys = keys.size();
  for (auto& [key, operations] : keys) {
    std::ranges::sort(operations, [](const Operation* a, const Operation* b) {
      if (a->invoked != b->invoked) return a->invoked < b->invoked;
      return a->client != b->client ? a->client < b->client : a->sequence < b->sequence;
    });
    auto violation = operations.front()->kind == Kind::expiry ? check_ttl(operations, options.ttl_slack)
                                                              : check_steps(operations, options.limits);
    if (!violation) continue;
    switch (violation->kind) {
      case Violation::Kind::lost_write:
        ++result.lost_writes;
        break;
      case Violation::Kind::stale_read:
        ++result.stale_reads;
        break;
      case Violation::Kind::resurrected:
        ++result.resurrected;
        break;
      case Violation::Kind::invented:
        ++result.invented;
        break;
      case Violation::Kind::inconclusive:
        ++result.inconclusive;
        break;
    }
    result.violations.push_back(*std::move(violation));
  }
  return result;
}

}  // namespace ringshift::history
