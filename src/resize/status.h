// What operators ask of the controller and what it tells them: the JSON of the `request`, `status` and
// `checkpoint/` keys. `resize status --json` prints the status as it stands (DESIGN, section 9).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "resize/controls.h"
#include "ringshift/topology.h"

namespace ringshift::resize {

inline constexpr std::uint64_t kDefaultDeadlineSeconds = 3600;

struct Request {
  enum class Action { start, pause, resume, rollback, set_rate, big_keys, lost };
  std::string id;  // Chosen by the sender; the status answers to it.
  Action action = Action::start;
  std::optional<topology::Spec> spec;  // start
  std::vector<double> steps;           // start; empty means the default
  bool allow_foreign = false;          // start: clients that are not ours may stay connected.
  bool force = false;                  // start: more than half of the members may vanish.
  std::uint64_t keys_per_second = 0;   // start, set_rate; 0: as it is, or as the spec's limits say.
  std::uint64_t bytes_per_second = 0;  // start, set_rate; 0: likewise.
  std::chrono::milliseconds soak{0};   // start: between steps.
  std::string at, until;               // start: as make_window() takes them.
  std::string abort_if;                // start: as parse_conditions() takes it.
  bool replace = false;                // start: a resize under way is rolled back first.
  std::string by;                      // Who asks, for the log: "ann@host".
  // start: what becomes of keys above limits.big_key_bytes. "" means wait.
  std::string big_keys;             // move|wait|refuse
  std::uint64_t big_key_limit = 0;  // start with move, big_keys: up to which size they are moved; 0: any.
  std::string verify;               // start: counts|sample|all; "" means counts.
  std::vector<std::string> lost;    // start, lost: members that do not come back.
  std::uint64_t origin_budget = 0;  // start, lost: misses a second at which a step waits; 0: none does.
  bool expire = false;              // start: old copies run out where they are (--mode expire).
  std::string rest;                 // start, expire: "move" or "drop" what does not run out; "" refuses it.
  std::uint64_t deadline_seconds = kDefaultDeadlineSeconds;  // start, expire: longest wait of a step.
};
[[nodiscard]] std::string to_json(const Request& request);
[[nodiscard]] Result<Request> parse_request(std::string_view json);

struct PairProgress {
  std::string from, to;
  std::uint64_t moved = 0, bytes = 0;  // By the mover.
  std::uint64_t left = 0;              // An estimate: clients may move some of them.
};

struct WaitingKey {
  std::string key;  // For people: unprintable bytes are escaped, and its end is missing if it is long.
  std::uint64_t bytes = 0;
  std::string from, to;
  bool operator==(const WaitingKey&) const = default;
};

struct ResizeStatus {
  std::string state = "idle";         // idle|preparing|running|paused|rolling_back|finished|failed
  std::string id;                     // Of the resize.
  std::string version;                // Of the topology.
  std::uint64_t step = 0, steps = 0;  // step 1 is the first.
  std::string phase;                  // prep|hold|dual|new, or "" when idle.
  std::uint64_t keys_moved = 0, keys_to_move = 0, bytes_moved = 0;
  double keys_per_second = 0, eta_seconds = 0, hold_ms_max = 0;
  std::uint64_t fences = 0;  // Connections killed because their router did not acknowledge.
  std::vector<PairProgress> pairs;
  std::vector<std::string> big_keys;
  std::string last_error;
  bool rolled_back = false;               // With state finished: the cluster is as it was before.
  std::string request_id, request_error;  // The last request that was handled; "" when it was accepted.
  double rate_in_force = 0;            // Keys a second that the mover may move now; 0 when it does not work.
  std::vector<std::string> held_back;  // Why that is less than configured.
  std::uint64_t keys_verified = 0, retries = 0;
  std::uint64_t big_keys_waiting = 0;        // How many keys of this step are above the limit.
  std::vector<WaitingKey> waiting_big_keys;  // The first of them.
  std::vector<std::string> lost;             // Members that do not come back.
  std::uint64_t origin_budget = 0;           // 0: steps do not wait for the origin.
  double misses_per_second = 0;              // As measured for the budget.
  std::string mode = "move";                 // move|expire
  std::uint64_t expire_until_ms = 0;         // When the step in DUAL ends (Unix time); 0: not known.
  std::uint64_t keys_without_ttl = 0, keys_dropped = 0;
  std::vector<std::string> keys_without_ttl_examples;
  std::string waits_for;                  // Why the next step has not begun; "" when it need not wait.
  std::string waiting;                    // pause|soak|window: why no step begins now; "" when nothing waits.
  std::string waiting_until;              // Local time of the controller; "" when nobody knows.
  std::string window, abort_if;           // As text; "" when there is none.
  std::string aborted;                    // Why it is, or was, rolled back by itself.
  std::uint64_t rate = 0, byte_rate = 0;  // At most so many keys and bytes a second.
  bool queued = false;                    // Another resize begins when this one is rolled back.
  std::optional<double> hit_rate, p99_ms, origin_qps;  // While there are conditions, and where known.
  bool operator==(const ResizeStatus&) const = default;
};
inline bool operator==(const PairProgress& a, const PairProgress& b) {
  return a.from == b.from && a.to == b.to && a.moved == b.moved && a.bytes == b.bytes && a.left == b.left;
}
[[nodiscard]] std::string to_json(const ResizeStatus& status);
[[nodiscard]] Result<ResizeStatus> parse_status(std::string_view json);

// What a controller must know to go on where another one died, beside the topology itself.
struct Checkpoint {
  std::vector<double> steps;
  bool prepared = false;
  bool opened = false;  // DUAL was published once: the resize can no longer be dropped, only rolled back.
  bool paused = false;
  bool allow_foreign = false;
  std::uint64_t keys_moved = 0, keys_to_move = 0, bytes_moved = 0, fences = 0;
  double hold_ms_max = 0;
  bool rollback = false;  // Asked for; the topology says when it has begun.
  struct Pair {
    std::uint64_t moved = 0, bytes = 0;
    std::uint64_t expected = 0;  // Keys, as estimated at the start.
    bool operator==(const Pair&) const = default;
  };
  std::map<std::pair<std::string, std::string>, Pair> pairs;  // By (from, to).
  std::set<std::string> big_keys;
  std::string big_key_policy = "wait";  // move|wait|refuse
  std::uint64_t big_key_limit = 0;      // Keys above limits.big_key_bytes are moved up to this size.
  std::string verify = "counts";
  std::uint64_t keys_verified = 0;
  topology::Spec target;
  std::vector<std::string> lost;  // As asked for; the topology says when it has begun to count.
  std::uint64_t origin_budget = 0;
  bool expire = false;
  std::string rest;
  std::uint64_t deadline_seconds = kDefaultDeadlineSeconds;
  std::uint64_t expire_slices = 0;    // How many slices had their turn when the time below was measured.
  std::uint64_t expire_until_ms = 0;  // Unix time.
  std::uint64_t keys_without_ttl = 0, keys_dropped = 0;
  std::vector<std::string> keys_without_ttl_examples;
  std::chrono::milliseconds soak{0};
  UnixMs soak_until = 0;  // 0: no soak under way.
  Window window;
  std::vector<Condition> abort_if;
  std::string aborted;                                      // The condition that made it roll back.
  std::uint64_t keys_per_second = 0, bytes_per_second = 0;  // 0: the spec's limits.
};
[[nodiscard]] std::string to_json(const Checkpoint& checkpoint);
[[nodiscard]] Result<Checkpoint> parse_checkpoint(std::string_view json);

}  // namespace ringshift::resize
