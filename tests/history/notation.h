// A one-line notation for hand-written histories of one key: "CLIENT FROM..TO VERB ARGUMENTS ANSWER", times
// in milliseconds, "?" instead of TO for an unknown outcome, "-" for not executed. For example
//   "0 0..5 SET a"   "1 3..4 GET nil"   "0 6..? DEL"   "2 7..8 HSET f v 1"   "1 9..9 HGETALL f=v,g=w"
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "check/operation.h"

namespace ringshift::check {

inline Operation parse_operation(Kind kind, const std::string& line) {
  static const std::map<std::string, Verb> kVerbsByName = {{"SET", Verb::set},
                                                           {"SETNX", Verb::set_nx},
                                                           {"GET", Verb::get},
                                                           {"GETSET", Verb::getset},
                                                           {"DEL", Verb::del},
                                                           {"EXISTS", Verb::exists},
                                                           {"INCR", Verb::incr},
                                                           {"HSET", Verb::hset},
                                                           {"HGET", Verb::hget},
                                                           {"HDEL", Verb::hdel},
                                                           {"HGETALL", Verb::hgetall},
                                                           {"SETPX", Verb::set_px},
                                                           {"PEXPIRE", Verb::pexpire},
                                                           {"PTTL", Verb::pttl},
                                                           {"RPUSH", Verb::rpush},
                                                           {"LLEN", Verb::llen},
                                                           {"SADD", Verb::sadd},
                                                           {"SREM", Verb::srem},
                                                           {"SISMEMBER", Verb::sismember},
                                                           {"SMEMBERS", Verb::smembers},
                                                           {"ZADD", Verb::zadd},
                                                           {"ZREM", Verb::zrem},
                                                           {"ZSCORE", Verb::zscore},
                                                           {"XADD", Verb::xadd},
                                                           {"XLEN", Verb::xlen}};
  Operation op;
  op.kind = kind;
  op.key = "k";
  std::istringstream in(line);
  std::string interval, verb, word;
  in >> op.client >> interval >> verb;
  if (!kVerbsByName.contains(verb)) ADD_FAILURE() << "no such verb in: " << line;
  op.verb = kVerbsByName.at(verb);
  const auto dots = interval.find("..");
  op.invoked = static_cast<std::int64_t>(std::stod(interval.substr(0, dots)) * 1e6);
  const std::string end = interval.substr(dots + 2);
  op.returned = op.invoked;
  if (end == "?") op.outcome = Outcome::unknown;
  if (end == "-") op.outcome = Outcome::not_executed;
  if (op.outcome == Outcome::answered) op.returned = static_cast<std::int64_t>(std::stod(end) * 1e6);
  switch (op.verb) {
    case Verb::hset:
    case Verb::hget:
    case Verb::hdel:
    case Verb::sadd:
    case Verb::srem:
    case Verb::sismember:
    case Verb::zadd:
    case Verb::zrem:
    case Verb::zscore:
      in >> op.field;
      break;
    default:
      break;
  }
  switch (op.verb) {
    case Verb::set:
    case Verb::set_nx:
    case Verb::getset:
    case Verb::hset:
    case Verb::set_px:
    case Verb::zadd:
      in >> op.value;
      break;
    default:
      break;
  }
  if (op.verb == Verb::set_px || op.verb == Verb::pexpire) in >> op.ttl_ms;
  if (!(in >> word)) {
    op.text = "OK";
  } else if (op.verb == Verb::hgetall || op.verb == Verb::smembers) {
    std::istringstream fields(word);
    for (std::string field; std::getline(fields, field, ',');) {
      if (field == "none") continue;
      const auto equals = std::min(field.find('='), field.size());
      op.fields.emplace_back(field.substr(0, equals), field.substr(std::min(equals + 1, field.size())));
    }
  } else if (word != "nil") {
    op.text = word;
    op.number = std::strtoll(word.c_str(), nullptr, 10);
  }
  return op;
}

inline History parse_history(Kind kind, const std::vector<std::string>& lines) {
  History history;
  for (const std::string& line : lines) {
    history.operations.push_back(parse_operation(kind, line));
    history.operations.back().sequence = history.operations.size();
  }
  return history;
}

}  // namespace ringshift::check
