// Where the keys of one command are, and whether the command may go there as it is.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/command_keys.h"
#include "proxy/dual_router.h"
#include "ringshift/snapshot.h"

namespace ringshift::proxy {

class Reach;
class Upstream;

// What begins with this is ours at the members.
inline constexpr std::string_view kReservedPrefix = "rs:";

// CROSSSLOT without its line end, for Session::refuse.
inline constexpr std::string_view kOtherSlot = kCrossSlot.substr(0, kCrossSlot.size() - 2);

struct Destination {
  Upstream* upstream = nullptr;  // Null: no key was seen yet.
  topology::MemberIndex member = topology::kNoMember;
  bool settled = true;  // No key is between two members, none has commands waiting in the dual router.
};

// Adds one key to what `where` already covers. Gives an error without its line end when the key is reserved,
// has no route, or is on another member than the keys before; "" when all is well. O(1).
[[nodiscard]] std::string_view add_key(const Reach& reach, std::string_view key, Destination& where);

// The keys of a command, found and located. `found.kind` none or malformed: where.upstream is null, and any
// member may be asked.
struct CommandKeys {
  std::string_view error;  // Not empty: refuse with it.
  Destination where;
  std::vector<std::string> keys;
};
[[nodiscard]] CommandKeys locate_keys(const Reach& reach, const protocol::resp::Command& command,
                                      const protocol::resp::Arguments& arguments);

// Where a command goes that names no key: the first member of the first cluster, so that the same one always
// answers.
[[nodiscard]] Destination any_member(const Reach& reach);

// Whether the keys of a located command may be used on their member as they are, by the snapshot of now.
[[nodiscard]] Destination locate_again(const Reach& reach, std::span<const std::string> keys,
                                       std::string_view& error);

}  // namespace ringshift::proxy
