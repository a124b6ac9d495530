// `ringshift registry copy`: a cluster's state from one registry to another, of any kind.
//
// The source's controller lock is held meanwhile, so that nothing changes under the copy; what makes the
// cluster exist there (spec, topology, status) is written last, in one transaction. Nothing is removed from
// the source.
#include "cli/registry_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/registry_flags.h"
#include "ringshift/topology.h"

namespace ringshift::cli {
namespace {

using coord::ClusterKeys;
using coord::Compare;
using coord::KeyValue;
using coord::Op;

constexpr std::chrono::seconds kLockTtl{20};
constexpr std::string_view kLockName = "registry-copy-";  // And which one.
constexpr std::size_t kRemovalsPerWrite = 100;            // etcd takes 128 in a transaction.

struct Flags {
  RegistryFlags from, to;
  bool force = false, routers_run = false, json = false;
};

struct Side {
  std::string flag;  // --from or --to
  const RegistryFlags& flags;
  std::unique_ptr<coord::Coordinator> coordinator{};

  // Ends the command with the flag that this side has for what others call --registry-...
  template <class T>
  T end_unless(Result<T> result) const {
    if (result) return *std::move(result);
    constexpr std::string_view kCommon = "--registry-";
    std::string message = std::move(result.error().message);
    for (std::size_t at = 0; (at = message.find(kCommon, at)) != std::string::npos; at += flag.size())
      message.replace(at, kCommon.size(), flag + "-");
    end_command(kFailed, message);
  }
};

// The source's controller lock, for as long as this lives.
class Lock {
 public:
  Lock(coord::Coordinator& source, const ClusterKeys& keys, const RegistryFlags& flags)
      : source_(source),
        id_(fmt::format("{}{}-{}", kLockName, getpid(),
                        std::chrono::system_clock::now().time_since_epoch().count())) {
    lease_ = or_end(source_.grant(kLockTtl));
    const auto taken = source_.transact({{keys.controller(), Compare::Target::create_revision, 0}},
                                        {{Op::Kind::put, keys.controller(), id_, lease_}});
    if (taken && *taken) return;
    release();
    if (!taken) end_command(kFailed, taken.error().message);
    const auto holder = source_.get(keys.controller());
    if (holder && *holder && (*holder)->value.starts_with(kLockName)) {
      end_command(kFailed,
                  fmt::format("another copy of cluster '{}' is under way at {}, or was cut off within the "
                              "last {} s: try again then",
                              flags.cluster, flags.registry, kLockTtl.count()));
    }
    end_command(kFailed,
                fmt::format("a controller of cluster '{}' runs at {}: stop it, then copy, so that nothing "
                            "changes meanwhile",
                            flags.cluster, flags.registry));
  }
  ~Lock() { release(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void keep() { static_cast<void>(or_end(source_.keep_alive(lease_))); }
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  void release() {
    if (lease_ != 0) static_cast<void>(source_.revoke(std::exchange(lease_, 0)));
  }
  coord::Coordinator& source_;
  const std::string id_;
  coord::LeaseId lease_ = 0;
};

std::string names_of(const std::vector<KeyValue>& kvs, const std::string& prefix) {
  std::string out;
  for (const KeyValue& kv : kvs) out += (out.empty() ? "" : ", ") + kv.key.substr(prefix.size());
  return out;
}

void check_source(Side& from, const ClusterKeys& keys, const Flags& flags) {
  const auto topology = from.end_unless(from.coordinator->get(keys.topology()));
  const auto spec = from.end_unless(from.coordinator->get(keys.spec()));
  if (!spec || !topology) {
    end_command(kFailed,
                fmt::format("the registry at {} has no cluster '{}' in namespace '{}': check --from, "
                            "--cluster and --namespace",
                            from.flags.registry, from.flags.cluster, from.flags.name_space));
  }
  const auto parsed = or_end(topology::parse_topology(topology->value, keys.topology()));
  if (parsed.resize || from.end_unless(from.coordinator->get(keys.next())) ||
      from.end_unless(from.coordinator->get(keys.request()))) {
    end_command(kFailed,
                fmt::format("a resize of cluster '{}' is under way or asked for: let it finish, or take "
                            "it back with 'ringshift resize rollback', then copy",
                            from.flags.cluster));
  }
  const coord::Range routers = from.end_unless(from.coordinator->list(keys.routers()));
  if (routers.kvs.empty()) return;
  const std::string who = names_of(routers.kvs, keys.routers());
  if (!flags.routers_run) {
    end_command(
        kFailed,
        fmt::format("routers follow {}: {}. They would go on following it: stop them first, or say "
                    "--routers-run and restart each with the new --registry before anything is resized "
                    "there",
                    from.flags.registry, who));
  }
  report(fmt::format("warning: these follow {} until each is restarted with --registry {}: {}",
                     from.flags.registry, flags.to.registry, who));
}

// What is at the target's place already; ends the command when it must not be replaced.
coord::Range check_target(Side& to, const ClusterKeys& keys, const Flags& flags, const std::string& lock) {
  coord::Range there = to.end_unless(to.coordinator->list(keys.prefix));
  for (const KeyValue& kv : there.kvs) {
    if (kv.key == keys.controller() && kv.value == lock) {
      end_command(kBadUsage,
                  fmt::format("{} and {} are one registry", flags.from.registry, flags.to.registry));
    }
  }
  const auto live = std::ranges::count_if(
      there.kvs, [&](const KeyValue& kv) { return kv.key.starts_with(keys.routers()); });
  const bool has_cluster = std::ranges::any_of(
      there.kvs, [&](const KeyValue& kv) { return kv.key == keys.spec() || kv.key == keys.topology(); });
  if (!has_cluster) return there;
  if (live > 0) {
    end_command(kFailed,
                fmt::format("{} routers follow cluster '{}' at {}: what they obey is not replaced under "
                            "them; stop them first",
                            live, flags.to.cluster, flags.to.registry));
  }
  if (!flags.force) {
    end_command(kFailed,
                fmt::format("the registry at {} has a cluster '{}' already: look at it with 'ringshift "
                            "topology get', and say --force to replace it",
                            flags.to.registry, flags.to.cluster));
  }
  return there;
}

void put_all(Side& to, Lock& lock, const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    static_cast<void>(to.end_unless(to.coordinator->put(op.key, op.value)));
    lock.keep();
  }
}

std::size_t copy(const Flags& flags) {
  Side from{"--from", flags.from}, to{"--to", flags.to};
  for (Side* side : {&from, &to}) side->coordinator = side->end_unless(side->flags.connect());
  const ClusterKeys keys = flags.from.keys();
  check_source(from, keys, flags);
  Lock lock(*from.coordinator, keys, flags.from);
  check_source(from, keys, flags);  // Now that nothing changes any more.
  const coord::Range there = check_target(to, keys, flags, lock.id());
  const coord::Range state = from.end_unless(from.coordinator->list(keys.prefix));

  std::vector<Op> first, last;
  for (const KeyValue& kv : state.kvs) {
    // Orders and the places of resizes: there are none that anybody waits for (check_source). What other
    // programs measure (`origin`) they write again.
    if (kv.lease != 0 || kv.key == keys.request() || kv.key == keys.next() || kv.key == keys.origin() ||
        kv.key.starts_with(keys.checkpoints())) {
      continue;
    }
    if (kv.key.starts_with(keys.history())) {
      // Numbered by revisions, which begin anew at the target. There are more writes before the topology than
      // numbers given here, so whatever the controller adds sorts behind.
      first.push_back({Op::Kind::put, fmt::format("{}{:020}", keys.history(), first.size()), kv.value, 0});
    } else {
      const bool makes_it_exist =
          kv.key == keys.spec() || kv.key == keys.topology() || kv.key == keys.status();
      (makes_it_exist ? last : first).push_back({Op::Kind::put, kv.key, kv.value, 0});
    }
  }
  const auto is_last = [&](const std::string& key) {
    return std::ranges::find(last, key, &Op::key) != last.end();
  };
  std::vector<Op> removals;
  for (const KeyValue& kv : there.kvs) {
    if (kv.lease == 0 && !is_last(kv.key)) removals.push_back({Op::Kind::remove, kv.key, "", 0});
  }
  for (std::size_t begin = 0; begin < removals.size(); begin += kRemovalsPerWrite) {
    const std::size_t end = std::min(removals.size(), begin + kRemovalsPerWrite);
    static_cast<void>(
        to.end_unless(to.coordinator->transact({}, {removals.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    removals.begin() + static_cast<std::ptrdiff_t>(end)})));
    lock.keep();
  }
  put_all(to, lock, first);
  std::vector<Compare> unchanged;
  for (const std::string& key : {keys.spec(), keys.topology()}) {
    const auto before = std::ranges::find(there.kvs, key, &KeyValue::key);
    unchanged.push_back(
        {key, Compare::Target::mod_revision, before == there.kvs.end() ? 0 : before->mod_revision});
  }
  if (!to.end_unless(to.coordinator->transact(unchanged, last))) {
    end_command(kFailed,
                fmt::format("somebody else wrote cluster '{}' at {} meanwhile: look at it, then copy again",
                            flags.to.cluster, flags.to.registry));
  }
  for (const Op& op : last) {
    const auto kv = to.end_unless(to.coordinator->get(op.key));
    // The target's controller may have gone on from there; the spec is nobody's but the operators'.
    if (!kv || (op.key == keys.spec() && kv->value != op.value)) {
      end_command(kFailed,
                  fmt::format("{} does not hold what was written: do not use it", flags.to.registry));
    }
  }
  return first.size() + last.size();
}

}  // namespace

void add_registry_copy(CLI::App& registry) {
  CLI::App* command =
      registry.add_subcommand("copy", "Copy a cluster's state to another registry, of any kind");
  auto flags = std::make_shared<Flags>();
  auto cluster = std::make_shared<std::string>();
  auto name_space = std::make_shared<std::string>(coord::kDefaultNamespace);
  command->add_option("--from", flags->from.registry, "URL of the registry that has the cluster")->required();
  command->add_option("--to", flags->to.registry, "URL of the registry that is to have it")->required();
  command->add_option("--cluster", *cluster, "Name of the cluster")
      ->check(check_name_flag)
      ->envname("RINGSHIFT_CLUSTER")
      ->required();
  command->add_option("--namespace", *name_space, "Namespace of the cluster")
      ->check(check_name_flag)
      ->envname("RINGSHIFT_NAMESPACE")
      ->capture_default_str();
  for (auto* side : {&flags->from, &flags->to}) {
    const std::string name = side == &flags->from ? "--from" : "--to";
    const auto file = [&](const char* what, std::string& value) {
      return command
          ->add_option(name + "-" + what, value, fmt::format("Like --registry-{}, for {}", what, name))
          ->type_name("FILE")
          ->group("Registry");
    };
    file("auth-file", side->auth_file);
    file("ca", side->ca);
    CLI::Option* certificate = file("cert", side->certificate);
    CLI::Option* key = file("key", side->key)->needs(certificate);
    certificate->needs(key);
  }
  command->add_flag("--force", flags->force, "Replace the cluster that is there already");
  command->add_flag("--routers-run", flags->routers_run, "Although routers still follow the old registry");
  command->add_flag("--json", flags->json, "One JSON object: cluster, from, to, keys");
  command->footer(
      "Copies all that is stored but leases (spec, topology, status, history, decision logs, marks);\n"
      "nothing is removed from --from. Stop the controller first. Afterwards start controller and routers\n"
      "with --registry of the new one.\n"
      "Examples:\n"
      "  ringshift registry copy --from http://127.0.0.1:7379 --to "
      "zk://10.0.0.1:2181,10.0.0.2:2181/ringshift \\\n"
      "      --cluster cache\n"
      "  ringshift registry copy --from zk://10.0.0.1:2181 --to http://10.0.0.5:2379 --cluster cache "
      "--force\n"
      "  ringshift registry copy --from http://127.0.0.1:7379 --to https://10.0.0.5:7379 --cluster cache \\\n"
      "      --to-ca new/ca.pem --to-cert new/copier.pem --to-key new/copier.key");
  command->callback([flags, cluster, name_space] {
    if (flags->from.registry == flags->to.registry)
      end_command(kBadUsage, "--from and --to are one registry");
    flags->from.cluster = flags->to.cluster = *cluster;
    flags->from.name_space = flags->to.name_space = *name_space;
    const std::size_t count = copy(*flags);
    if (flags->json) {
      const nlohmann::json out = {
          {"cluster", *cluster}, {"from", flags->from.registry}, {"to", flags->to.registry}, {"keys", count}};
      fmt::print("{}\n", out.dump());
    } else {
      fmt::print("cluster {}: {} keys copied to {}. Start its controller and routers with --registry {}\n",
                 *cluster, count, flags->to.registry, flags->to.registry);
    }
  });
}

}  // namespace ringshift::cli
