// Topologies as commands get them from files.
#pragma once
#include <memory>
#include <string>

#include "ringshift/snapshot.h"

namespace ringshift::cli {

// The whole file; "-" is standard input. Bounded: a file that no topology can be is refused unread.
[[nodiscard]] Result<std::string> read_text(const std::string& path);
[[nodiscard]] Result<topology::Spec> read_spec(const std::string& path);

// The file's spec as a topology of version 0.1: a static cluster.
[[nodiscard]] Result<std::shared_ptr<const topology::Snapshot>> load_spec_snapshot(const std::string& path);

}  // namespace ringshift::cli
