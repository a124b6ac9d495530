// Where a cluster's instances are found, and which of them become members: the spec's `discovery`. It says
// who may join and who must leave, never where a key is: routers do not read it, and a change of it moves
// nothing.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringshift::topology {

// The source of instances. `options`: the kind's own fields (docs/spec.md); a text, number or flag is a list
// of one.
struct DiscoverySource {
  std::string kind;  // static|file|dns|registry|consul|nacos|kubernetes
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  // "" when the field is absent.
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto found = options.find(name);
    return found == options.end() || found->second.empty() ? "" : found->second.front();
  }
  bool operator==(const DiscoverySource&) const = default;
};

// Which instances may become members at all. Of each list one must fit; an empty one fits all.
struct DiscoveryMatch {
  std::vector<std::string> ids;        // Patterns with '*' and '?'.
  std::vector<std::string> addresses;  // "10.0.0.0/8", "fd00::/8", a host name's pattern, or "unix:/path/*".
  std::string name_space;              // What the instance's label `namespace` must be; "" for any.
  bool operator==(const DiscoveryMatch&) const = default;
};

// What a member gets that no instance may say of itself. The first rule that fits and says something of a
// field decides that field.
struct DiscoveryAssign {
  std::string ids = "*";         // A pattern.
  std::optional<double> weight;  // Else 1.
  std::string zone, host;        // "": not said.
  std::string label, as;         // The instance's label of this name becomes `as`: zone or host.
  bool operator==(const DiscoveryAssign&) const = default;
};

// When a member whose instance is gone leaves by itself.
struct DiscoveryRemove {
  std::chrono::milliseconds after{0};  // 0: never.
  std::uint32_t at_most = 1;           // So many members gone at once are taken out; with more, nobody is.
  std::uint32_t floor = 1;             // Never fewer members than these.
  bool operator==(const DiscoveryRemove&) const = default;
};

struct DiscoverySpec {
  DiscoverySource source;
  bool admit_auto = false;  // admit: auto. Else an operator admits each candidate.
  DiscoveryMatch match;
  std::vector<DiscoveryAssign> assign;
  std::chrono::milliseconds cooldown{
      std::chrono::minutes(10)};  // Between two changes that are made by policy.
  DiscoveryRemove remove;
  // Whether the next members take the keys of one that is gone. Not said: where consistency is none.
  std::optional<bool> eject;
  bool operator==(const DiscoverySpec&) const = default;
};

}  // namespace ringshift::topology
