// The instances of a Nacos service, by asking for the list every `poll` (GET /nacos/v1/ns/instance/list, or
// /v2/). Never by UDP: anybody could send that.
//
// - Unhealthy ones stay in the list as such; one that the console took offline (enabled: false) or gave no
// weight is
//   draining. lastRefTime is a wall clock, and no version: only content counts.
// - Under Nacos's protection (reachProtectionThreshold) it calls all instances healthy: that keeps the last
// list.
// - What an agent of ours registered (ringshift agent --register) and marked unhealthy is so: Nacos itself
// knows for
//   itself only who has not beaten.
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

// How an agent of ours says in the metadata that its instance is there and not well.
inline constexpr std::string_view kNacosState = "ringshift.state";
inline constexpr std::chrono::milliseconds kNacosTimeout{5000};  // Of a request, unless told.

[[nodiscard]] std::unique_ptr<Source> make_nacos_source(Options options);

}  // namespace ringshift::discovery
