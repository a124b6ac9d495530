#include "admin/series.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringshift::admin {
namespace {

bool at_rest(const std::string& state) { return state == "idle" || state == "finished" || state == "failed"; }

}  // namespace

std::optional<double> share_done(const resize::ResizeStatus& status) {
  if (status.state == "idle" || status.state == "failed") return std::nullopt;
  if (status.state == "finished") return 1.0;
  if (status.keys_to_move == 0) return std::nullopt;
  return std::clamp(static_cast<double>(status.keys_moved) / static_cast<double>(status.keys_to_move), 0.0,
                    1.0);
}

void Series::add(const SeriesPoint& point) {
  points_.push_back(point);
  while (points_.size() > kPoints) points_.pop_front();
}

std::size_t Series::follow(const resize::ResizeStatus& before, const resize::ResizeStatus& now, UnixMs at) {
  std::size_t added = 0;
  const auto mark = [&](const char* event, std::string text) {
    marks_.push_back({at, now.id, event, now.step, now.phase, std::move(text)});
    ++added;
  };
  const bool another = now.id != before.id && !now.id.empty();
  if (another || (at_rest(before.state) && !at_rest(now.state)))
    mark("begin", fmt::format("resize {} begins", now.id));
  if (now.state != before.state || another) {
    if (now.state == "paused") mark("pause", "paused");
    if (before.state == "paused" && !another && now.state == "running") mark("resume", "goes on");
    if (now.state == "rolling_back") {
      mark("rollback", now.aborted.empty() ? "rolling back" : fmt::format("rolling back: {}", now.aborted));
    }
    // A short resize may begin and end between two looks: what was seen of it is its end.
    if (now.state == "finished" && (another || !at_rest(before.state)))
      mark("finished", now.rolled_back ? "rolled back" : "finished");
    if (now.state == "failed" && (another || !at_rest(before.state)))
      mark("failed", fmt::format("failed: {}", now.last_error));
  }
  if (!at_rest(now.state) && !now.phase.empty() &&
      (now.phase != before.phase || now.step != before.step || another))
    mark("phase", fmt::format("step {} of {}: {}", now.step, now.steps, now.phase));
  while (marks_.size() > kMarks) marks_.pop_front();
  return std::min(added, marks_.size());
}

}  // namespace ringshift::admin
