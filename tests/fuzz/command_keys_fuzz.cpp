// Any command with any arguments: the keys found are arguments behind the name, each with a use; what is
// found does not depend on how the arguments are kept. The input is a command's number (two bytes) and then
// the arguments, each behind its length (one byte); lengths from 0xC0 choose an option word.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/command_keys.h"
#include "protocol/resp/value.h"

namespace {

using namespace ringshift::protocol::resp;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kWords[] = {"STORE",    "STOREDIST",
                                       "BY",       "GET",
                                       "LIMIT",    "STREAMS",
                                       "BLOCK",    "COUNT",
                                       "GROUP",    "NOACK",
                                       "0",        "1",
                                       "2",        "3",
                                       "-1",       "01",
                                       "*",        "a*",
                                       "key",      "SET",
                                       "OVERFLOW", "9223372036854775807"};

void check(bool right) {
  if (!right) std::abort();
}

void check_keys(const Command& command, const KeysResult& result, const std::vector<KeyRef>& keys,
                std::size_t count) {
  using Kind = KeysResult::Kind;
  check(result.kind != Kind::found || !keys.empty());
  check(result.kind != Kind::none || keys.empty());
  check((result.kind == Kind::refused) == !result.error.empty());
  check(keys.size() <= count);
  check(keys.empty() || command.key_use != KeyUse::none);
  for (const KeyRef& key : keys) check(key.argument > 0 && key.argument < count && key.use != KeyUse::none);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const Command> all = all_commands();
  const Command& command = all[(data[0] | static_cast<std::size_t>(data[1]) << 8U) % all.size()];
  const std::size_t bar = command.name.find('|');
  std::vector<std::string_view> words{command.name.substr(0, bar)};
  if (bar != std::string_view::npos) words.push_back(command.name.substr(bar + 1));
  for (std::size_t at = 2; at < size;) {
    const std::size_t length = data[at++];
    if (length >= 0xC0) {
      words.push_back(kWords[(length - 0xC0) % std::size(kWords)]);
      continue;
    }
    const std::size_t taken = std::min(length, size - at);
    words.emplace_back(reinterpret_cast<const char*>(data) + at, taken);
    at += taken;
  }
  if (!command.arity_fits(words.size())) return 0;

  std::vector<KeyRef> keys;
  const KeysResult result = find_keys(command, Arguments(std::span<const std::string_view>(words)), keys);
  check_keys(command, result, keys, words.size());
  if (command.key_use != KeyUse::none && command.has_one_key(words.size())) {
    check(result.kind == KeysResult::Kind::found && keys.size() == 1);
    check(keys[0].argument == static_cast<std::uint32_t>(command.first_key));
  }

  std::string bytes;
  append_command(bytes, words);
  CommandParser parser;
  check(parser.parse(bytes) == CommandParser::State::command);
  std::vector<KeyRef> parsed;
  check(find_keys(command, Arguments(parser), parsed).kind == result.kind);
  check(std::ranges::equal(keys, parsed, {}, &KeyRef::argument, &KeyRef::argument));

  const Blocks wait = blocks(command, Arguments(parser));
  check(wait.timeout.count() >= 0 && (wait.may_wait || (!wait.forever && wait.timeout.count() == 0)));
  return 0;
}
