#include "drill/census.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "drill/client.h"
#include "ringshift/snapshot.h"

namespace ringshift::drill {
namespace {

using topology::Snapshot;
using SnapshotPtr = std::shared_ptr<const Snapshot>;

constexpr std::chrono::milliseconds kTimeout{10000};
constexpr std::string_view kReservedPrefix = "rs:";

Result<std::unordered_set<std::string>> scan_all(const topology::Member& member) {
  Result<Client> client = Client::connect(member.address, kTimeout);
  if (!client)
    return fail(client.error().kind, fmt::format("member {}: {}", member.id, client.error().message));
  std::unordered_set<std::string> keys;  // SCAN may give a key twice.
  std::string cursor = "0";
  do {
    Result<Client::Value> page = client->call({"SCAN", cursor, "COUNT", "1000"});
    if (!page || page->is_error() || page->items.size() != 2) {
      return fail(ErrorKind::retryable, fmt::format("member {} ({}): SCAN: {}", member.id, member.address,
                                                    page ? page->text : page.error().message));
    }
    cursor = page->items[0].text;
    for (Client::Value& key : page->items[1].items) {
      if (!key.text.starts_with(kReservedPrefix)) keys.insert(std::move(key.text));
    }
  } while (cursor != "0");
  return keys;
}

std::string_view owner(const Snapshot& snapshot, std::string_view key) {
  return snapshot.members()[snapshot.owner_before(key)].id;
}

}  // namespace

Result<Census> take_census(const topology::Spec& from, const topology::Spec& to, PlacedBy placed_by) {
  const Result<SnapshotPtr> a =
      Snapshot::compile({.spec = from, .factors = {}, .fence = {}, .resize = {}}, {});
  if (!a) return std::unexpected(a.error());
  const Result<SnapshotPtr> b = Snapshot::compile({.spec = to, .factors = {}, .fence = {}, .resize = {}}, {});
  if (!b) return std::unexpected(b.error());

  std::map<std::string, topology::Member> members;
  for (const topology::Member& member : from.members) members.emplace(member.id, member);
  for (const topology::Member& member : to.members) members.emplace(member.id, member);
  Census census;
  for (const auto& [id, member] : members) {
    const auto keys = scan_all(member);
    if (!keys) return std::unexpected(keys.error());
    census.by_member[id] = keys->size();
    census.keys_total += keys->size();
    for (const std::string& key : *keys) {
      const std::string_view before = owner(**a, key);
      const std::string_view after = owner(**b, key);
      if (before != after) ++census.keys_minimum;
      if ((placed_by == PlacedBy::from ? before : after) != id) ++census.misplaced;
    }
  }
  return census;
}

}  // namespace ringshift::drill
