#include "check/judge.h"

#include <algorithm>
#include <map>

#include "check/expiry.h"
#include "check/shrink.h"
#include "check/translate.h"

namespace ringshift::check {
namespace {

using Operations = std::vector<const Operation*>;

// What kind of wrong it is. The search says only that nothing explains the answer; this names the likeliest.
Violation::Kind classify(const Step& step, const std::vector<State>& possible, Kind kind) {
  const auto all = [&](auto test) { return std::ranges::all_of(possible, test); };
  if (step.key_test == KeyTest::present) return Violation::Kind::resurrected;
  if (step.key_test == KeyTest::absent) return Violation::Kind::lost_write;
  for (const Guard& guard : step.guards) {
    const auto cell = guard.cell;
    if (is_counter(kind)) {
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

std::string possible_states(const Verdict& verdict, const Translator& translator, Kind kind) {
  std::string out = "nothing explains this answer; the key could be";
  const char* separator = " ";
  for (const State& state : verdict.possible) {
    out += separator + translator.name(state, kind);
    separator = " or ";
  }
  return out + " before it";
}

// What happens around the culprit, and the operations at `few` of `operations`.
void take_excerpts(Violation& violation, const Operations& operations, const Operation& culprit,
                   const Operations& few) {
  const auto at = static_cast<std::size_t>(std::ranges::find(operations, &culprit) - operations.begin());
  const std::size_t begin = at > kBefore ? at - kBefore : 0;
  const std::size_t end = std::min(operations.size(), at + kAfter + 1);
  for (std::size_t i = begin; i < end; ++i) violation.around.push_back(*operations[i]);
  violation.around_culprit = at - begin;
  for (const Operation* op : few) {
    if (op == &culprit) violation.culprit = violation.operations.size();
    violation.operations.push_back(*op);
  }
}

std::optional<Violation> check_steps(const Operations& operations, const Limits& limits, bool with_excerpt) {
  const Operation& any = *operations.front();
  Violation violation;
  Translator translator(operations);
  if (translator.too_many_fields()) {
    violation.kind = Violation::Kind::inconclusive;
    violation.why =
        "more than " + std::to_string(kMaxFields) + " fields, which is all that the search handles";
    return violation;
  }
  const std::vector<Step> steps = translator.run();
  if (const Operation* invented = translator.invention()) {
    violation.kind = Violation::Kind::invented;
    violation.why = "an answer that nobody ever wrote";
    take_excerpts(violation, operations, *invented, {invented});
    return violation;
  }
  const Verdict verdict = check_linearizable(steps, limits);
  if (verdict.kind == Verdict::Kind::linearizable) return std::nullopt;
  const auto at = static_cast<std::size_t>(verdict.step);
  Operations few = {translator.kept()[at]};
  if (verdict.kind == Verdict::Kind::broken) {
    violation.kind = classify(steps[at], verdict.possible, any.kind);
    violation.why = possible_states(verdict, translator, any.kind);
    if (with_excerpt) {
      few.clear();
      for (const std::size_t index : shrink(steps, at)) few.push_back(translator.kept()[index]);
    }
  } else {
    violation.kind = Violation::Kind::inconclusive;
    violation.why = "the search ended at its bound after " + std::to_string(verdict.work) +
                    " configurations: neither right nor wrong is proven";
  }
  take_excerpts(violation, operations, *translator.kept()[at], few);
  return violation;
}

// The operations without which the fault would not show: reads may go, and so may all before the last whole
// write that ended before the culprit began.
Operations few_of_expiry(const Operations& operations, const Operation& culprit,
                         std::chrono::milliseconds slack) {
  const auto still = [&](const Operations& some) {
    const auto fault = check_expiry(some, slack);
    return fault && some[fault->operation] == &culprit;
  };
  Operations few;
  for (const Operation* op : operations) {
    if (op->invoked <= culprit.returned) few.push_back(op);
  }
  const auto last = std::ranges::find_if(few.rbegin(), few.rend(), [&](const Operation* op) {
    return op->verb == Verb::set_px && op->outcome == Outcome::answered && op->returned < culprit.invoked;
  });
  if (last != few.rend()) {
    const Operations late(last.base() - 1, few.end());
    if (still(late)) few = late;
  }
  for (std::size_t i = few.size(); i-- > 0;) {
    if (few[i] == &culprit || is_write(few[i]->verb)) continue;
    Operations fewer = few;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (still(fewer)) few = std::move(fewer);
  }
  return few;
}

std::optional<Violation> check_ttl(const Operations& operations, std::chrono::milliseconds slack,
                                   bool with_excerpt) {
  const auto fault = check_expiry(operations, slack);
  if (!fault) return std::nullopt;
  Violation violation;
  violation.why = fault->why;
  const Operation& culprit = *operations[fault->operation];
  take_excerpts(violation, operations, culprit,
                with_excerpt ? few_of_expiry(operations, culprit, slack) : Operations{&culprit});
  if (fault->kind == ExpiryFault::Kind::early) violation.kind = Violation::Kind::lost_write;
  if (fault->kind == ExpiryFault::Kind::resurrected) violation.kind = Violation::Kind::resurrected;
  return violation;
}

std::uint64_t& count_of(Judgement& result, Violation::Kind kind) {
  switch (kind) {
    case Violation::Kind::lost_write:
      return result.lost_writes;
    case Violation::Kind::stale_read:
      return result.stale_reads;
    case Violation::Kind::resurrected:
      return result.resurrected;
    case Violation::Kind::invented:
      return result.invented;
    case Violation::Kind::inconclusive:
      break;
  }
  return result.inconclusive;
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

void judge_key(std::vector<const Operation*> operations, const CheckOptions& options, Judgement& result) {
  ++result.keys;
  for (const Operation* op : operations) {
    ++result.operations;
    ++result.by_kind[static_cast<std::size_t>(op->kind)];
    if (op->outcome == Outcome::unknown) ++result.unknown;
    if (op->outcome == Outcome::not_executed) ++result.not_executed;
  }
  std::ranges::sort(operations, [](const Operation* a, const Operation* b) {
    if (a->invoked != b->invoked) return a->invoked < b->invoked;
    return a->client != b->client ? a->client < b->client : a->sequence < b->sequence;
  });
  const bool with_excerpt = result.violations.size() < kMaxShrunk;
  auto violation = operations.front()->kind == Kind::expiry
                       ? check_ttl(operations, options.ttl_slack, with_excerpt)
                       : check_steps(operations, options.limits, with_excerpt);
  if (!violation) return;
  violation->key = operations.front()->key;
  violation->of = operations.size();
  ++count_of(result, violation->kind);
  if (result.violations.size() < kMaxViolations) result.violations.push_back(*std::move(violation));
}

Judgement judge(const History& history, const CheckOptions& options) {
  Judgement result;
  std::map<std::string_view, Operations> keys;
  for (const Operation& op : history.operations) keys[op.key].push_back(&op);
  for (auto& [key, operations] : keys) judge_key(std::move(operations), options, result);
  return result;
}

}  // namespace ringshift::check
