#include "proxy/fan_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "protocol/resp/value.h"
#include "proxy/key_set.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using backend::Failure;
using protocol::resp::Value;
using Kind = protocol::resp::FanOut;

namespace {

bool is_script(const std::vector<Value>& words, std::string_view subcommand) {
  using protocol::resp::equals_ignoring_case;
  return words.size() >= 2 && equals_ignoring_case(words[0].text, "script") &&
         equals_ignoring_case(words[1].text, subcommand);
}

// The stamp (RESIZE.md, I4) is not the client's, so it is neither counted nor lost.
constexpr std::string_view kCount = "return redis.call('dbsize') - redis.call('exists', 'rs:stamp')";
constexpr std::string_view kFlush =
    "if string.lower(ARGV[1]) == 'flushall' then redis.call('select', '0') end "  // Where the stamp is.
    "local stamp = redis.call('get', 'rs:stamp') "
    "redis.call(unpack(ARGV)) "
    "if stamp then redis.call('set', 'rs:stamp', stamp) end "
    "return redis.status_reply('OK')";

}  // namespace

std::string member_command(const protocol::resp::Command& command,
                           const protocol::resp::CommandParser& arguments) {
  std::string bytes;
  if (command.fan_out == Kind::sum) {
    protocol::resp::append_command(bytes, {"EVAL_RO", kCount, "0"});
  } else if (command.fan_out == Kind::flush) {
    std::vector<std::string_view> words = {"EVAL", kFlush, "0"};
    for (std::size_t i = 0; i < arguments.argument_count(); ++i) words.push_back(arguments.argument(i));
    protocol::resp::append_command(bytes, words);
  } else {
    bytes = arguments.raw();
  }
  return bytes;
}

FanOut::FanOut(Session& session, std::uint64_t number, Kind kind)
    : session_(session), number_(number), kind_(kind), resp_(session.resp()) {}

void FanOut::start(std::string_view command) {
  command_ = command;
  if (kind_ == Kind::all_ok) {
    if (const auto decoded = protocol::resp::decode(command_);
        decoded && *decoded && is_script((*decoded)->value.items, "flush")) {
      session_.worker().scripts().clear();
    }
  }
  if (kind_ == Kind::concat) {
    for (Upstream* upstream : session_.reach().upstreams()) {
      if (upstream->snapshot().topology().resize) rounds_left_ = 2;
    }
  }
  ask_all();
}

void FanOut::ask_all() {
  // Counted first: nothing answers from inside send(), but the count must be right when the first one does.
  for (const Upstream* upstream : session_.reach().upstreams())
    waiting_ += upstream->snapshot().members().size();
  asked_.clear();
  for (Upstream* upstream : session_.reach().upstreams()) {
    const std::size_t members = upstream->snapshot().members().size();
    for (topology::MemberIndex member = 0; member < members; ++member) {
      const std::uint64_t tag = asked_.size();
      asked_.push_back({upstream, upstream->snapshot().members()[member].id});
      upstream->pool().at(member, resp_).send(command_, *this, tag, backend::Traffic::other);
    }
  }
}

void FanOut::on_reply(std::uint64_t tag, std::string_view raw) {
  if (raw.starts_with('-')) {
    session_.worker().counters().add(telemetry::Counter::errors_member);
    failed_on_.push_back(asked_[tag].member);
    if (error_.empty()) error_ = raw;
  } else {
    some_ok_ = true;
    take(raw, asked_[tag].upstream);
  }
  if (--waiting_ == 0) round_done();
}

void FanOut::on_failure(std::uint64_t tag, const Failure& failure) {
  session_.count_failure(failure.kind);
  failed_on_.push_back(asked_[tag].member);
  if (error_.empty()) error_ = failure_reply(failure);
  if (--waiting_ == 0) round_done();
}

void FanOut::take(std::string_view raw, const Upstream* from) {
  switch (kind_) {
    case Kind::sum: {
      const auto decoded = protocol::resp::decode(raw);
      const bool fits = decoded && *decoded && (*decoded)->value.type == Value::Type::integer &&
                        !__builtin_add_overflow(number_sum_, (*decoded)->value.integer, &number_sum_);
      if (!fits && error_.empty()) error_ = kBadReply;
      return;
    }
    case Kind::concat:
      return take_keys(raw, from);
    case Kind::merge_exists:
      return take_flags(raw);
    default:
      if (first_reply_.empty()) first_reply_ = raw;
  }
}

void FanOut::take_keys(std::string_view raw, const Upstream* from) {
  auto decoded = protocol::resp::decode(raw);
  if (!decoded || !*decoded || (*decoded)->value.type != Value::Type::array) {
    if (error_.empty()) error_ = kBadReply;
    return;
  }
  const Reach& reach = session_.reach();
  for (Value& item : (*decoded)->value.items) {
    // What this client could not ask for, because its routes lead elsewhere, it does not learn of either.
    if (!reach.whole() && reach.upstream_of(item.text) != from) continue;
    if (!item.text.starts_with(kReservedPrefix)) keys_.insert(std::move(item.text));
  }
}

void FanOut::take_flags(std::string_view raw) {
  const auto decoded = protocol::resp::decode(raw);
  if (!decoded || !*decoded || (*decoded)->value.type != Value::Type::array) {
    if (error_.empty()) error_ = kBadReply;
    return;
  }
  const std::vector<Value>& items = (*decoded)->value.items;
  if (flags_.empty()) {
    flags_.assign(items.size(), true);
    any_flags_.assign(items.size(), false);
  }
  for (std::size_t i = 0; i < items.size() && i < flags_.size(); ++i) {
    flags_[i] = flags_[i] && items[i].integer != 0;
    any_flags_[i] = any_flags_[i] || items[i].integer != 0;
  }
}

void FanOut::round_done() {
  if (--rounds_left_ > 0 && error_.empty()) return ask_all();
  session_.task_done(number_, answer());  // Destroys this.
}

// "ERR ..." of some members, while the others have done it.
std::string FanOut::partial_error() const {
  std::string_view text = error_;
  text.remove_suffix(2);
  return fmt::format("{} (on {} of {} members: {}; the others have done it)\r\n", text, failed_on_.size(),
                     asked_.size(), fmt::join(failed_on_, ", "));
}

// What a member has not got and the cache has is loaded there when it is called, so it exists. What was seen
// in an EVAL alone has not proved to compile unless a member has it.
void FanOut::look_at_scripts() {
  const auto decoded = protocol::resp::decode(command_);
  if (!decoded || !*decoded) return;
  const std::vector<Value>& words = (*decoded)->value.items;
  ScriptCache& scripts = session_.worker().scripts();
  if (kind_ == Kind::merge_exists) {
    for (std::size_t i = 0; i < flags_.size() && i + 2 < words.size(); ++i) {
      if (flags_[i]) continue;
      const auto known = scripts.find(words[i + 2].text);
      flags_[i] = known && (known->loaded || any_flags_[i]);
    }
  } else if (words.size() == 3 && is_script(words, "load")) {
    scripts.remember(words[2].text, true);
  }
}

std::string FanOut::answer() {
  if (some_ok_ && (kind_ == Kind::merge_exists || kind_ == Kind::same)) look_at_scripts();
  if (!error_.empty()) {
    return some_ok_ && (kind_ == Kind::same || kind_ == Kind::all_ok) ? partial_error() : error_;
  }
  std::string out;
  switch (kind_) {
    case Kind::sum:
      append_integer(out, number_sum_);
      return out;
    case Kind::concat:
      append_header(out, '*', keys_.size());
      for (const std::string& key : keys_) append_bulk(out, key);
      return out;
    case Kind::merge_exists:
      append_header(out, '*', flags_.size());
      for (const bool flag : flags_) append_integer(out, flag ? 1 : 0);
      return out;
    default:
      return first_reply_;
  }
}

}  // namespace ringshift::proxy
