// How a resize looks to people: a status in words, a picture that is redrawn in place on a terminal, and
// following one until it ends.
#pragma once
#include <string>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "resize/status.h"

namespace ringshift::cli {

// Lines of text, each with its end.
[[nodiscard]] std::string describe(const resize::ResizeStatus& status);

// For a terminal of `width` columns: progress, rates, pairs, what it waits for. At most kPictureLines lines.
inline constexpr std::size_t kPictureLines = 24;
[[nodiscard]] std::vector<std::string> picture(const resize::ResizeStatus& status, std::size_t width);

// Until it ends; kDone, or kFailed when it failed. On a terminal a picture; else a line for each change.
// `replaced`: the id of the resize that is rolled back first, for another one; "" if none is.
[[nodiscard]] int follow_resize(coord::Coordinator& coordinator, const coord::ClusterKeys& keys, bool json,
                                const std::string& replaced = "");

}  // namespace ringshift::cli
