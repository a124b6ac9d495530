#include "plan/compare/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/encoding.h"
#include "topology/validate.h"

namespace ringshift::plan::compare {
namespace {

using topology::Member;

constexpr std::size_t kShown = 80;  // Bytes of an argument that a message repeats.

std::string shown(std::string_view text) { return "'" + base::printable(text, kShown) + "'"; }

std::optional<std::pair<std::string, std::string>> split(const std::string& edit) {
  const auto equals = edit.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == edit.size()) return std::nullopt;
  return std::pair{edit.substr(0, equals), edit.substr(equals + 1)};
}

Error unknown(std::string_view verb, const std::string& id, const std::vector<Member>& members) {
  constexpr std::size_t kListed = 8;
  std::string known;
  for (std::size_t i = 0; i < std::min(kListed, members.size()); ++i)
    known += (i == 0 ? "" : ", ") + members[i].id;
  if (members.size() > kListed) known += ", ...";
  return {ErrorKind::invalid, fmt::format("--{}: {} is no member: there are {}", verb, shown(id), known)};
}

}  // namespace

std::vector<Member> synthetic_members(std::size_t count) {
  constexpr std::size_t kByte = 256;
  std::vector<Member> members;
  members.reserve(count);
  for (std::size_t i = 1; i <= count; ++i) {
    Member member;
    member.id = fmt::format("cache-{}", i);
    member.address = fmt::format("10.{}.{}.{}:6379", i / kByte / kByte, i / kByte % kByte, i % kByte);
    members.push_back(std::move(member));
  }
  return members;
}

Result<std::vector<Member>> apply(const Edits& edits, std::vector<Member> members) {
  for (const std::string& id : edits.remove) {
    const auto found = std::ranges::find(members, id, &Member::id);
    if (found == members.end()) return std::unexpected(unknown("remove", id, members));
    members.erase(found);
  }
  for (const std::string& edit : edits.reweight) {
    const auto parts = split(edit);
    double weight = 0;
    const auto number =
        parts ? std::from_chars(parts->second.data(), parts->second.data() + parts->second.size(), weight)
              : std::from_chars_result{};
    if (!parts || number.ec != std::errc() || number.ptr != parts->second.data() + parts->second.size() ||
        !(weight > 0) || weight > topology::kMaxWeight) {
      return fail(
          ErrorKind::invalid,
          fmt::format("--reweight: {} is not ID=WEIGHT with a number above 0 and at most {}: write for "
                      "example cache-1=2",
                      shown(edit), topology::kMaxWeight));
    }
    const auto found = std::ranges::find(members, parts->first, &Member::id);
    if (found == members.end()) return std::unexpected(unknown("reweight", parts->first, members));
    found->weight = weight;
  }
  for (const std::string& edit : edits.add) {
    const auto parts = split(edit);
    if (!parts) {
      return fail(ErrorKind::invalid, fmt::format("--add: {} is not ID=ADDRESS: write for example "
                                                  "cache-9=10.0.0.9:6379",
                                                  shown(edit)));
    }
    if (std::ranges::find(members, parts->first, &Member::id) != members.end()) {
      return fail(ErrorKind::invalid,
                  fmt::format("--add: {} is a member already: choose a new id", shown(parts->first)));
    }
    Member member;
    member.id = parts->first;
    member.address = parts->second;
    members.push_back(std::move(member));
  }
  return members;
}

std::unordered_set<std::string_view> unchanged_members(const Change& change) {
  std::unordered_map<std::string_view, const Member*> after;
  for (const Member& member : change.after) after[member.id] = &member;
  std::unordered_set<std::string_view> out;
  for (const Member& member : change.before) {
    const auto found = after.find(member.id);
    if (found == after.end()) continue;
    const Member& next = *found->second;
    if (next.weight == member.weight && next.address == member.address && next.label == member.label)
      out.insert(member.id);
  }
  return out;
}

}  // namespace ringshift::plan::compare
