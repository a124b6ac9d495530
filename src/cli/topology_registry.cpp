#include "cli/topology_registry.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "coord/topology_changes.h"

namespace ringshift::cli {
namespace {

using nlohmann::json;

void print(const json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, json::error_handler_t::replace));
  std::fflush(stdout);
}

[[noreturn]] void give_up(const std::string& message) {
  report(message);
  throw CLI::RuntimeError(kFailed);
}

template <class T>
T or_give_up(Result<T> result) {
  if (!result) give_up(result.error().message);
  return *std::move(result);
}

const char* name(topology::Phase phase) {
  switch (phase) {
    case topology::Phase::prep:
      return "prep";
    case topology::Phase::hold:
      return "hold";
    case topology::Phase::dual:
      return "dual";
  }
  return "?";
}

json to_value(const StoredTopology& stored) {
  return {{"version", topology::to_string(stored.version)},
          {"digest", topology::digest(stored.topology)},
          {"topology", json::parse(topology::to_json(stored.topology))}};
}

struct Flags {
  RegistryFlags registry;
  bool json = false;
  bool spec = false;
  std::size_t limit = 20;
};

void get(const Flags& flags) {
  const auto coordinator = or_give_up(flags.registry.connect());
  const coord::ClusterKeys keys = flags.registry.keys();
  if (flags.spec) {
    const auto kv = or_give_up(coordinator->get(keys.spec()));
    if (!kv) {
      give_up(fmt::format("cluster '{}' has no spec in {}: write one with 'ringshift topology apply FILE'",
                          flags.registry.cluster, flags.registry.registry));
    }
    // JSON is YAML: what is printed can be edited and applied.
    const json spec = json::parse(kv->value, nullptr, false);
    if (spec.is_discarded()) give_up(fmt::format("{} holds no JSON: apply a spec again", keys.spec()));
    fmt::print("{}\n", spec.dump(flags.json ? -1 : 2, ' ', false, json::error_handler_t::replace));
    return;
  }
  const auto stored = or_give_up(read_topology(*coordinator, keys));
  if (!stored) {
    give_up(fmt::format(
        "cluster '{}' has no topology in {}: apply a spec, and run 'ringshift controller', which makes "
        "the topology from it",
        flags.registry.cluster, flags.registry.registry));
  }
  if (flags.json) return print(to_value(*stored));
  fmt::print("cluster {}: {}\n", flags.registry.cluster, summary(*stored));
  for (const topology::Member& member : stored->topology.spec.members) {
    const auto factor = stored->topology.factors.find(member.id);
    fmt::print("  {:<20} {:<28} weight {}{}\n", member.id, member.address, member.weight,
               factor == stored->topology.factors.end() ? "" : fmt::format(" factor {}", factor->second));
  }
}

// The controller writes a copy of each topology with it, under history/: the revision of both is that of the
// write.
void history(const Flags& flags) {
  const auto coordinator = or_give_up(flags.registry.connect());
  const coord::ClusterKeys keys = flags.registry.keys();
  coord::Range range = or_give_up(coordinator->list(keys.history()));
  const std::size_t first = range.kvs.size() > flags.limit ? range.kvs.size() - flags.limit : 0;
  if (range.kvs.empty() && !flags.json) fmt::print("cluster {} has no history yet\n", flags.registry.cluster);
  for (std::size_t i = first; i < range.kvs.size(); ++i) {
    const coord::KeyValue& kv = range.kvs[i];
    const std::string entry = fmt::format("{:020}", kv.mod_revision);
    const auto stored = parse_stored(kv);
    if (flags.json) {
      json value = stored ? to_value(*stored) : json::parse(kv.value, nullptr, false);
      if (value.is_discarded()) value = kv.value;
      print({{"revision", entry}, {"entry", value}});
    } else {
      const std::string shown = stored ? summary(*stored) : kv.value;
      fmt::print("{}  {}\n", entry, shown);
    }
  }
}

class Printer final : public coord::Watcher {
 public:
  Printer(std::string key, bool as_json) : key_(std::move(key)), json_(as_json) {}
  void on_resync(const coord::Range& state) override {
    cluster_id_ = state.cluster_id;
    bool found = false;
    for (const coord::KeyValue& kv : state.kvs) {
      if (kv.key != key_) continue;
      show(kv);
      found = true;
    }
    if (!found) report("there is no topology yet: waiting for the controller to make one");
  }
  void on_events(const std::vector<coord::Event>& events) override {
    for (const coord::Event& event : events) {
      if (event.kv.key == key_ && event.kind == coord::Event::Kind::put) show(event.kv);
    }
  }
  void on_disconnected(const Error& why) override { report(why.message + "; trying again"); }

 private:
  void show(const coord::KeyValue& kv) {
    if (kv.mod_revision == shown_ && cluster_id_ == shown_cluster_) return;  // A resync that brought no news.
    shown_ = kv.mod_revision;
    shown_cluster_ = cluster_id_;
    const Result<StoredTopology> stored = parse_stored(kv);
    if (!stored) return report(stored.error().message);
    const std::vector<std::string> news =
        last_ ? coord::topology_changes(*last_, stored->topology) : std::vector<std::string>{};
    last_ = stored->topology;
    if (json_) {
      json value = to_value(*stored);
      value["changes"] = news;
      return print(value);
    }
    fmt::print("{}\n", summary(*stored));
    for (const std::string& one : news) fmt::print("  {}\n", one);
    std::fflush(stdout);
  }

  std::optional<topology::Topology> last_;
  const std::string key_;
  const bool json_;
  std::uint64_t cluster_id_ = 0, shown_cluster_ = 0;
  coord::Revision shown_ = -1;
};

void watch(const Flags& flags) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // Before the watch's thread, which inherits it.
  const auto coordinator = or_give_up(flags.registry.connect());
  const std::string key = flags.registry.keys().topology();
  Printer printer(key, flags.json);
  const auto watching = coordinator->watch(key, printer);
  int signal = 0;
  sigwait(&signals, &signal);
}

void add(CLI::App& topology, const char* command_name, const char* what, const char* examples,
         void (*run)(const Flags&)) {
  CLI::App* command = topology.add_subcommand(command_name, what);
  auto flags = std::make_shared<Flags>();
  flags->registry.add_to(*command, true);
  command->add_flag("--json", flags->json, "JSON, an object a line");
  if (run == &get) command->add_flag("--spec", flags->spec, "The operators' spec instead of the topology");
  if (run == &history) {
    command->add_option("--limit", flags->limit, "The newest so many")->capture_default_str();
  }
  command->footer(examples);
  command->callback([flags, run] { run(*flags); });
}

}  // namespace

std::string summary(const StoredTopology& stored) {
  const topology::Topology& t = stored.topology;
  std::string line =
      fmt::format("version {}, digest {}, {} member{}, {}", topology::to_string(stored.version),
                  topology::digest(t).substr(0, 12), t.spec.members.size(),
                  t.spec.members.size() == 1 ? "" : "s", t.spec.placement.algorithm);
  if (t.resize) {
    line += fmt::format("; resize {}{} to {} members: phase {}, {} of {} slices done", t.resize->id,
                        t.resize->rollback ? " (rolling back)" : "", t.resize->members.size(),
                        name(t.resize->phase), topology::count(t.resize->done), topology::kSliceCount);
  }
  return line;
}

void add_topology_registry(CLI::App& topology) {
  add_topology_apply(topology);
  add(topology, "get", "Print the topology that routers obey, or the spec",
      "Examples:\n"
      "  ringshift topology get --cluster cache\n"
      "  ringshift topology get --cluster cache --spec > cache.yaml    edit it, then apply or resize\n"
      "  ringshift topology get --cluster cache --json",
      &get);
  add(topology, "history", "Print the topologies that were, oldest first",
      "Examples:\n"
      "  ringshift topology history --cluster cache\n"
      "  ringshift topology history --cluster cache --limit 5 --json",
      &history);
  add(topology, "watch", "Print every topology as it is published, until Ctrl-C",
      "Each with its version and digest, and what is new in it.\n"
      "Examples:\n"
      "  ringshift topology watch --cluster cache\n"
      "  ringshift topology watch --cluster cache --json",
      &watch);
}

}  // namespace ringshift::cli
