#include "cli/registry_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>

namespace ringshift::cli {
namespace {

// Errors name the file, never what it holds.
Result<coord::Credentials> read_auth_file(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line)) {
    return fail(ErrorKind::invalid,
                fmt::format("--registry-auth-file {}: it cannot be read, or is empty", file));
  }
  return coord::parse_credentials(line, fmt::format("--registry-auth-file {}", file));
}

}  // namespace

void RegistryFlags::add_to(CLI::App& command, bool cluster_required) {
  command
      .add_option("--registry", registry,
                  "URL of the registry, of etcd (http://HOST:PORT) or of ZooKeeper (zk://HOST:PORT/PATH); "
                  "several hosts: separated by commas")
      ->envname("RINGSHIFT_REGISTRY")
      ->capture_default_str();
  command.add_option("--namespace", name_space, "Namespace of the cluster")
      ->envname("RINGSHIFT_NAMESPACE")
      ->capture_default_str();
  command
      .add_option(
          "--registry-auth-file", auth_file,
          "File that says who we are to the registry: digest:USER:PASSWORD (ZooKeeper), user:NAME:PASSWORD "
          "(etcd) or token:SECRET")
      ->envname("RINGSHIFT_REGISTRY_AUTH_FILE");
  CLI::Option* name_option =
      command.add_option("--cluster", cluster, "Name of the cluster")->envname("RINGSHIFT_CLUSTER");
  if (cluster_required) name_option->required();
}

Result<std::unique_ptr<coord::Coordinator>> RegistryFlags::connect() const {
  coord::Options options;
  for (std::size_t begin = 0; begin <= registry.size();) {
    const std::size_t end = std::min(registry.find(',', begin), registry.size());
    if (end > begin) options.endpoints.push_back(registry.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!auth_file.empty()) {
    Result<coord::Credentials> credentials = read_auth_file(auth_file);
    if (!credentials) return std::unexpected(std::move(credentials.error()));
    options.credentials = *std::move(credentials);
  }
  return coord::connect(std::move(options));
}

}  // namespace ringshift::cli
