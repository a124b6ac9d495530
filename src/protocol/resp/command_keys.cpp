#include "protocol/resp/command_keys.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

namespace ringshift::protocol::resp {
namespace {

using Kind = KeysResult::Kind;
using Out = std::vector<KeyRef>;

constexpr std::uint16_t kRead = key_ro | key_access;
constexpr std::uint16_t kOverwritten = key_ow | key_update;

// A server reads options up to the first NUL byte.
std::string_view word(std::string_view argument) { return argument.substr(0, argument.find('\0')); }
bool is(std::string_view argument, std::string_view lower) {
  return equals_ignoring_case(word(argument), lower);
}

// As the server reads numbers: no sign but '-', no leading zeros or spaces.
std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.starts_with('0') && text != "0") return std::nullopt;
  return value;
}

KeysResult result(const Out& out) { return {out.empty() ? Kind::none : Kind::found, {}}; }

void add(Out& out, std::size_t argument, std::uint16_t flags) {
  const KeyUse use = (flags & key_ro) != 0 ? KeyUse::read : KeyUse::write;
  out.push_back({static_cast<std::uint32_t>(argument), flags, use});
}

// REQUIRES: the specification begins at an index.
bool add_range(const KeySpec& spec, std::size_t count, Out& out) {
  const auto argc = static_cast<std::int64_t>(count);
  const std::int64_t last = spec.a >= 0 ? spec.begin_at + spec.a : argc + spec.a;
  if (last >= argc) return false;
  for (std::int64_t i = spec.begin_at; i <= last; i += spec.b)  // Maybe none: PFMERGE without sources.
    add(out, static_cast<std::size_t>(i), spec.flags);
  return true;
}

// A number of keys and then the keys, with `behind` arguments at least behind them.
bool add_counted(const Command& command, const KeySpec& spec, const Arguments& arguments, std::size_t behind,
                 Out& out) {
  const auto number_at = static_cast<std::size_t>(spec.begin_at + spec.a);
  const auto first = static_cast<std::size_t>(spec.begin_at + spec.b);
  if (number_at >= arguments.size()) return false;
  const std::optional<std::int64_t> number = integer(arguments[number_at]);
  if (!number || *number < 0) return false;
  if (*number == 0) return (command.flags & k_no_mandatory_keys) != 0;
  const auto keys = static_cast<std::uint64_t>(*number);
  if (first + behind > arguments.size() || keys > arguments.size() - first - behind) return false;
  for (std::size_t i = 0; i < keys; ++i) add(out, first + i, spec.flags);
  return true;
}

KeysResult by_specs(const Command& command, const Arguments& arguments, std::size_t behind, Out& out) {
  for (const KeySpec& spec : command.key_specs()) {
    if ((spec.flags & key_not_key) != 0 || spec.begin != KeySpec::Begin::index) continue;
    const bool fits = spec.find == KeySpec::Find::range ? add_range(spec, arguments.size(), out)
                                                        : add_counted(command, spec, arguments, behind, out);
    if (fits) continue;
    out.clear();
    return {Kind::malformed, {}};
  }
  return result(out);
}

// MSET and MSETNX: as many values as keys.
KeysResult pairs(const Command& command, const Arguments& arguments, Out& out) {
  (void)by_specs(command, arguments, 0, out);
  if ((arguments.size() - 1) % static_cast<std::size_t>(command.key_step) == 0) return result(out);
  return {Kind::malformed, {}};
}

// SET key value [...]: with GET it also answers the old value.
KeysResult set(const Arguments& arguments, Out& out) {
  std::uint16_t flags = kOverwritten;
  for (std::size_t i = 3; i < arguments.size(); ++i)
    if (is(arguments[i], "get")) flags = key_rw | key_access | key_update;
  add(out, 1, flags);
  return {Kind::found, {}};
}

// BITFIELD key [GET type offset | OVERFLOW how | other ...]: reads when it only GETs.
KeysResult bitfield(const Arguments& arguments, Out& out) {
  std::uint16_t flags = kRead;
  for (std::size_t i = 2; i < arguments.size();) {
    const std::size_t more = arguments.size() - i - 1;
    if (is(arguments[i], "get") && more >= 2) {
      i += 3;
    } else if (is(arguments[i], "overflow") && more >= 1) {
      i += 2;
    } else {
      flags = key_rw | key_access | key_update;
      break;
    }
  }
  add(out, 1, flags);
  return {Kind::found, {}};
}

// SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE destination]. A
// pattern without '*' names no other key: "nosort", "#". Of several STOREs the last counts.
KeysResult sort(const Command& command, const Arguments& arguments, Out& out) {
  add(out, 1, kRead);
  const bool stores = command.name == "sort";
  std::size_t store_at = 0;
  KeysResult answer{Kind::found, {}};
  const auto names_keys = [&](std::size_t i) { return arguments[i].find('*') != std::string_view::npos; };
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    const std::size_t more = arguments.size() - i - 1;
    if (is(option, "limit") && more >= 2) {
      i += 2;
    } else if (is(option, "by") && more >= 1) {
      if (names_keys(++i) && answer.error.empty())
        answer = {Kind::refused, "-ERR BY option of SORT denied in cluster mode."};
    } else if (is(option, "get") && more >= 1) {
      if (names_keys(++i) && answer.error.empty())
        answer = {Kind::refused, "-ERR GET option of SORT denied in cluster mode."};
    } else if (stores && is(option, "store") && more >= 1) {
      store_at = ++i;
    }
  }
  if (store_at != 0) add(out, store_at, kOverwritten);
  return answer;
}

// GEORADIUS key longitude latitude radius unit, GEORADIUSBYMEMBER key member radius unit, then options. Of
// several STOREs and STOREDISTs the last counts.
KeysResult georadius(const Command& command, const Arguments& arguments, Out& out) {
  add(out, 1, kRead);
  std::size_t store_at = 0;
  for (std::size_t i = command.name == "georadius" ? 6 : 5; i + 1 < arguments.size(); ++i) {
    if (is(arguments[i], "store") || is(arguments[i], "storedist")) {
      store_at = ++i;
    } else if (is(arguments[i], "count")) {
      ++i;
    }
  }
  if (store_at != 0) add(out, store_at, kOverwritten);
  return {Kind::found, {}};
}

// What XREAD and XREADGROUP say before STREAMS.
struct XRead {
  std::size_t streams_at = 0;  // Behind the word; 0: there is no such word, or an option nobody knows.
  std::size_t block_at = 0;    // Its value; 0: none.
};

XRead read_xread(const Command& command, const Arguments& arguments) {
  const bool group = command.name == "xreadgroup";
  XRead found;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    const std::size_t more = arguments.size() - i - 1;
    if (is(option, "block") && more >= 1) {
      found.block_at = ++i;
    } else if (is(option, "count") && more >= 1) {
      ++i;
    } else if (is(option, "streams") && more >= 1) {
      found.streams_at = i + 1;
      break;
    } else if (group && is(option, "group") && more >= 2) {
      i += 2;
    } else if (!group || !is(option, "noack")) {
      break;
    }
  }
  return found;
}

KeysResult xread(const Command& command, const Arguments& arguments, Out& out) {
  const std::size_t first = read_xread(command, arguments).streams_at;
  if (first == 0) return {Kind::malformed, {}};
  const std::size_t rest = arguments.size() - first;
  for (std::size_t i = 0; i < rest / 2; ++i) {
    add(out, first + i, kRead);
    out.back().use = command.key_use;  // XREADGROUP changes the group that is in the stream.
  }
  return {rest % 2 == 0 ? Kind::found : Kind::malformed, {}};
}

// Seconds with a fraction, or milliseconds. What the server would refuse is no number to us either, or a
// number out of range.
Blocks wait_of(double milliseconds) {
  constexpr double kLongest =
      100.0 * 365 * 86400 * 1000;  // A century: nanoseconds must hold it, added to now.
  Blocks blocks{.may_wait = true};
  if (!(milliseconds > 0) || milliseconds > kLongest) {
    blocks.forever = true;  // 0 is for ever.
  } else {
    blocks.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(milliseconds)));
  }
  return blocks;
}

Blocks seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) value = 0;
  return wait_of(value * 1000);
}

Blocks milliseconds(std::string_view text) { return wait_of(static_cast<double>(integer(text).value_or(0))); }

}  // namespace

KeysResult find_keys(const Command& command, const Arguments& arguments, std::vector<KeyRef>& out) {
  out.clear();
  switch (command.finder) {
    case KeyFinder::specs:
      return by_specs(command, arguments, 0, out);
    case KeyFinder::counted:
      return by_specs(command, arguments, 1, out);
    case KeyFinder::pairs:
      return pairs(command, arguments, out);
    case KeyFinder::set:
      return set(arguments, out);
    case KeyFinder::bitfield:
      return bitfield(arguments, out);
    case KeyFinder::sort:
      return sort(command, arguments, out);
    case KeyFinder::georadius:
      return georadius(command, arguments, out);
    case KeyFinder::xread:
      return xread(command, arguments, out);
  }
  return {};
}

Blocks blocks(const Command& command, const Arguments& arguments) {
  if (command.fan_out == FanOut::wait) return milliseconds(arguments[2]);
  if ((command.flags & k_blocking) == 0) return {};
  if (command.finder == KeyFinder::xread) {
    const XRead options = read_xread(command, arguments);
    return options.block_at == 0 ? Blocks{} : milliseconds(arguments[options.block_at]);
  }
  if (command.finder == KeyFinder::counted) return seconds(arguments[1]);  // BLMPOP, BZMPOP.
  return seconds(arguments[arguments.size() - 1]);
}

}  // namespace ringshift::protocol::resp
