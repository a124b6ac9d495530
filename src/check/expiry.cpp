#include "check/expiry.h"

#include <algorithm>

namespace ringshift::check {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kEarly =
    20 * kMs;  // Rounding to milliseconds, and wall clock against monotonic clock.

// What the key is from one write to the next.
struct Span {
  std::optional<std::string> value;
  std::int64_t earliest = 0, latest = 0;  // Deadline, when there is a value.
  std::int64_t from = 0, until = kNever;  // Invocation of its write; return of the next one.
  std::int64_t absent_seen = kNever;      // Return of the first read that proves the value is gone.
};

std::string ms(std::int64_t ns) { return std::to_string(ns / kMs) + " ms"; }

class Judge {
 public:
  Judge(const std::vector<const Operation*>& operations, std::int64_t slack)
      : operations_(operations), slack_(slack) {}

  std::optional<ExpiryFault> run() {
    for (const Operation* op : operations_) {
      if (is_write(op->verb) && op->outcome == Outcome::unknown) cut_ = std::min(cut_, op->invoked);
    }
    spans_.push_back({});
    spans_.front().from = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const Operation& op = *operations_[i];
      if (!is_write(op.verb) || op.outcome != Outcome::answered || op.invoked >= cut_) continue;
      if (auto fault = write(op, i)) return fault;
    }
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const Operation& op = *operations_[i];
      if (is_write(op.verb) || op.outcome != Outcome::answered || op.returned >= cut_) continue;
      if (auto fault = read(op, i)) return fault;
    }
    return std::nullopt;
  }

 private:
  std::optional<ExpiryFault> write(const Operation& op, std::size_t index) {
    const Span last = spans_.back();
    if (op.verb == Verb::pexpire && op.number == 0) {
      if (last.value && op.returned < last.earliest - kEarly) {
        return ExpiryFault{
            ExpiryFault::Kind::early, index,
            "PEXPIRE found no key " + ms(last.earliest - op.returned) + " before its deadline"};
      }
      push(op, std::nullopt);
      return std::nullopt;
    }
    if (op.verb == Verb::pexpire) {
      if (!last.value)
        return ExpiryFault{ExpiryFault::Kind::resurrected, index, "PEXPIRE found a key that was gone"};
      if (op.invoked > last.latest + slack_) {
        return ExpiryFault{ExpiryFault::Kind::outlived, index,
                           "PEXPIRE found the key " + ms(op.invoked - last.latest) + " after its deadline"};
      }
    }
    push(op, op.verb == Verb::pexpire ? last.value : std::optional(op.value));
    return std::nullopt;
  }

  void push(const Operation& op, std::optional<std::string> value) {
    spans_.back().until = op.returned;
    Span span;
    span.value = std::move(value);
    span.from = op.invoked;
    span.earliest = op.invoked + op.ttl_ms * kMs;
    span.latest = op.returned + op.ttl_ms * kMs;
    spans_.push_back(std::move(span));
  }

  std::optional<ExpiryFault> read(const Operation& op, std::size_t index) {
    // The spans that the read's interval touches; those are consecutive.
    const auto first = std::ranges::find_if(spans_, [&](const Span& s) { return s.until >= op.invoked; });
    ExpiryFault fault{ExpiryFault::Kind::stale, index, "the key held another value"};
    std::size_t candidates = 0;
    Span* only = nullptr;
    for (auto span = first; span != spans_.end() && span->from <= op.returned; ++span) {
      ++candidates;
      only = &*span;
      if (fits(op, *span, fault)) {
        // Reads after this one may only rely on absence if nothing else explains it.
        const bool absent = op.verb == Verb::pttl ? op.number == -2 : !op.text;
        const auto next = span + 1;
        if (absent && span->value && span == first && (next == spans_.end() || next->from > op.returned)) {
          only->absent_seen = std::min(only->absent_seen, op.returned);
        }
        return std::nullopt;
      }
    }
    return fault;
  }

  // Whether `span` explains the answer; says in `fault` why not.
  bool fits(const Operation& op, const Span& span, ExpiryFault& fault) const {
    const bool absent = op.verb == Verb::pttl ? op.number == -2 : !op.text;
    if (absent) {
      if (!span.value || op.returned >= span.earliest - kEarly) return true;
      fault.kind = ExpiryFault::Kind::early;
      fault.why = "the key was gone " + ms(span.earliest - op.returned) + " before its deadline";
      return false;
    }
    if (!span.value || (op.verb == Verb::get && *op.text != *span.value)) {
      fault.kind = span.value ? ExpiryFault::Kind::stale : ExpiryFault::Kind::resurrected;
      fault.why = span.value ? "the key held " + *span.value : "the key was absent";
      return false;
    }
    if (op.verb == Verb::pttl && op.number == -1) {
      fault.kind = ExpiryFault::Kind::no_deadline;
      fault.why = "the key lost its time to live";
      return false;
    }
    if (op.invoked > span.latest + slack_) {
      fault.kind = ExpiryFault::Kind::outlived;
      fault.why = "the value was read " + ms(op.invoked - span.latest) + " after its deadline";
      return false;
    }
    if (span.absent_seen < op.invoked) {
      fault.kind = ExpiryFault::Kind::resurrected;
      fault.why = "the value had been seen absent before";
      return false;
    }
    if (op.verb != Verb::pttl) return true;
    const std::int64_t left = op.number * kMs;
    if (left > span.latest - op.invoked + slack_ + kMs) {
      fault.kind = ExpiryFault::Kind::outlived;
      fault.why = "the time to live reaches " + ms(left - (span.latest - op.invoked)) + " past the deadline";
      return false;
    }
    if (left < span.earliest - op.returned - kEarly) {
      fault.kind = ExpiryFault::Kind::early;
      fault.why = "the time to live ends " + ms(span.earliest - op.returned - left) + " before the deadline";
      return false;
    }
    return true;
  }

  const std::vector<const Operation*>& operations_;
  std::int64_t slack_;
  std::int64_t cut_ = kNever;
  std::vector<Span> spans_;
};

}  // namespace

std::optional<ExpiryFault> check_expiry(const std::vector<const Operation*>& operations,
                                        std::chrono::milliseconds slack) {
  return Judge(operations, slack.count() * kMs).run();
}

}  // namespace ringshift::check
