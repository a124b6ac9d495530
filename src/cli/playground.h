// The playground behind `ringshift up`: real redis-servers, registry, controller and proxy, a cache-aside
// application over a real database, and a resize while it runs.
//
// Owns everything it starts; its destructor ends it in order, also half-way. One thread (main's: the
// redis-servers die with the thread that started them).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/admin_api.h"
#include "cli/admin_flags.h"
#include "cli/console.h"
#include "cli/deployment.h"
#include "cli/interrupt.h"
#include "cli/up_report.h"
#include "drill/load.h"
#include "drill/origin.h"
#include "drill/redis_fleet.h"
#include "drill/run_directory.h"

namespace ringshift::cli {

struct PlaygroundOptions {
  std::string data_dir;       // Empty: a temporary directory, removed at the end.
  std::uint16_t port = 6380;  // Of the proxy.
  std::uint16_t registry_port = 7379;
  AdminApiFlags admin_api;
  std::string admin_listen = kAdminDefault;  // Or "none".
  std::uint64_t keys = 205'000;              // Live in the cache, on average.
  double requests_per_second = 8000;
  std::uint64_t seed = 1;
  std::chrono::seconds steady{20};  // Measured before the resize; half of it after.
};

// Errors of kind `retryable` with this message mean that Ctrl-C came.
inline constexpr std::string_view kInterrupted = "interrupted";

class Playground {
 public:
  Playground(PlaygroundOptions options, Console& console, Interrupt& interrupt);
  ~Playground();

  [[nodiscard]] Status set_up();             // Servers, proxy, keys.
  [[nodiscard]] Result<UpReport> measure();  // The load, and the growth from four nodes to five under it.
  void stay_up();                            // Until Ctrl-C, with the load running.
  [[nodiscard]] std::string what_next() const;

 private:
  [[nodiscard]] Status start_servers();
  [[nodiscard]] Status start_deployment();
  [[nodiscard]] Status start_admin();
  [[nodiscard]] Status fill();
  [[nodiscard]] Status pass(std::string_view label, base::Duration time);
  [[nodiscard]] Status resize(UpReport& report);
  [[nodiscard]] Status conclude(UpReport& report);
  [[nodiscard]] std::uint16_t pick_port(std::uint16_t wanted, std::string_view what);
  [[nodiscard]] drill::Load::Progress progress(std::string label);

  const PlaygroundOptions options_;
  Console& console_;
  Interrupt& interrupt_;
  // In the order of their making; ended in the reverse.
  std::optional<drill::RunDirectory> directory_;
  std::optional<drill::RedisFleet> fleet_;
  std::unique_ptr<drill::Origin> origin_;
  std::unique_ptr<Deployment> deployment_;
  std::unique_ptr<admin::Listener> admin_;
  drill::LoadOptions load_options_;
  std::unique_ptr<drill::Load> load_;
  topology::Spec four_, five_;
};

}  // namespace ringshift::cli
