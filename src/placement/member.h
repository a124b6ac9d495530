// What a placement knows of a member.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::placement {

using MemberIndex = std::uint32_t;
inline constexpr MemberIndex kNoMember = ~MemberIndex{0};
// A ring's index has 15 bits for a member: two lists of topology::kMaxMembers fit, as a resize needs.
inline constexpr MemberIndex kMaxMemberIndex = (MemberIndex{1} << 15) - 1;

struct Member {
  std::string_view id;  // Read while a placement is built, not kept.
  double weight = 1.0;
  MemberIndex index = 0;  // What owner() answers for this member.
};

}  // namespace ringshift::placement
