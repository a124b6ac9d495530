// Options of `ringshift resize start` for members that are lost, keys that run out instead of being moved,
// big keys and checked copies; and the command `ringshift resize lost`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "resize/ask.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

struct MoreResizeFlags;

// Adds --lost, --origin-budget, --mode, --move-rest, --drop, --deadline, --big-keys and --verify to `start`.
[[nodiscard]] std::shared_ptr<MoreResizeFlags> add_more_start_options(CLI::App& start);
// Puts them into the words of a start.
void complete_start(const MoreResizeFlags& flags, resize::StartWords& words);
// What `resize status` says of them.
void add_more_notes(const resize::ResizeStatus& status, std::vector<std::string>& lines);

void add_resize_lost(CLI::App& resize);

}  // namespace ringshift::cli
