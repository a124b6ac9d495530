// What holds a resize back, and what is written down: soak and window, conditions that roll it back by
// themselves, rates, the start that waits for a rollback, and the log of decisions.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "resize/leader.h"
#include "resize/lost.h"

namespace ringshift::resize {

using base::LogLevel;
using coord::KeyValue;
using coord::Op;

namespace {
constexpr std::size_t kRemovalsPerWrite = 100;  // etcd takes 128 in a transaction.
}  // namespace

topology::Limits Leader::limits_now() const {
  topology::Limits limits = topology_->spec.limits;
  if (checkpoint_->keys_per_second != 0) limits.move_keys_per_second = checkpoint_->keys_per_second;
  if (checkpoint_->bytes_per_second != 0) limits.move_bytes_per_second = checkpoint_->bytes_per_second;
  return limits;
}

// --- soak and window --------------------------------------------------------------------------------------

// Why no step may begin now: "" when one may. A rollback waits for nothing but a pause: it is how an
// operator, or a broken condition, gets out. A slice in HOLD never waits either (drive() does not ask then),
// since its commands do.
std::string Leader::waits_for() const {
  if (checkpoint_->paused) return "pause";
  if (checkpoint_->rollback || topology_->resize->rollback) return "";
  const UnixMs now = unix_now();
  if (!is_open(checkpoint_->window, now)) return "window";
  // A clock that was put back must not make a soak longer than it was asked for.
  const bool soaks =
      now < checkpoint_->soak_until && checkpoint_->soak_until - now <= checkpoint_->soak.count();
  if (soaks && topology_->resize->phase == topology::Phase::prep) return "soak";
  return "";
}

// Whether the mover must stand still. A step in DUAL that waits is as safe as one that is paused: routers
// serve every key, from where it is, for as long as it takes.
bool Leader::mover_rests() const {
  const std::string reason = waits_for();
  return reason == "pause" || reason == "window";
}

// With the publication that ends a step, in one transaction.
void Leader::begin_soak(const topology::Topology& settled) {
  checkpoint_->soak_until = 0;
  const bool last = next_step(checkpoint_->steps, settled.resize->done) == checkpoint_->steps.size();
  if (checkpoint_->soak.count() == 0 || last || settled.resize->rollback) return;
  checkpoint_->soak_until = unix_now() + checkpoint_->soak.count();
}

// "resume": ends a pause, or else whatever else the resize waits for.
Status Leader::go_on(const std::string& by) {
  const std::string reason = waits_for();
  checkpoint_->paused = false;
  if (reason == "soak") checkpoint_->soak_until = 0;
  if (reason == "window") checkpoint_->window = {};
  Status saved = save_checkpoint();
  if (saved) {
    note("resume",
         reason == "soak"     ? "the rest of the soak is skipped"
         : reason == "window" ? "goes on from now, without its window"
                              : "goes on",
         by);
  }
  return saved;
}

// --- conditions -------------------------------------------------------------------------------------------

// From the first step on, about once a second, also while the resize is paused or soaks. True when it has
// just decided to roll back: the checkpoint says so then, and drive() does it next.
Result<bool> Leader::conditions_broken() {
  if (checkpoint_->abort_if.empty() || !checkpoint_->opened) return false;
  if (checkpoint_->rollback || topology_->resize->rollback) return false;
  if (!abort_watch_.due(std::chrono::steady_clock::now())) return false;
  const bool looked = abort_watch_.look(std::chrono::steady_clock::now(), view_.under(keys_.routers()),
                                        view_.get(keys_.origin()), checkpoint_->abort_if);
  if (!looked || abort_watch_.broken().empty()) return false;
  // Keys of a lost member that were given up cannot go back.
  if (Status back = check_back(*topology_, checkpoint_->lost, checkpoint_->opened); !back) {
    note_error(abort_watch_.broken() + ", but: " + back.error().message);
    return false;
  }
  checkpoint_->aborted = "aborted: " + abort_watch_.broken();
  checkpoint_->rollback = true;
  checkpoint_->paused = false;
  base::log(LogLevel::warning, "resize {}: {}; rolling back", topology_->resize->id, checkpoint_->aborted);
  if (Status saved = save_checkpoint(); !saved) return std::unexpected(saved.error());
  note("abort", checkpoint_->aborted + "; rolling back");
  return true;
}

// --- change of mind ---------------------------------------------------------------------------------------

// A start with `replace` while a resize runs: this one is rolled back, and the new one waits in the registry
// for that, so that whoever leads then starts it. It is checked here as far as it can be: against what the
// rollback leads back to.
Status Leader::replace_running(const Request& request) {
  if (Status checked = check_start(request); !checked) return checked;
  if (const Result<Checkpoint> controls = controls_of(request); !controls) {
    return std::unexpected(controls.error());
  }
  if (Status back = check_back(*topology_, checkpoint_->lost, checkpoint_->opened); !back) return back;
  checkpoint_->rollback = true;
  checkpoint_->paused = false;
  if (Status written = write({checkpoint_op(), {Op::Kind::put, keys_.next(), to_json(request), 0}});
      !written) {
    return written;
  }
  queued_ = true;
  note("replace",
       fmt::format("rolls back, then starts the change to {} members and {}", request.spec->members.size(),
                   request.spec->placement.algorithm),
       request.by);
  return {};
}

Status Leader::start_next() {
  const auto kv = coordinator_.get(keys_.next());
  if (!kv) return std::unexpected(kv.error());
  queued_ = false;
  if (!*kv) return {};
  Result<Request> request = parse_request((*kv)->value);
  Status started = request ? start(*request, keys_.next()) : std::unexpected(request.error());
  if (started) return {};
  if (started.error().kind == ErrorKind::stale) {
    queued_ = true;
    return started;
  }
  if (!topology_->resize) checkpoint_.reset();
  status_.last_error = "the resize that was to follow is refused: " + started.error().message;
  base::log(LogLevel::warning, "{}", status_.last_error);
  if (Status removed = write({{Op::Kind::remove, keys_.next(), "", 0}}); !removed) {
    queued_ = true;
    return removed;
  }
  note("refused", started.error().message, request ? request->by : "");
  tell(true);
  return {};
}

// --- the log ----------------------------------------------------------------------------------------------

// Ops that append an entry to the log of the resize under way, or else of the last one. Empty when the
// registry does not say how long that log is: an entry is not worth the resize.
std::vector<Op> Leader::log_ops(std::string event, std::string text, std::string by) {
  std::string id = topology_ && topology_->resize ? topology_->resize->id : status_.id;
  if (id.empty()) id = "0-0";
  return log_ops_of(id, std::move(event), std::move(text), std::move(by));
}

std::vector<Op> Leader::log_ops_of(const std::string& id, std::string event, std::string text,
                                   std::string by) {
  if (id != log_id_) {
    const Result<coord::Range> there = coordinator_.list(keys_.log() + id + "/");
    if (!there) return {};
    log_id_ = id;
    log_number_ = there->kvs.empty() ? 0 : place_of_decision(keys_, there->kvs.back().key).number + 1;
  }
  if (text.size() > kDecisionTextMax) text = text.substr(0, kDecisionTextMax) + "...";
  std::vector<Op> ops = {{Op::Kind::put, decision_key(keys_, id, log_number_),
                          to_json(Decision{unix_now(), std::move(event), std::move(text), std::move(by)}),
                          0}};
  if (log_number_ >= kDecisionsKept) {
    ops.push_back({Op::Kind::remove, decision_key(keys_, id, log_number_ - kDecisionsKept), "", 0});
  }
  ++log_number_;
  return ops;
}

// Best effort: what cannot be written now is in the process's own log.
void Leader::note(std::string event, std::string text, std::string by) {
  std::vector<Op> ops = log_ops(std::move(event), std::move(text), std::move(by));
  if (!ops.empty()) static_cast<void>(write(std::move(ops)));
}

// The same failure comes again with each try; the log tells it once.
void Leader::note_error(const std::string& message) {
  if (!topology_ || !topology_->resize || message == error_noted_) return;
  error_noted_ = message;
  note("error", message);
}

Status Leader::trim_logs() {
  const Result<coord::Range> range = coordinator_.list(keys_.log());
  if (!range) return std::unexpected(range.error());
  std::set<std::string, OldestResizeFirst> ids;
  for (const KeyValue& kv : range->kvs) ids.insert(place_of_decision(keys_, kv.key).resize_id);
  std::vector<Op> removals;
  for (const KeyValue& kv : range->kvs) {
    if (ids.size() <= kResizesLogged || removals.size() == kRemovalsPerWrite) break;
    const auto first_kept = std::prev(ids.end(), static_cast<std::ptrdiff_t>(kResizesLogged));
    if (OldestResizeFirst{}(place_of_decision(keys_, kv.key).resize_id, *first_kept)) {
      removals.push_back({Op::Kind::remove, kv.key, "", 0});
    }
  }
  return removals.empty() ? Status{} : write(std::move(removals));
}

}  // namespace ringshift::resize
