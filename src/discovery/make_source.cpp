#include <fmt/format.h>

#include "discovery/consul.h"
#include "discovery/dns.h"
#include "discovery/file.h"
#include "discovery/kubernetes.h"
#include "discovery/nacos.h"
#include "discovery/options.h"
#include "discovery/registry.h"
#include "discovery/static.h"

namespace ringshift::discovery {

Result<std::unique_ptr<Source>> make_source(Options options, const Surroundings& around) {
  if (options.kind == "static") return make_static_source(std::move(options));
  if (options.kind == "file") return make_file_source(std::move(options));
  if (options.kind == "dns") return make_dns_source(std::move(options));
  if (options.kind == "consul") return make_consul_source(std::move(options));
  if (options.kind == "nacos") return make_nacos_source(std::move(options));
  if (options.kind == "kubernetes") return make_kubernetes_source(std::move(options));
  if (options.kind != "registry")
    return fail(ErrorKind::invalid, fmt::format("there is no source of kind '{}'", options.kind));
  if (around.registry == nullptr) return fail(ErrorKind::invalid, "kind registry: no registry is named here");
  const std::string& name_space = options.name_space.empty() ? around.name_space : options.name_space;
  const std::string& cluster = options.cluster.empty() ? around.cluster : options.cluster;
  if (cluster.empty()) return fail(ErrorKind::invalid, "cluster: is missing: whose agents?");
  return make_registry_source(*around.registry, name_space.empty() ? "default" : name_space, cluster);
}

}  // namespace ringshift::discovery
