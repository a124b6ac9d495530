// ringshift doctor: looks at a whole deployment and says what must be mended.
#include "doctor/doctor.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/registry_flags.h"
#include "cli/spec_file.h"
#include "cli/tls_flags.h"
#include "coord/zookeeper/paths.h"

namespace ringshift::cli {
namespace {

using doctor::Finding;
using doctor::Level;
using nlohmann::json;

struct Flags {
  RegistryFlags registry;
  MemberFlags members;
  std::string spec;
  std::vector<std::string> proxies;
  std::string proxy_user, proxy_password_file, proxy_ca;
  bool proxy_tls = false;
  bool json = false, strict = false, verbose = false;
};

const char* word(Level level) {
  constexpr const char* kWords[] = {"ok", "warning", "problem"};
  return kWords[static_cast<int>(level)];
}

struct Counts {
  std::size_t of[3] = {};
  explicit Counts(const std::vector<Finding>& found) {
    for (const Finding& one : found) ++of[static_cast<int>(one.level)];
  }
  [[nodiscard]] std::size_t ok() const { return of[0]; }
  [[nodiscard]] std::size_t warnings() const { return of[1]; }
  [[nodiscard]] std::size_t problems() const { return of[2]; }
};

void print_json(const std::vector<Finding>& found) {
  const Counts counts(found);
  json checks = json::array();
  for (const Finding& one : found) {
    checks.push_back({{"group", one.group},
                      {"check", one.check},
                      {"subject", one.subject},
                      {"level", word(one.level)},
                      {"message", one.message},
                      {"fix", one.fix}});
  }
  const json out = {{"checks", checks},
                    {"ok", counts.ok()},
                    {"warnings", counts.warnings()},
                    {"problems", counts.problems()}};
  fmt::print("{}\n", out.dump(-1, ' ', false, json::error_handler_t::replace));
}

// Names and errors may hold bytes that a terminal obeys.
std::string shown(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

// One line a check. What is well on several members is one line, too, unless all are wanted.
void print_text(const std::vector<Finding>& found, bool every_one) {
  std::map<std::pair<std::string, std::string>, std::size_t> well;
  for (const Finding& one : found) {
    if (one.level == Level::ok) ++well[{one.group, one.check}];
  }
  std::string group;
  for (const Finding& one : found) {
    std::size_t& same = well[{one.group, one.check}];
    const bool joined = !every_one && one.level == Level::ok && same != 1;
    if (joined && same == 0) continue;  // Told already.
    if (one.group != group) fmt::print("{}{}\n", group.empty() ? "" : "\n", one.group);
    group = one.group;
    const std::string subject = one.subject.empty() ? "" : one.subject + " ";
    if (joined) {
      fmt::print("  {:<8} {}: {} are well\n", "ok", one.check, same);
      same = 0;
      continue;
    }
    fmt::print("  {:<8} {}: {}{}\n", word(one.level), one.check, shown(subject), shown(one.message));
    if (!one.fix.empty()) fmt::print("           fix: {}\n", shown(one.fix));
  }
  const Counts counts(found);
  fmt::print("\n{} problem{}, {} warning{}, {} checks are well\n", counts.problems(),
             counts.problems() == 1 ? "" : "s", counts.warnings(), counts.warnings() == 1 ? "" : "s",
             counts.ok());
}

Result<std::shared_ptr<backend::MemberAccess>> proxy_access(const Flags& flags) {
  backend::MemberAccess::Options options;
  if (flags.proxy_tls) options.tls = net::TlsContext::Client{flags.proxy_ca, "", "", "", false};
  options.user = flags.proxy_user;
  options.password_file = flags.proxy_password_file;
  if (!flags.proxy_tls && flags.proxy_password_file.empty()) return nullptr;
  return backend::MemberAccess::open(std::move(options));
}

std::vector<std::string> endpoints_of(const std::string& registry) {
  std::vector<std::string> urls;
  if (registry.starts_with(coord::zookeeper::kScheme)) {
    const auto ensemble = coord::zookeeper::parse_ensemble(registry);
    if (!ensemble) return urls;  // connect() has said what is wrong.
    for (const std::string& host : ensemble->endpoints) {
      urls.push_back(std::string(coord::zookeeper::kScheme) + host + ensemble->chroot);
    }
    return urls;
  }
  for (std::size_t begin = 0; begin <= registry.size();) {
    const std::size_t end = std::min(registry.find(',', begin), registry.size());
    std::string url = registry.substr(begin, end - begin);
    while (url.ends_with('/')) url.pop_back();
    if (!url.empty()) urls.push_back(std::move(url));
    begin = end + 1;
  }
  return urls;
}

Result<std::vector<Finding>> examine(const Flags& flags) {
  doctor::Options options;
  options.proxies = flags.proxies;
  auto members = flags.members.open();
  if (!members) return std::unexpected(members.error());
  auto proxies = proxy_access(flags);
  if (!proxies) return std::unexpected(proxies.error());
  options.member_access = std::move(*members);
  options.proxy_access = std::move(*proxies);
  if (!flags.spec.empty()) {
    const auto spec = read_spec(flags.spec);
    if (!spec) return std::unexpected(spec.error());
    return doctor::examine_static(*spec, options);
  }
  const auto coordinator = flags.registry.connect();
  if (!coordinator) return std::unexpected(coordinator.error());
  return doctor::examine_cluster(**coordinator, flags.registry.keys(), endpoints_of(flags.registry.registry),
                                 options);
}

int run_doctor(const Flags& flags) {
  if (flags.spec.empty() == flags.registry.cluster.empty()) {
    report(flags.spec.empty()
               ? "say --cluster NAME for a cluster of the registry, or --spec FILE for a static one"
               : "--spec and --cluster exclude each other: a static cluster has no registry (is "
                 "RINGSHIFT_CLUSTER set?)");
    return kBadUsage;
  }
  const Result<std::vector<Finding>> found = examine(flags);
  if (!found) {
    report(found.error().message);
    return kBadUsage;  // Of flags and files: nothing was looked at.
  }
  if (flags.json) {
    print_json(*found);
  } else {
    print_text(*found, flags.verbose);
  }
  const Counts counts(*found);
  return counts.problems() != 0 || (flags.strict && counts.warnings() != 0) ? kFailed : kDone;
}

}  // namespace

void add_doctor(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("doctor", "Look at a whole deployment and say what must be mended");
  flags->registry.add_to(*command, /*cluster_required=*/false);
  flags->members.add_to(*command);
  constexpr const char* kProxies = "Proxies";
  command->add_option("--spec", flags->spec, "A static cluster's spec, instead of a registry's cluster")
      ->type_name("FILE");
  command
      ->add_option("--proxy", flags->proxies,
                   "Ask this proxy itself; may be repeated. Those of a registry tell there what they reach")
      ->type_name("HOST:PORT")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kProxies);
  command->add_option("--proxy-user", flags->proxy_user, "Their user [the default user]")->group(kProxies);
  command
      ->add_option("--proxy-password-file", flags->proxy_password_file, "His password, the file's first line")
      ->type_name("FILE")
      ->group(kProxies);
  command->add_flag("--proxy-tls", flags->proxy_tls, "Connect to them with TLS")->group(kProxies);
  command->add_option("--proxy-ca", flags->proxy_ca, "Who signs their certificates [the system's CAs]")
      ->type_name("FILE")
      ->needs("--proxy-tls")
      ->group(kProxies);
  command->add_flag("--json", flags->json, "JSON, with every check");
  command->add_flag("--strict", flags->strict, "End with 1 also when there are only warnings");
  command->add_flag("--verbose", flags->verbose, "A line for each member and router, also when all is well");
  command->footer(
      "Changes nothing. Ends with 0 when nothing must be mended, with 1 when something must, with 2 when it "
      "was\n"
      "asked wrongly.\n"
      "Examples:\n"
      "  ringshift doctor --cluster cache\n"
      "  ringshift doctor --cluster cache --json --strict\n"
      "  ringshift doctor --spec cache.yaml --proxy 127.0.0.1:6380");
  command->callback([flags] {
    if (const int status = run_doctor(*flags); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
