// The spec's `discovery`: read from the spec's text beside what routers need, kept in the registry under a
// key of its own as JSON, and judged. Pure.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ringshift/discovery.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::topology {

inline constexpr std::size_t kMaxDiscoveryRules = 256;  // Patterns, networks and rules, of each.
inline constexpr auto kSourceKinds =
    std::to_array<std::string_view>({"static", "file", "dns", "registry", "consul", "nacos", "kubernetes"});
// Beside `kind`. REQUIRES: one of kSourceKinds.
[[nodiscard]] std::span<const std::string_view> source_fields(std::string_view kind);

// Of a whole spec, whose other fields are not looked at: nullopt when it has none.
[[nodiscard]] Result<std::optional<DiscoverySpec>> discovery_of_spec(std::string_view text,
                                                                     std::string_view place);
// The block alone, as the registry has it.
[[nodiscard]] Result<DiscoverySpec> parse_discovery(std::string_view json, std::string_view place);
[[nodiscard]] std::string to_json(const DiscoverySpec& spec);  // Canonical.

[[nodiscard]] DiscoverySpec read_discovery(Reader& reader, const Node& node, const std::string& path);
[[nodiscard]] std::optional<Problem> check_discovery(const DiscoverySpec& spec, const std::string& path);

}  // namespace ringshift::topology
