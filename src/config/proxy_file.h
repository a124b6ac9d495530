// The file of `ringshift proxy --config`: see docs/proxy.md.
//
// Strict: what it does not know is an error, with the place and the nearest name that is known. Pure but for
// `read`, which gets the files of users that it names. What the file does not say is absent.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/proxy.h"
#include "proxy/rules.h"
#include "ringshift/error.h"

namespace ringshift::config {

// Where a cluster's topology comes from: a spec, or a registry.
struct ClusterSource {
  std::string name;
  std::string spec;                    // A path, as open() takes it.
  std::string registry;                // URLs, separated by commas.
  std::string name_space, name_there;  // At the registry; name_there: `name`, unless it says so.
  bool operator==(const ClusterSource&) const = default;
};

struct ProxyFile {
  std::vector<std::string> listen;
  std::optional<std::uint64_t> threads, max_clients, max_in_flight, max_output_bytes, cut_output_bytes,
      max_member_queue_bytes;
  std::optional<std::chrono::milliseconds> request_timeout, connect_timeout, hold_timeout, shutdown_grace,
      drain_timeout;
  std::optional<std::chrono::milliseconds> slow_log;
  std::optional<std::string> id;
  std::optional<std::string> handover;  // A path, as open() takes it.
  std::optional<bool> allow_flush;
  std::vector<ClusterSource> clusters;  // Empty: the command line says it, and there are no routes.
  proxy::Rules rules;
};

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

// Paths in it are taken from the directory of `place`. Errors: "place:line:column: what is wrong".
[[nodiscard]] Result<ProxyFile> parse_proxy_file(std::string_view text, const std::string& place,
                                                 const ReadFile& read);

}  // namespace ringshift::config
