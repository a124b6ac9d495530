// Topologies as commands get them from files.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "discovery/options.h"
#include "ringshift/discovery.h"
#include "ringshift/snapshot.h"

namespace ringshift::cli {

// The whole file; "-" is standard input. Bounded: a file that no topology can be is refused unread.
[[nodiscard]] Result<std::string> read_text(const std::string& path);
[[nodiscard]] Result<topology::Spec> read_spec(const std::string& path);

// The spec's `discovery`, judged to the last field of its source; nullopt when it has none. `place`: the
// file.
[[nodiscard]] Result<std::optional<topology::DiscoverySpec>> discovery_of_text(std::string_view text,
                                                                               std::string_view place);
// The source's words as src/discovery reads them; nothing is asked. `place`: before the field in an error.
[[nodiscard]] Result<discovery::Options> source_options(const topology::DiscoverySource& words,
                                                        std::string_view place);

// The file's spec as a topology of version 0.1: a static cluster.
[[nodiscard]] Result<std::shared_ptr<const topology::Snapshot>> load_spec_snapshot(const std::string& path);

}  // namespace ringshift::cli
