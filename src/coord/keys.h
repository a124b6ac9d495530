// The registry's key layout: /ringshift/<namespace>/<cluster>/<name>.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ringshift::coord {

struct ClusterKeys {
  std::string prefix;  // Ends with '/'.

  ClusterKeys(std::string_view name_space, std::string_view cluster)
      : prefix("/ringshift/" + std::string(name_space) + "/" + std::string(cluster) + "/") {}

  [[nodiscard]] std::string spec() const { return prefix + "spec"; }
  [[nodiscard]] std::string request() const { return prefix + "request"; }  // JSON, operators to controller.
  [[nodiscard]] std::string topology() const { return prefix + "topology"; }      // What routers obey.
  [[nodiscard]] std::string status() const { return prefix + "status"; }          // `resize status --json`.
  [[nodiscard]] std::string controller() const { return prefix + "controller"; }  // Leased lock.
  [[nodiscard]] std::string routers() const { return prefix + "routers/"; }
  [[nodiscard]] std::string router(std::string_view id) const { return routers() + std::string(id); }
  [[nodiscard]] std::string instances() const { return prefix + "instances/"; }
  [[nodiscard]] std::string checkpoints() const { return prefix + "checkpoint/"; }
  [[nodiscard]] std::string next() const { return prefix + "next"; }  // The start that follows a rollback.
  [[nodiscard]] std::string origin() const {
    return prefix + "origin";
  }  // Operators' programs: queries a second.
  [[nodiscard]] std::string log() const { return prefix + "log/"; }  // + resize id + "/" + number, 6 digits.
  [[nodiscard]] std::string history() const { return prefix + "history/"; }  // + revision, 20 digits.
};

inline constexpr std::string_view kDefaultNamespace = "default";

// The epoch in versions that come from a registry (a static cluster's is 0). A process follows one registry
// for its life and obeys no other, so the number need not tell registries apart.
inline constexpr std::uint64_t kRegistryEpoch = 1;

}  // namespace ringshift::coord
