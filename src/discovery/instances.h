// What all sources do with what they saw: judge each instance, sort the list, tell changes once.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/source.h"

namespace ringshift::discovery {

inline constexpr std::size_t kInstancesMax = 16'384;  // As many as a cluster has members.
inline constexpr std::size_t kLabelsMax = 64;  // Of an instance; more are left out, the last ones by name.
inline constexpr std::size_t kLabelBytesMax = 256;  // Of a name or a value; longer ones are left out.

[[nodiscard]] std::string_view to_string(InstanceState state) noexcept;
[[nodiscard]] std::optional<InstanceState> parse_state(std::string_view text) noexcept;

// "" when id, address and protocol are such as a member's; else what is wrong.
[[nodiscard]] std::string check_instance(const Instance& instance);
// Whether it may be a label's name or value: printable ASCII, within the bound.
[[nodiscard]] bool is_label_text(std::string_view text);
// Adds a label that is within bounds and printable; others are left out.
void add_label(Instance& instance, std::string_view name, std::string_view value);

// Sorts by id. What makes the list unusable: an instance that is none, an id or an address twice, too many.
[[nodiscard]] std::optional<std::string> sort_and_check(std::vector<Instance>& all);

// An answer of a source where others write: what is no instance is left out and told.
struct Seen {
  std::vector<Instance> all;
  std::vector<std::string> left_out;  // Why, at most kToldMax of them.
  static constexpr std::size_t kToldMax = 4;

  void add(Instance instance);  // Or leave_out() what check_instance() refuses.
  void leave_out(std::string why);
};

// host:port, with brackets around an IPv6 address.
[[nodiscard]] std::string join_address(std::string_view host, std::uint16_t port);

// Between a source and its sink: equal lists are told once, but again after trouble, so that the sink knows
// that it is over. The source's thread alone.
class Teller {
 public:
  explicit Teller(Sink& sink) : sink_(sink) {}
  // False, and trouble told, when the list is unusable.
  bool saw(Seen seen);
  void trouble(const Error& why);

 private:
  Sink& sink_;
  std::optional<std::vector<Instance>> told_;
  std::string warned_;  // What was left out at the last telling.
  bool troubled_ = false;
};

}  // namespace ringshift::discovery
