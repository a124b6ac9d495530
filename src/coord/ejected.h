// Who is ejected: the ids of members whose keys the next ones take for as long as they are gone. Written by
// the membership policy (membership/policy.h), read by the controller, which makes factors of it.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "coord/keys.h"

namespace ringshift::coord {

[[nodiscard]] inline std::string ejected_key(const ClusterKeys& keys) { return keys.prefix + "ejected"; }

// The key's value: a JSON list.
[[nodiscard]] std::string ejected_json(const std::set<std::string>& ids);
// Nobody, when it cannot be read.
[[nodiscard]] std::set<std::string> parse_ejected(std::string_view json);

}  // namespace ringshift::coord
