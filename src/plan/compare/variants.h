// The placements that are compared side by side: each of ours and each peer's, as they are used when nobody
// says otherwise, and the published articles' rings.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::plan::compare {

enum class Family { yours, ours, peer, article };  // yours: the spec's that was given.
[[nodiscard]] std::string_view to_string(Family family) noexcept;

struct Variant {
  std::string name;
  topology::Placement placement;
  Family family = Family::ours;
};

// Of this build, in the order in which they are shown. `hash_tag` is set where a placement has one.
[[nodiscard]] std::vector<Variant> default_variants(const std::string& hash_tag = {});

// Of `all` those whose name is in `names`, or which are `ours`, `peers`, `articles` or `all`, in the order of
// `all`. Fails on a name that is not there, and lists them.
[[nodiscard]] Result<std::vector<Variant>> choose(const std::vector<Variant>& all,
                                                  std::span<const std::string> names);

// The variant's spec for these members, before any change; `tokens` get theirs dealt evenly.
[[nodiscard]] topology::Spec first_spec(const Variant& variant, const std::vector<topology::Member>& members);

}  // namespace ringshift::plan::compare
