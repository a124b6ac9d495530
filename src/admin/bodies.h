// The bodies of requests, read strictly: an unknown field, a wrong type and a value out of its bounds are
// refused by name. Pure.
//
// Errors are `invalid`, and begin with the field's name and a colon.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/ring_view.h"
#include "plan/edit.h"
#include "resize/ask.h"
#include "resize/plan_figures.h"
#include "ringshift/topology.h"

namespace ringshift::admin {

inline constexpr std::size_t kBodyBytesMax = 1U << 20;
inline constexpr std::size_t kListMax = 1000;

// What shall follow the spec in force; exactly one of them.
struct Change {
  std::optional<topology::Spec> spec;
  std::optional<plan::Edit> edit;
  std::optional<std::string> topology;  // A revision of the history.
};

struct StartBody {
  Change change;
  resize::StartWords words;
  std::string if_version;
  bool live = true;  // plan
  resize::GivenFigures figures;
  double weight = 0;                      // weight
  std::vector<topology::Member> members;  // add
};
enum class StartKind {
  start,
  plan,
  add,
  weight,
  member
};  // Which fields it may have. member: drain, remove, restore.
// An empty text is an empty object where nothing is required.
[[nodiscard]] Result<StartBody> parse_start_body(std::string_view text, StartKind kind);

// The bodies of rate, big-keys and lost, as the request that they make.
[[nodiscard]] Result<resize::Request> parse_rate_body(std::string_view text);
[[nodiscard]] Result<resize::Request> parse_big_keys_body(std::string_view text);
[[nodiscard]] Result<resize::Request> parse_lost_body(std::string_view text);
// pause, resume, rollback: nothing, or an empty object.
[[nodiscard]] Status parse_empty_body(std::string_view text);

[[nodiscard]] Result<RouteQuestion> parse_route_body(std::string_view text);

}  // namespace ringshift::admin
