// A step in DUAL: the mover at work, what ends it, and members whose stamps are gone meanwhile (RESIZE.md,
// "Phases").
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "resize/leader.h"
#include "resize/lost.h"
#include "ringshift/snapshot.h"
#include "transfer/faults.h"
#include "transfer/steps.h"

namespace ringshift::resize {

using base::LogLevel;
using topology::Member;
using topology::Topology;

namespace {

constexpr std::chrono::milliseconds kMoverTick{100};
constexpr std::chrono::milliseconds kStampCheck{1000};
constexpr std::chrono::milliseconds kProgressSave{2000};
constexpr double kReadOrderKeysMin = 1000;  // Not worth a topology for fewer.

void add(Checkpoint& checkpoint, const Mover::Progress& progress) {
  checkpoint.keys_moved += progress.moved;
  checkpoint.bytes_moved += progress.bytes;
  for (const auto& [pair, moved] : progress.pairs) checkpoint.pairs[pair].moved += moved;
  for (const auto& [pair, bytes] : progress.pair_bytes) checkpoint.pairs[pair].bytes += bytes;
  checkpoint.big_keys.insert(progress.big_keys.begin(), progress.big_keys.end());
  checkpoint.keys_verified += progress.verified;
}

// A member that reads its file after a restart, or is a replica until a failover is complete: nothing that a
// person has to resume.
bool ends_by_itself(const std::string& error) {
  return error.find(": LOADING ") != std::string::npos || error.find(": READONLY ") != std::string::npos ||
         error.find(": MASTERDOWN ") != std::string::npos;
}

}  // namespace

// DUAL: the mover works until nothing is left; then the gate closes, and only then NEW is published (I10).
Status Leader::move() {
  if (mover_rests()) {
    static_cast<void>(
        view_.wait(kPausedTick, [this] { return request_waits() || spec_waits() || !may_lead_(); }));
    return spec_waits() ? Status{} : check_stamps();
  }
  if (checkpoint_->expire && !topology_->resize->rollback) {  // What goes back is moved back.
    const Result<bool> over = step_expired();
    if (!over) return std::unexpected(over.error());
    if (!*over) return check_stamps();
    if (checkpoint_->rest == "drop") return drop_rest();
  }
  const topology::Version version{coord::kRegistryEpoch, static_cast<std::uint64_t>(topology_revision_)};
  auto snapshot = topology::Snapshot::compile(*topology_, version);
  if (!snapshot) return std::unexpected(snapshot.error());
  auto mover = std::make_unique<Mover>(*snapshot, mover_options());
  steer(*mover, true);
  Result<bool> stamps_good = true, broken = false;
  Status read_order;
  while (!mover->wait(kMoverTick)) {
    progress_ = mover->progress();
    note_progress(progress_);
    tell(false);
    save_progress_now_and_then();
    steer(*mover);
    if (!stamps_good || *stamps_good) stamps_good = repair_stamps();
    // A member that does not answer has nothing moved to it or from it, and the mover tries for a while. The
    // others' keys go on: each transfer looks at the stamp itself.
    if (!stamps_good) status_.last_error = stamps_good.error().message;
    if (read_order) read_order = switch_read_order();
    if (broken && !*broken) broken = conditions_broken();
    if (request_waits() || spec_waits() || !may_lead_() || (stamps_good && !*stamps_good) || !read_order ||
        !broken || *broken || mover_rests())
      mover->stop();
  }
  const Mover::Outcome outcome = mover->outcome();
  const std::string error = mover->error();
  progress_ = mover->progress();
  note_progress(progress_);
  status_.rate_in_force = 0;
  status_.held_back.clear();
  mover.reset();  // Its connections are ours by name: it must be gone before any barrier.
  if (Status saved = book_progress(); !saved) return saved;
  if (!read_order) return read_order;
  if (!broken) return std::unexpected(broken.error());
  if (!stamps_good) return std::unexpected(stamps_good.error());
  if (!*stamps_good) return hold_again();
  return after_mover(outcome, error);
}

Status Leader::book_progress() {
  add(*checkpoint_, progress_);
  progress_ = {};
  return save_checkpoint();
}

// While a mover works, so that the next leader knows what this one moved. Only figures: a failure does not
// matter.
void Leader::save_progress_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (now - progress_saved_at_ < kProgressSave) return;
  progress_saved_at_ = now;
  Checkpoint so_far = *checkpoint_;
  add(so_far, progress_);
  static_cast<void>(
      write({{coord::Op::Kind::put, keys_.checkpoints() + topology_->resize->id, to_json(so_far), 0}}));
}

// Once most of a step's keys have moved, a read asks NEW first, so that most reads still take one round trip.
Status Leader::switch_read_order() {
  const topology::Resize& resize = *topology_->resize;
  if (resize.read_order == topology::ReadOrder::new_first || resize.rollback) return {};
  const double share = static_cast<double>(topology::count(resize.active)) / topology::kSliceCount;
  const double expected = static_cast<double>(checkpoint_->keys_to_move) * share;
  if (expected < kReadOrderKeysMin || static_cast<double>(progress_.moved) < expected / 2) return {};
  Topology next = *topology_;
  next.resize->read_order = topology::ReadOrder::new_first;
  return publish(std::move(next));
}

Status Leader::after_mover(Mover::Outcome outcome, const std::string& error) {
  switch (outcome) {
    case Mover::Outcome::clean:
      transfer::crash_point("mover_clean");
      if (transfer::broken(transfer::Fault::no_gate)) return end_step();
      return close_gates();
    case Mover::Outcome::big_keys:
      return after_big_keys();
    case Mover::Outcome::stopped:
      return {};
    case Mover::Outcome::gated:
      return after_a_gate();
    case Mover::Outcome::restarted:
      stamps_checked_at_ = {};
      return check_stamps();
    case Mover::Outcome::mismatched:
    case Mover::Outcome::failed:
      if (ends_by_itself(error)) return fail(ErrorKind::retryable, error);
      // A member refuses (for example out of memory). The keys are safe where they are; a person must look.
      status_.last_error = error + "; paused: mend it, then 'ringshift resize resume'";
      checkpoint_->paused = true;
      note("pause", status_.last_error);
      return save_checkpoint();
    case Mover::Outcome::unreachable:
      return fail(ErrorKind::retryable, error);
  }
  return {};
}

// REQUIRES: nothing of the active slices is left on OLD.
Status Leader::close_gates() {
  const Status closed = members_.set_stamps(living_members(*topology_), topology_->fence, Gate::done);
  if (!closed) return closed;
  transfer::crash_point("gates_done");
  status_.last_error.clear();
  return end_step();
}

// A destination refused the mover. Its stamp is gone, or the gates began to close for good and not all of it
// was done: a leader died, a member did not answer. They close only after a mover that found nothing left,
// and OLD, which has not restarted since, only shrinks: so they may close now.
Status Leader::after_a_gate() {
  stamps_checked_at_ = {};
  const Result<bool> good = repair_stamps();
  if (!good) return std::unexpected(good.error());
  if (!*good) return hold_again();
  for (const Member& member : destinations()) {
    const Result<std::string> stamp = members_.stamp(member);
    if (!stamp) return std::unexpected(stamp.error());
    if (*stamp == transfer::done_stamp(topology_->fence, member.id)) return close_gates();
  }
  return {};
}

// REQUIRES: the gates are closed for good (I10).
Status Leader::end_step() {
  const std::string step = step_name();
  step_ended_at_ = std::chrono::steady_clock::now();
  Topology settled = settle(*topology_);
  begin_soak(settled);
  if (Status published = publish(std::move(settled), {checkpoint_op()}); !published) return published;
  transfer::crash_point("new_published");
  std::string text = fmt::format("{}: done, {} keys moved so far", step, checkpoint_->keys_moved);
  if (step_began_ != std::chrono::steady_clock::time_point{})
    text +=
        fmt::format(", took {:.1f} s",
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - step_began_).count());
  if (checkpoint_->soak_until != 0) text += "; soaks for " + duration_text(checkpoint_->soak);
  note("phase", text);
  return {};
}

// "step 2/4", or "rollback".
std::string Leader::step_name() const {
  if (topology_->resize->rollback) return "rollback";
  return fmt::format("step {}/{}", next_step(checkpoint_->steps, topology_->resize->done) + 1,
                     checkpoint_->steps.size());
}

// A member that restarted lost its stamp, or brought an old one back from a dump; one that evicts may have
// lost it, too. Transfers stop there by themselves, and the slices go back through HOLD.
Status Leader::check_stamps() {
  const Result<bool> good = repair_stamps();
  if (!good) return std::unexpected(good.error());
  return *good ? Status{} : hold_again();
}

Status Leader::hold_again() {
  base::log(LogLevel::warning, "a member restarted, or lost its stamp, during the resize: back through HOLD");
  note("phase", "a member restarted, or lost its stamp: back through hold");
  Result<RunIds> run_ids = members_.run_ids(living_members(*topology_));
  if (!run_ids) return std::unexpected(run_ids.error());
  return hold_and_open(hold(*topology_, topology_->resize->active, std::move(*run_ids)));
}

// False when a member restarted or lost its stamp: to open a gate where nothing says that the step is not
// over would let a late RESTORE in after NEW (I10). Only a gate that is closed is opened again. At most once
// a second.
Result<bool> Leader::repair_stamps() {
  const auto now = std::chrono::steady_clock::now();
  if (now - stamps_checked_at_ < kStampCheck) return true;
  stamps_checked_at_ = now;
  const Result<RunIds> run_ids = members_.run_ids(living_members(*topology_));
  if (!run_ids) return std::unexpected(run_ids.error());
  if (*run_ids != topology_->fence.run_ids) return false;
  for (const Member& member : destinations()) {
    const Result<std::string> stamp = members_.stamp(member);
    if (!stamp) return std::unexpected(stamp.error());
    if (*stamp == transfer::open_stamp(topology_->fence, member.id)) continue;
    // A leader died between closing the gates and publishing NEW: nothing is left to move.
    if (*stamp == transfer::done_stamp(topology_->fence, member.id)) continue;
    if (*stamp != transfer::closed_stamp(topology_->fence, member.id)) return false;
    base::log_fields(LogLevel::warning, {{"member", member.id}}, "member {}: stamp '{}' set again", member.id,
                     *stamp);
    if (Status set = members_.set_stamps({member}, topology_->fence, Gate::open); !set) {
      return std::unexpected(set.error());
    }
  }
  return true;
}

}  // namespace ringshift::resize
