// Users as ACL LIST and ACL GETUSER show them. The commands of a selector are described as Redis 7.0 does:
// the categories that fit best, then what differs from them; only the order of the latter is ours, since
// Redis' is that of a hash table with a random seed.
//
// Pure; any thread. Cost: O(commands x categories²); for people.
#pragma once
#include <string>

#include "access/user.h"

namespace ringshift::access {

[[nodiscard]] std::string describe_commands(const Selector& selector);  // "-@all +@read -mget"
[[nodiscard]] std::string describe_keys(const Selector& selector);      // "~a:* %R~b:*"
[[nodiscard]] std::string describe_channels(const Selector& selector);  // "&news"
[[nodiscard]] std::vector<std::string> flags_of(const User& user);      // "on", "nopass"
[[nodiscard]] std::string describe(const User& user);                   // A line of ACL LIST.

}  // namespace ringshift::access
