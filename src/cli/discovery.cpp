// ringshift discovery show: what a source of instances sees, once or for as long as one looks.
#include "cli/discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/duration.h"
#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/interrupt.h"
#include "cli/registry_flags.h"
#include "discovery/guard.h"
#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::cli {
namespace {

using discovery::Instance;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kLook{100};  // Between two looks for a signal.

struct DiscoveryFlags {
  std::string kind;
  discovery::Fields fields;
  RegistryFlags registry;
  bool watch = false, as_json = false, guarded = false;
  std::string within = "15s", confirm_after = "30s";
};

void print_json(const json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, json::error_handler_t::replace));
  std::fflush(stdout);
}

json to_json(const Instance& instance) {
  json out = {{"id", instance.id},
              {"address", instance.address},
              {"protocol", instance.protocol},
              {"state", discovery::to_string(instance.state)}};
  if (!instance.labels.empty()) out["labels"] = instance.labels;
  return out;
}

void print_table(const std::vector<Instance>& all) {
  std::size_t ids = 2, addresses = 7;
  for (const Instance& instance : all) {
    ids = std::max(ids, instance.id.size());
    addresses = std::max(addresses, instance.address.size());
  }
  fmt::print("{:<{}}  {:<{}}  {:<9}  {:<9}  {}\n", "ID", ids, "ADDRESS", addresses, "PROTOCOL", "STATE",
             "LABELS");
  for (const Instance& instance : all) {
    std::string labels;
    for (const auto& [name, value] : instance.labels)
      labels += fmt::format("{}{}={}", labels.empty() ? "" : " ", name, value);
    const std::string line =
        fmt::format("{:<{}}  {:<{}}  {:<9}  {:<9}  {}", instance.id, ids, instance.address, addresses,
                    instance.protocol, discovery::to_string(instance.state), labels);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
  std::fflush(stdout);
}

// Prints what comes, from the source's thread, and tells the main one.
class Printer final : public discovery::Sink {
 public:
  Printer(const DiscoveryFlags& flags, std::string source) : flags_(flags), source_(std::move(source)) {}

  void instances(const std::vector<Instance>& all) override {
    if (!first()) return;
    if (flags_.as_json) {
      json list = json::array();
      for (const Instance& instance : all) list.push_back(to_json(instance));
      print_json({{"source", source_}, {"instances", std::move(list)}});
    } else {
      if (flags_.watch) fmt::print("{}: {} instance{}\n", source_, all.size(), all.size() == 1 ? "" : "s");
      print_table(all);
    }
    const std::lock_guard lock(mutex_);
    shown_ = true;
    told_.notify_all();
  }
  void trouble(const Error& why) override {
    if (flags_.watch && flags_.as_json)
      print_json({{"source", source_},
                  {"trouble", {{"kind", ringshift::to_string(why.kind)}, {"message", why.message}}}});
    if (flags_.watch && !flags_.as_json) report(why.message);
    const std::lock_guard lock(mutex_);
    trouble_ = why.message;
    told_.notify_all();
  }

  // "" when a list was shown; nullopt when nothing came in time.
  std::optional<std::string> wait(milliseconds time, bool trouble_ends) {
    std::unique_lock lock(mutex_);
    told_.wait_for(lock, time, [&] { return shown_ || (trouble_ends && trouble_); });
    return shown_ ? std::optional<std::string>("") : trouble_;
  }

 private:
  // Without --watch one list is all.
  bool first() {
    const std::lock_guard lock(mutex_);
    if (flags_.watch) return true;
    return !std::exchange(took_, true);
  }

  const DiscoveryFlags& flags_;
  const std::string source_;
  std::mutex mutex_;
  std::condition_variable told_;
  bool took_ = false, shown_ = false;
  std::optional<std::string> trouble_;
};

milliseconds duration_or_end(std::string_view flag, const std::string& text) {
  const auto duration = base::parse_duration(text);
  if (!duration) end_command(kBadUsage, fmt::format("{}: {}", flag, duration.error().message));
  return *duration;
}

std::string flag_of(std::string_view field) {
  std::string flag = fmt::format("--{}", field == "kind"        ? "source"
                                         : field == "namespace" ? "source-namespace"
                                                                : field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// An error of read_options(), which begins with the field's name.
std::string as_flag(std::string_view message) {
  const std::size_t colon = message.find(':');
  return flag_of(message.substr(0, colon)) + std::string(message.substr(colon));
}

void show(const DiscoveryFlags& flags) {
  const milliseconds within = duration_or_end("--within", flags.within);
  const milliseconds confirm = duration_or_end("--confirm-after", flags.confirm_after);
  auto options = discovery::read_options(flags.kind, flags.fields);
  if (!options) end_command(kBadUsage, as_flag(options.error().message));
  Interrupt interrupt;  // Before any thread.
  discovery::Surroundings around;
  std::unique_ptr<coord::Coordinator> registry;
  if (flags.kind == "registry") {
    registry = or_end(flags.registry.connect());
    around = {registry.get(), flags.registry.name_space, flags.registry.cluster};
  }
  auto source = or_end(discovery::make_source(*std::move(options), around), kBadUsage);
  Printer printer(flags, source->describe());
  std::unique_ptr<discovery::Guard> guard;
  if (flags.guarded) guard = std::make_unique<discovery::Guard>(printer, confirm);
  discovery::Sink& sink = guard ? static_cast<discovery::Sink&>(*guard) : printer;
  if (const Status started = source->start(sink); !started) end_command(kFailed, started.error().message);
  if (flags.watch) {
    while (!interrupt.wait(kLook)) {
    }
    source.reset();  // Before what it tells.
    return;
  }
  std::optional<std::string> outcome;
  for (milliseconds waited{0}; !outcome && waited < within && !interrupt.requested(); waited += kLook)
    outcome = printer.wait(kLook, !flags.guarded);
  const std::string name = source->describe();
  source.reset();
  if (!outcome) {
    outcome = interrupt.requested() ? "has shown no list before you ended it"
                                    : fmt::format("has shown no list within {}", flags.within);
  }
  if (!outcome->empty()) end_command(kFailed, fmt::format("{}: {}", name, *outcome));
}

}  // namespace

void add_discovery(CLI::App& app) {
  auto flags = std::make_shared<DiscoveryFlags>();
  CLI::App* discovery = app.add_subcommand("discovery", "Look at sources of instances");
  discovery->require_subcommand(1);
  discovery->footer(
      "Example:\n  ringshift discovery show --source file --path /etc/ringshift/instances.yaml");
  CLI::App* command = discovery->add_subcommand("show", "What a source of instances sees now");
  command->add_option("--source", flags->kind, fmt::format("{}", fmt::join(discovery::kKinds, ", ")))
      ->required()
      ->type_name("KIND");
  for (const discovery::FieldInfo& field : discovery::field_table()) {
    std::string name(field.name);
    if (name == "cluster") continue;  // As other commands have it.
    command
        ->add_option_function<std::string>(
            flag_of(name), [flags, name](const std::string& value) { flags->fields[name] = value; },
            fmt::format("{}: {}", field.kinds, field.help))
        ->group("Fields of the source")
        ->type_name("TEXT");
  }
  flags->registry.add_to(*command, false);
  command->add_flag("--watch", flags->watch, "Show each change, and each trouble, until a signal");
  command->add_flag("--guarded", flags->guarded,
                    "Through the guard: bursts merged, an empty or halved list held until it is confirmed");
  command
      ->add_option("--confirm-after", flags->confirm_after,
                   "With --guarded: for how long a held list must stay")
      ->capture_default_str();
  command->add_option("--within", flags->within, "How long to wait for the first list")
      ->capture_default_str();
  command->add_flag("--json", flags->as_json, "JSON, a line for each list");
  command->footer(
      "Examples:\n"
      "  ringshift discovery show --source dns --name cache.example.com --port 6379\n"
      "  ringshift discovery show --source dns --name _redis._tcp.cache.example.com --servers 10.0.0.2:53\n"
      "  ringshift discovery show --source registry --cluster cache --watch\n"
      "  ringshift discovery show --source consul --url https://consul:8501 --service cache \\\n"
      "    --token-file /etc/ringshift/consul.token --ca-file /etc/ringshift/consul-ca.pem --json\n"
      "  ringshift discovery show --source nacos --url http://nacos:8848 --service cache --auth-file "
      "nacos.auth\n"
      "  ringshift discovery show --source kubernetes --service cache --source-namespace shop --watch");
  command->callback([flags] { show(*flags); });
}

}  // namespace ringshift::cli
