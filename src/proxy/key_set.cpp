#include "proxy/key_set.h"

#include "proxy/reach.h"
#include "proxy/replies.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::KeyRef;
using protocol::resp::KeysResult;

std::string_view add_key(const Reach& reach, std::string_view key, Destination& where) {
  if (key.starts_with(kReservedPrefix)) return kReservedKey;
  Upstream* upstream = reach.upstream_of(key);
  if (upstream == nullptr) return kNoRoute;
  const topology::Route route = upstream->snapshot().route(key);
  if (where.upstream == nullptr) {
    where.upstream = upstream;
    where.member = route.member;
  } else if (where.upstream != upstream || where.member != route.member) {
    return kOtherSlot;
  }
  const bool free = !upstream->dual().busy() || !upstream->dual().pending(key);
  where.settled = where.settled && free && route.state == topology::KeyState::settled;
  return {};
}

CommandKeys locate_keys(const Reach& reach, const protocol::resp::Command& command,
                        const protocol::resp::Arguments& arguments) {
  CommandKeys located;
  std::vector<KeyRef> refs;
  const KeysResult found = protocol::resp::find_keys(command, arguments, refs);
  if (found.kind == KeysResult::Kind::refused) {
    located.error = found.error;
    return located;
  }
  if (found.kind != KeysResult::Kind::found) return located;
  located.keys.reserve(refs.size());
  for (const KeyRef& ref : refs) {
    const std::string_view key = arguments[ref.argument];
    located.error = add_key(reach, key, located.where);
    if (!located.error.empty()) return located;
    located.keys.emplace_back(key);
  }
  return located;
}

Destination any_member(const Reach& reach) { return {reach.upstreams().front(), 0, true}; }

Destination locate_again(const Reach& reach, std::span<const std::string> keys, std::string_view& error) {
  Destination where;
  error = {};
  for (const std::string& key : keys) {
    error = add_key(reach, key, where);
    if (!error.empty()) return where;
  }
  return where.upstream != nullptr ? where : any_member(reach);
}

}  // namespace ringshift::proxy
