// Any text as rules, cut at its spaces: a user that was read describes himself as rules that read as the same
// user, and answers for any command.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "access/describe.h"
#include "access/user.h"

namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::access;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto user = User::parse("fuzz", words_of(text));
  Users users;
  (void)read_users(text, "fuzz", users);
  if (!user) {
    if (user.error().message.empty()) std::abort();
    return 0;
  }
  const std::string line = describe(*user);
  std::vector<std::string> rules = words_of(line);
  rules.erase(rules.begin(), rules.begin() + 2);
  const auto again = User::parse("fuzz", rules);
  if (!again || describe(*again) != line) std::abort();
  const std::vector<std::string_view> arguments{"set", "key", "value"};
  const auto& set = *ringshift::protocol::resp::find_command("set");
  if (user->check(set, std::span(arguments)).kind != again->check(set, std::span(arguments)).kind)
    std::abort();
  return 0;
}
