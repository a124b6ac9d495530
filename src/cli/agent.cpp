#include "cli/agent.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>

#include "agent/announcer.h"
#include "agent/catalog.h"
#include "agent/figures.h"
#include "agent/notify.h"
#include "agent/probe.h"
#include "agent/record.h"
#include "agent/registrar.h"
#include "cli/admin_flags.h"
#include "cli/cli.h"
#include "cli/log_flags.h"
#include "cli/registry_flags.h"
#include "cli/server.h"
#include "cli/tls_flags.h"
#include "coord/membership_keys.h"
#include "discovery/instances.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A service manager need not wait longer than this for a registry that is away; the agent goes on trying.
constexpr std::chrono::seconds kReadyAnyway{10};
constexpr int kTimeoutsAWatchdog = 6;    // A probe's timeout is at most this part of systemd's watchdog.
constexpr milliseconds kDrainLook{500};  // Looks are at most so far apart while it drains.

struct Flags {
  RegistryFlags registry;
  MemberFlags members;
  AdminFlags admin;
  LogFlags log;
  std::string id, address, probe_address, protocol = "redis";
  std::vector<std::string> labels, registrations;
  int probe_interval_ms = 2000, probe_timeout_ms = 1000, drain_timeout_ms = 30000, lease_seconds = 15;
  unsigned rise = 2, fall = 3;
};

std::string check_id(const std::string& id) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
  if (!id.empty() && id.size() <= topology::kMaxNameBytes &&
      id.find_first_not_of(kAllowed) == std::string::npos)
    return {};
  return fmt::format("--id '{}': give 1 to {} letters, digits and - _ . :", id, topology::kMaxNameBytes);
}

// Where one listens on all interfaces is nowhere that others could reach.
std::string check_reach(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host != "0.0.0.0" && host != "[::]") return {};
  return fmt::format(
      "--address {}: that is where a server listens; give the address by which routers reach it "
      "(--probe-address 127.0.0.1:PORT is for the agent alone)",
      topology::shown(address));
}

Result<std::map<std::string, std::string>> parse_labels(const std::vector<std::string>& words) {
  std::map<std::string, std::string> labels;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    // What nobody who reads the record would take.
    if (name.empty() || equals == std::string::npos || !discovery::is_label_text(name) ||
        !discovery::is_label_text(word.substr(equals + 1))) {
      return fail(ErrorKind::invalid,
                  fmt::format("--label {}: write NAME=VALUE, in printable ASCII, of at most {} bytes each",
                              topology::shown(word), discovery::kLabelBytesMax));
    }
    if (labels.contains(name))
      return fail(ErrorKind::invalid, fmt::format("--label: {} is there twice", topology::shown(name)));
    if (name == "weight" || name == "zone") {
      base::log(base::LogLevel::info,
                "agent: label {} is only what you call it: a member's {} is the operator's to assign, in the "
                "spec's "
                "discovery.assign",
                name, name);
    }
    labels[name] = word.substr(equals + 1);
  }
  if (labels.size() > agent::kMaxLabels) {
    return fail(ErrorKind::invalid,
                fmt::format("--label: {} are more than {}", labels.size(), agent::kMaxLabels));
  }
  return labels;
}

// No look may take so long that systemd's watchdog bites: one on a server that hangs is up to three timeouts,
// after a third of the watchdog's time has passed.
milliseconds probe_timeout(const Flags& flags) {
  const milliseconds wanted(flags.probe_timeout_ms);
  const auto watchdog = agent::systemd_watchdog();
  if (!watchdog) return wanted;
  const auto most =
      std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(*watchdog / kTimeoutsAWatchdog));
  if (wanted <= most) return wanted;
  base::log(base::LogLevel::warning,
            "agent: --probe-timeout-ms {} is more than a sixth of the service's WatchdogSec: {} ms it is; "
            "shorten the one or lengthen the other",
            wanted.count(), most.count());
  return most;
}

// One agent from its start to its end. The probing is this thread's, the registry the registrar's.
class Agent {
 public:
  // `coordinator` null: no registry of ours.
  Agent(const Flags& flags, coord::Coordinator* coordinator, std::unique_ptr<agent::Probe> probe,
        std::map<std::string, std::string> labels, const std::vector<discovery::Options>& catalogs)
      : flags_(flags), probe_(std::move(probe)), judge_(flags.rise, flags.fall) {
    record_.id = flags.id;
    record_.address = flags.address;
    record_.protocol = flags.protocol;
    record_.labels = std::move(labels);
    record_.started_at =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    look(false);  // So that the first record says what is.
    const coord::ClusterKeys keys = flags.registry.keys();
    const std::chrono::seconds ttl(flags.lease_seconds);
    if (coordinator != nullptr) {
      registrar_ = std::make_unique<agent::Registrar>(
          *coordinator,
          agent::Registrar::Options{coord::instance_key(keys, flags.id), coord::drained_key(keys, flags.id),
                                    ttl},
          [this] { return agent::to_json(record()); });
    }
    for (const discovery::Options& options : catalogs) {
      announcers_.push_back(std::make_unique<agent::Announcer>(
          [options, ttl] { return agent::make_catalog(options, ttl); }, [this] { return record(); }));
    }
  }

  // `listener` must go before this; null: nothing.
  void show(admin::Listener* listener) {
    if (listener == nullptr) return;
    listener->collect([this](telemetry::Exposition& page) {
      const std::lock_guard lock(mutex_);
      agent::collect(page, record_, health_, registered());
    });
    listener->ready_if([this]() -> Status {
      if (registered()) return {};
      return fail(ErrorKind::retryable, "not registered everywhere yet: the log says what is in the way");
    });
  }

  // Until SIGTERM or SIGINT.
  void serve(const Signals& signals, backend::MemberAccess* access) {
    const Clock::time_point began = Clock::now();
    while (true) {
      const auto signal = signals.wait_for(next_look());
      if (signal == SIGHUP) {
        reload_secrets("agent", nullptr, access);
      } else if (signal) {
        return;
      }
      look(false);
      tell_manager(began);
    }
  }

  // Until nobody uses the server, the deadline, or a second signal. The watchdog bites meanwhile, too.
  void drain(const Signals& signals) {
    agent::notify_systemd("STOPPING=1\nSTATUS=draining");
    base::log(base::LogLevel::info, "agent: draining {}, for at most {} ms", flags_.id,
              flags_.drain_timeout_ms);
    const Clock::time_point until = Clock::now() + milliseconds(flags_.drain_timeout_ms);
    draining_ = true;
    agent::Quiet quiet;
    agent::Health health = look(true);
    while (!quiet.add(health)) {
      agent::notify_systemd("WATCHDOG=1");
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      if (left.count() <= 0) {
        const std::string use = health.counted
                                    ? fmt::format("{} connections of routers, {} requests a second",
                                                  health.router_connections, health.ops_per_second)
                                    : fmt::format("nobody knows whether it is used: {}", health.reason);
        base::log(base::LogLevel::warning,
                  "agent: the drain timed out: {}; take the member out first, by 'ringshift member drain {}'",
                  use, flags_.id);
        return;
      }
      const auto signal = signals.wait_for(std::min({kDrainLook, left, next_look()}));
      if (signal && signal != SIGHUP) return;
      health = look(true);
    }
    base::log(base::LogLevel::info, "agent: nobody uses {} any more", flags_.id);
  }

 private:
  [[nodiscard]] agent::Record record() const {
    const std::lock_guard lock(mutex_);
    return record_;
  }
  // Wherever it shall be.
  [[nodiscard]] bool registered() const {
    return (!registrar_ || registrar_->registered()) &&
           std::ranges::all_of(announcers_, [](const auto& one) { return one->registered(); });
  }

  [[nodiscard]] milliseconds next_look() const {
    milliseconds next(flags_.probe_interval_ms);
    if (const auto watchdog = agent::systemd_watchdog())
      next = std::min(next, std::chrono::duration_cast<milliseconds>(*watchdog / 3));
    return ready_told_ ? next : std::min(next, milliseconds(200));
  }

  agent::Health look(bool with_clients) {
    const agent::Health health = probe_->look(with_clients);
    const bool healthy = judge_.add(health.good);
    const bool drained = draining_ || (registrar_ && registrar_->drained());
    const agent::State state = drained   ? agent::State::draining
                               : healthy ? agent::State::ready
                                         : agent::State::unhealthy;
    bool news = false;
    {
      const std::lock_guard lock(mutex_);
      news = record_.state != state;
      record_.state = state;
      record_.reason = state == agent::State::unhealthy ? health.reason : "";
      health_ = health;
    }
    if (news) {
      base::log_fields(base::LogLevel::info, {{"instance", flags_.id}, {"state", agent::name(state)}},
                       "agent: {} is {}{}{}", flags_.id, agent::name(state),
                       health.reason.empty() ? "" : ": ", health.reason);
      if (registrar_) registrar_->changed();
      for (const auto& announcer : announcers_) announcer->changed();
    }
    return health;
  }

  void tell_manager(Clock::time_point began) {
    const bool registered = this->registered();
    if (!ready_told_ && (registered || Clock::now() - began >= kReadyAnyway)) {
      ready_told_ = true;
      fmt::print("ready: agent of {} at {}\n", flags_.id, flags_.address);
      std::fflush(stdout);
      agent::notify_systemd("READY=1");
    }
    std::string status;
    {
      const std::lock_guard lock(mutex_);
      status =
          fmt::format("{}, {}", agent::name(record_.state),
                      registered ? "registered" : "not registered: what shall know it does not take it yet");
    }
    agent::notify_systemd("WATCHDOG=1\nSTATUS=" + status);
  }

  const Flags& flags_;
  const std::unique_ptr<agent::Probe> probe_;
  agent::Judge judge_;
  bool draining_ = false, ready_told_ = false;
  mutable std::mutex mutex_;
  agent::Record record_;  // Guarded by mutex_, as is the next.
  agent::Health health_;
  // Last: their threads read the record.
  std::unique_ptr<agent::Registrar> registrar_;  // Null: no registry of ours.
  std::vector<std::unique_ptr<agent::Announcer>> announcers_;
};

int run_agent(Flags& flags) {
  flags.log.apply();
  if (const std::string wrong = check_id(flags.id); !wrong.empty()) {
    report(wrong);
    return kBadUsage;
  }
  if (const std::string wrong = topology::check_address(flags.address); !wrong.empty()) {
    report(fmt::format("--address {} {}", topology::shown(flags.address), wrong));
    return kBadUsage;
  }
  if (const std::string wrong = check_reach(flags.address); !wrong.empty()) {
    report(wrong);
    return kBadUsage;
  }
  if (!flags.probe_address.empty()) {
    if (const std::string wrong = topology::check_address(flags.probe_address); !wrong.empty()) {
      report(fmt::format("--probe-address {} {}", topology::shown(flags.probe_address), wrong));
      return kBadUsage;
    }
  }
  const auto labels = parse_labels(flags.labels);
  if (!labels) {
    report(labels.error().message);
    return kBadUsage;
  }
  const bool without_registry = flags.registry.registry == "none";
  if (without_registry && flags.registrations.empty()) {
    report("--registry none: say where else the instance is to be known, by --register");
    return kBadUsage;
  }
  std::vector<discovery::Options> catalogs;
  for (const std::string& words : flags.registrations) {
    auto options = agent::parse_catalog(words);
    Status fits =
        options ? agent::check_catalog_address(flags.address) : Status(std::unexpected(options.error()));
    if (!fits) {
      report(fits.error().message);
      return kBadUsage;
    }
    catalogs.push_back(*std::move(options));
  }
  const auto access = flags.members.open();
  if (!access) {
    report(access.error().message);
    return kFailed;
  }
  const Signals signals{SIGTERM, SIGINT, SIGHUP};  // Before any thread.
  auto admin = flags.admin.open();
  if (!admin) {
    report(admin.error().message);
    return kFailed;
  }
  std::unique_ptr<coord::Coordinator> coordinator;
  if (!without_registry) {
    auto connected = flags.registry.connect();
    if (!connected) {
      report(connected.error().message);
      return kFailed;
    }
    coordinator = *std::move(connected);
  }
  const agent::ProbeOptions probe{flags.probe_address.empty() ? flags.address : flags.probe_address,
                                  probe_timeout(flags), *access};
  Agent agent(flags, coordinator.get(),
              flags.protocol == "redis" ? agent::make_redis_probe(probe) : agent::make_memcached_probe(probe),
              *labels, catalogs);
  agent.show(admin->get());
  announce_admin(admin->get());
  agent.serve(signals, access->get());
  agent.drain(signals);
  if (coordinator) coordinator->hurry(coord::kHurry);
  admin->reset();  // Before what it shows.
  return kDone;
}

}  // namespace

void add_agent(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("agent", "Register the Redis or memcached beside this, and watch over it");
  flags->registry.add_to(*command, /*cluster_required=*/true);
  command->add_option("--id", flags->id, "The instance's id, for ever: what its member is called")
      ->envname("RINGSHIFT_INSTANCE_ID")
      ->required();
  command
      ->add_option("--address", flags->address,
                   "Where routers reach the server: HOST:PORT, [v6]:PORT or unix:/path")
      ->required();
  command->add_option("--probe-address", flags->probe_address, "Where the agent does [--address]");
  command->add_option("--protocol", flags->protocol, "What the server speaks")
      ->check(CLI::IsMember({"redis", "memcached"}))
      ->capture_default_str();
  command
      ->add_option(
          "--label", flags->labels,
          "NAME=VALUE that the operator's rules may go by; several: again and again. Never a weight or zone "
          "by itself")
      ->type_name("NAME=VALUE");
  command
      ->add_option(
          "--register", flags->registrations,
          "Make the instance known in Consul or Nacos, too (or instead, with --registry none): 'consul "
          "service=NAME url=http://HOST:8500 token_file=FILE', 'nacos service=NAME "
          "url=http://HOST:8848 auth_file=FILE'; several: again and again")
      ->type_name("'KIND FIELD=VALUE ...'");
  command->add_option("--probe-interval-ms", flags->probe_interval_ms, "Between two looks at the server")
      ->check(CLI::Range(50, 600000))
      ->capture_default_str();
  command->add_option("--probe-timeout-ms", flags->probe_timeout_ms, "How long a look may take")
      ->check(CLI::Range(10, 60000))
      ->capture_default_str();
  command->add_option("--rise", flags->rise, "Good looks in a row that make it ready again")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--fall", flags->fall, "Bad looks in a row that make it unhealthy")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--lease-seconds", flags->lease_seconds, "How long the record outlives an agent that died")
      ->check(CLI::Range(2, 3600))
      ->capture_default_str();
  command
      ->add_option("--drain-timeout-ms", flags->drain_timeout_ms,
                   "After SIGTERM: longest wait for requests to end; a second signal ends it at once")
      ->check(CLI::Range(0, 86400000))
      ->capture_default_str();
  flags->members.add_to(*command);
  flags->admin.add_to(*command, "none");
  flags->log.add_to(*command);
  command->footer(
      "Examples:\n"
      "  ringshift agent --registry http://127.0.0.1:7379 --cluster cache --id cache-5 --address "
      "10.0.0.5:6379\n"
      "  ringshift agent --cluster cache --id cache-5 --address 10.0.0.5:6379 --label rack=r7 --label "
      "namespace=prod\n"
      "  ringshift agent --cluster sessions --id mc-1 --address 10.0.0.9:11211 --protocol memcached\n"
      "  ringshift agent --registry none --cluster cache --id cache-5 --address 10.0.0.5:6379 --register "
      "'consul "
      "service=cache'");
  command->callback([flags] {
    if (const int status = run_agent(*flags); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
