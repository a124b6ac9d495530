// The instances of a Nacos service, by asking for the list every `poll` (GET /nacos/v1/ns/instance/list, or
// /v2/). Never by UDP: anybody could send that.
//
// - Unhealthy ones stay in the list as such; one that the console took offline (enabled: false) or gave no
// weight is
//   draining. lastRefTime is a wall clock, and no version: only content counts.
// - Under Nacos's protection (reachProtectionThreshold) it calls all instances healthy: that keeps the last
// list.
// - Login by POST /nacos/v1/auth/login with the auth file's user:NAME:PASSWORD; the token goes into a header,
// is
//   renewed when four fifths of its time have gone, and once more when it is refused.
#pragma once
#include <chrono>
#include <memory>

#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::discovery {

// Of the API's v1, or v2 with the same list inside of "data".
[[nodiscard]] Result<Seen> parse_nacos_list(std::string_view json, const Options& options);

struct NacosToken {
  std::string token;
  std::chrono::seconds ttl{0};
};
[[nodiscard]] Result<NacosToken> parse_nacos_login(std::string_view json);

[[nodiscard]] std::unique_ptr<Source> make_nacos_source(Options options);

}  // namespace ringshift::discovery
