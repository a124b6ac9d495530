// One strategy of `ringshift drill`, run under the load: fresh servers, a fresh origin, the change, what it
// did.
//
// Main's thread alone (servers die with the thread that started them). A run that is interrupted, or whose
// change fails, gives what it measured until then, and says so.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/interrupt.h"
#include "drill/app.h"
#include "drill/figures.h"
#include "drill/origin_server.h"
#include "drill/pool.h"
#include "ringshift/topology.h"

namespace ringshift::cli::drilling {

enum class Scenario : std::uint8_t { grow, remove, kill, reweight };

struct Options {
  Scenario scenario = Scenario::grow;
  std::size_t from = 4, to = 5;
  std::vector<std::string> strategies;
  unsigned warm_up_seconds = 3, before_seconds = 12;
  unsigned seconds = 36;  // After the change.
  unsigned dual_read_seconds = 20;
  std::uint64_t move_rate = 0;  // Keys a second; 0: so that the resize takes about a third of `seconds`.
  drill::ZipfLoad zipf;
  std::string trace;  // A file instead of Zipf.
  drill::AppOptions app;
  drill::OriginKind origin = drill::OriginKind::sqlite;
  drill::PoolOptions pool;
  std::string out;  // A directory for the report; empty: none.
  bool json = false;
};

inline constexpr const char* kModulo = "modulo";
inline constexpr const char* kRing = "ring";
inline constexpr const char* kDualRead = "ring+dual-read";
inline constexpr const char* kDualDelete = "ring+dual-delete";
inline constexpr const char* kRingshift = "ringshift";
inline constexpr const char* kControl = "control";

struct Outcome {
  std::string name;
  std::string error;                          // Why it ended before its time; empty when it did not.
  std::shared_ptr<drill::Timeline> timeline;  // With the warm-up, which takes the first `skipped` seconds.
  std::size_t skipped = 0;
  std::vector<drill::Second> seconds;  // Without it.
  std::size_t change = 0;              // The second of `seconds` that began with the change.
  double change_seconds = 0;  // ringshift: how long the resize took. Dual reads: how long they went on.
  std::uint64_t keys_live = 0, keys_changed_owner = 0;  // Acknowledged copies when the change began.
  std::uint64_t keys_moved = 0;   // By the mover; for a switch, those whose owner changed under them.
  std::uint64_t keys_copied = 0;  // By dual reads.
  std::uint64_t keys_misplaced = 0;
  std::uint64_t move_rate = 0;
  double hold_ms_max = 0;
  drill::Verdicts verdicts;
  drill::Quiet quiet;

  [[nodiscard]] bool complete() const { return error.empty(); }
};

class Run {
 public:
  Run(const Options& options, const drill::Workload& workload, drill::OriginServer& origins,
      std::string directory, Console& console, Interrupt& interrupt)
      : options_(options),
        workload_(workload),
        origins_(origins),
        directory_(std::move(directory)),
        console_(console),
        interrupt_(interrupt) {}

  // `observe`: seconds after the change. An error: nothing was measured.
  [[nodiscard]] Result<Outcome> go(const std::string& strategy, unsigned observe);

 private:
  const Options& options_;
  const drill::Workload& workload_;
  drill::OriginServer& origins_;
  const std::string directory_;
  Console& console_;
  Interrupt& interrupt_;
};

// The members before and after, on these addresses.
struct Specs {
  topology::Spec before, after;
  std::vector<std::string> lost;  // Ids of members that die.
};
[[nodiscard]] Specs specs_of(const Options& options, const std::string& strategy,
                             const std::vector<std::string>& addresses);
[[nodiscard]] std::string change_in_words(const Options& options);  // "4 members grow to 5"

}  // namespace ringshift::cli::drilling
