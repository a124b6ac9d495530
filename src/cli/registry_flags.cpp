#include "cli/registry_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "topology/validate.h"

namespace ringshift::cli {

std::string check_name_flag(const std::string& name) {
  const std::string wrong = topology::check_name(name);
  return wrong.empty() ? wrong : "the name " + wrong;
}

void RegistryFlags::add_to(CLI::App& command, bool cluster_required) {
  add_connection_to(command);
  command.add_option("--namespace", name_space, "Namespace of the cluster")
      ->check(check_name_flag)
      ->envname("RINGSHIFT_NAMESPACE")
      ->capture_default_str();
  CLI::Option* name_option = command.add_option("--cluster", cluster, "Name of the cluster")
                                 ->check(check_name_flag)
                                 ->envname("RINGSHIFT_CLUSTER");
  if (cluster_required) name_option->required();
}

void RegistryFlags::add_connection_to(CLI::App& command) {
  constexpr const char* kGroup = "Registry";
  command
      .add_option("--registry", registry,
                  "URL of the registry, of etcd (http(s)://HOST:PORT) or of ZooKeeper (zk://HOST:PORT/PATH); "
                  "several hosts: separated by commas")
      ->envname("RINGSHIFT_REGISTRY")
      ->capture_default_str();
  command
      .add_option(
          "--registry-auth-file", auth_file,
          "File that says who we are to the registry: token:SECRET (ours), user:NAME:PASSWORD (etcd) or "
          "digest:USER:PASSWORD (ZooKeeper); read again when the registry refuses what it said")
      ->type_name("FILE")
      ->envname("RINGSHIFT_REGISTRY_AUTH_FILE")
      ->group(kGroup);
  const auto tls = [&](const char* flag, std::string& value, const char* text, const char* variable) {
    command.add_option(flag, value, text)->type_name("FILE")->envname(variable)->group(kGroup);
  };
  tls("--registry-ca", ca, "Who signs the registry's certificate, for https:// [the system's CAs]",
      "RINGSHIFT_REGISTRY_CA");
  tls("--registry-cert", certificate, "Our own certificate (PEM), when the registry asks for one",
      "RINGSHIFT_REGISTRY_CERT");
  tls("--registry-key", key, "The key of that certificate", "RINGSHIFT_REGISTRY_KEY");
}

Result<coord::Options> RegistryFlags::options() const {
  coord::Options options;
  for (std::size_t begin = 0; begin <= registry.size();) {
    const std::size_t end = std::min(registry.find(',', begin), registry.size());
    if (end > begin) options.endpoints.push_back(registry.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!auth_file.empty()) {
    Result<coord::Credentials> credentials = coord::read_credentials(auth_file);
    if (!credentials) return std::unexpected(std::move(credentials.error()));
    options.credentials = *std::move(credentials);
    options.credentials_file = auth_file;
  }
  if (certificate.empty() != key.empty()) {
    return fail(ErrorKind::invalid,
                "--registry-cert FILE needs --registry-key FILE, and the other way round");
  }
  options.tls = {ca, certificate, key};
  return options;
}

Result<std::unique_ptr<coord::Coordinator>> RegistryFlags::connect() const {
  for (const auto& [flag, name] : {std::pair{"--namespace", &name_space}, {"--cluster", &cluster}}) {
    // Anything else could be a part of another cluster's keys.
    if (const std::string wrong = topology::check_name(*name); !name->empty() && !wrong.empty())
      return fail(ErrorKind::invalid, fmt::format("{}: {}", flag, wrong));
  }
  Result<coord::Options> made = options();
  if (!made) return std::unexpected(std::move(made.error()));
  return coord::connect(*std::move(made));
}

}  // namespace ringshift::cli
