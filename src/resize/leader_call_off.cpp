// A HOLD that does not come about: its keys go back to where they are served, for a while at least.
#include <fmt/format.h>

#include "base/log.h"
#include "resize/leader.h"

namespace ringshift::resize {

namespace {
// While a HOLD is tried its keys' commands wait for as long as the fence timeout. So often in a row it is
// tried, and in between clients are served for this many times as long.
constexpr std::size_t kHoldsInARow = 5;
constexpr int kRestByHold = 2;
}  // namespace

// REQUIRES: nothing of the slices in HOLD has moved. What keeps a HOLD from ending and does not pass is a
// router that hangs while a member refuses CLIENT KILL: only a person can end that.
Status Leader::call_off_hold(const std::string& why) {
  const std::string step = step_name();
  if (++holds_called_off_ >= kHoldsInARow) {
    status_.last_error =
        fmt::format("{}: hold was called off {} times: {}; paused: mend it, then 'ringshift resize resume'",
                    step, holds_called_off_, why);
    checkpoint_->paused = true;
    holds_called_off_ = 0;
  }
  if (Status off = publish(call_off(*topology_), {checkpoint_op()}); !off) return off;
  if (checkpoint_->paused) {
    base::log(base::LogLevel::error, "resize {}: {}", topology_->resize->id, status_.last_error);
    note("pause", status_.last_error);
    return {};
  }
  note("phase", "hold called off: " + why);
  base::log(base::LogLevel::warning, "resize {}: hold called off: {}", topology_->resize->id, why);
  status_.last_error = why;
  note_error(why);
  tell(true);
  static_cast<void>(view_.wait(options_.fence_timeout * kRestByHold,
                               [this] { return request_waits() || spec_waits() || !may_lead_(); }));
  return {};
}

}  // namespace ringshift::resize
