// The kinds of sources and their fields, as the spec may name them; src/discovery reads them.
#include "topology/discovery.h"

namespace ringshift::topology {

std::span<const std::string_view> source_fields(std::string_view kind) {
  static constexpr auto kStatic = std::to_array<std::string_view>({"instances"});  // "ID=ADDRESS" each.
  static constexpr auto kFile = std::to_array<std::string_view>({"path", "poll"});
  static constexpr auto kDns =
      std::to_array<std::string_view>({"name", "record", "port", "servers", "poll", "timeout"});
  static constexpr auto kRegistry = std::to_array<std::string_view>({"namespace", "cluster"});
  static constexpr auto kConsul =
      std::to_array<std::string_view>({"url", "service", "namespace", "datacenter", "tag", "stale", "id_from",
                                       "id_label", "token_file", "ca_file", "wait", "timeout"});
  static constexpr auto kNacos =
      std::to_array<std::string_view>({"url", "service", "namespace", "group", "clusters", "api", "id_label",
                                       "auth_file", "ca_file", "poll", "timeout"});
  static constexpr auto kKubernetes =
      std::to_array<std::string_view>({"url", "service", "namespace", "port", "id_from", "address",
                                       "token_file", "ca_file", "wait", "timeout"});
  if (kind == "static") return kStatic;
  if (kind == "file") return kFile;
  if (kind == "dns") return kDns;
  if (kind == "registry") return kRegistry;
  if (kind == "consul") return kConsul;
  if (kind == "nacos") return kNacos;
  return kKubernetes;
}

}  // namespace ringshift::topology
