#include "check/choices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace ringshift::check {
namespace {

// Of a hundred operations on all kinds.
constexpr std::array<std::uint32_t, kKinds> kKindWeights = {30, 12, 18, 12, 7, 8, 8, 5};
constexpr std::array<const char*, 4> kFieldNames = {"a", "b", "c", "d"};
constexpr std::size_t kOrdinaryValue = 1024;
constexpr std::uint32_t kOneLongValueIn = 100;

struct Weighted {
  Verb verb;
  std::uint32_t weight;
};
constexpr std::array kRegister = {Weighted{Verb::get, 45},   Weighted{Verb::set, 30},
                                  Weighted{Verb::del, 10},   Weighted{Verb::getset, 6},
                                  Weighted{Verb::set_nx, 5}, Weighted{Verb::exists, 4}};
constexpr std::array kCounter = {Weighted{Verb::incr, 65}, Weighted{Verb::get, 35}};
constexpr std::array kHash = {Weighted{Verb::hget, 35}, Weighted{Verb::hset, 30}, Weighted{Verb::hgetall, 15},
                              Weighted{Verb::hdel, 15}, Weighted{Verb::del, 5}};
constexpr std::array kList = {Weighted{Verb::rpush, 60}, Weighted{Verb::llen, 40}};
constexpr std::array kSet = {Weighted{Verb::sadd, 35}, Weighted{Verb::srem, 20},
                             Weighted{Verb::sismember, 25}, Weighted{Verb::smembers, 15},
                             Weighted{Verb::del, 5}};
constexpr std::array kZset = {Weighted{Verb::zadd, 35}, Weighted{Verb::zrem, 20}, Weighted{Verb::zscore, 40},
                              Weighted{Verb::del, 5}};
constexpr std::array kStream = {Weighted{Verb::xadd, 60}, Weighted{Verb::xlen, 40}};

std::span<const Weighted> verbs_of(Kind kind) {
  switch (kind) {
    case Kind::counter:
      return kCounter;
    case Kind::hash:
      return kHash;
    case Kind::list:
      return kList;
    case Kind::set:
      return kSet;
    case Kind::zset:
      return kZset;
    case Kind::stream:
      return kStream;
    default:
      return kRegister;
  }
}

bool writes_value(Verb verb) {
  return verb == Verb::set || verb == Verb::getset || verb == Verb::set_nx || verb == Verb::hset ||
         verb == Verb::set_px || verb == Verb::zadd;
}

}  // namespace

Choices::Choices(Options options, std::uint64_t seed, std::uint32_t client)
    : options_(std::move(options)), client_(client), random_(seed * 1000003 + client) {
  for (const Kind kind : options_.kinds) all_weights_ += kKindWeights[static_cast<std::size_t>(kind)];
}

Kind Choices::kind() {
  std::uint32_t dice = below(all_weights_);
  for (const Kind kind : options_.kinds) {
    const std::uint32_t weight = kKindWeights[static_cast<std::size_t>(kind)];
    if (dice < weight) return kind;
    dice -= weight;
  }
  return options_.kinds.back();
}

std::uint32_t Choices::key() { return std::min(below(options_.keys), below(options_.keys)); }

bool Choices::operation(Kind kind, std::uint32_t key, Operation& out) {
  std::uint32_t dice = below(100);
  if (kind == Kind::expiry) {
    // Keys are dealt out: number n is written by client n mod clients, and read by all.
    if (key % options_.clients != client_ || dice < 40) {
      out.verb = dice % 2 == 0 ? Verb::get : Verb::pttl;
    } else {
      out.verb = dice < 80 ? Verb::set_px : Verb::pexpire;
      out.ttl_ms = 100 + below(1500);
    }
    return writes_value(out.verb);
  }
  for (const Weighted& one : verbs_of(kind)) {
    out.verb = one.verb;
    if (dice < one.weight) break;
    dice -= one.weight;
  }
  const bool of_a_field = out.verb != Verb::hgetall && out.verb != Verb::smembers && out.verb != Verb::del;
  if ((kind == Kind::hash || kind == Kind::set || kind == Kind::zset) && of_a_field) {
    out.field = kFieldNames[below(kFieldNames.size())];
  }
  return writes_value(out.verb);
}

std::size_t Choices::value_size() {
  if (options_.max_value == 0) return 0;
  if (options_.max_value <= kOrdinaryValue || below(kOneLongValueIn) != 0) {
    return below(static_cast<std::uint32_t>(std::min(options_.max_value, kOrdinaryValue)) + 1);
  }
  // As many between 1 KiB and 2 KiB as between 1 MiB and 2 MiB.
  const double doublings =
      std::log2(static_cast<double>(options_.max_value) / static_cast<double>(kOrdinaryValue));
  const double at = std::uniform_real_distribution<double>(0, doublings)(random_);
  return static_cast<std::size_t>(static_cast<double>(kOrdinaryValue) * std::exp2(at));
}

}  // namespace ringshift::check
