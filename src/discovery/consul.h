// The instances of a Consul service: GET /v1/health/service/NAME as blocking queries.
//
// - All instances are asked for, not the passing ones alone: a critical check makes an instance unhealthy,
// maintenance
//   (of the service or its node) draining; warning counts as ready. So a check that fails does not look like
//   a removal.
// - X-Consul-Index: an answer with a lower one than before is dropped and the list read anew from 0; it is
// never taken
//   below 1. That a question returns proves no change: only content counts.
// - Two questions at once, then one a second, and down to one in 15 s while answers bring nothing new.
// - Other than 200, or an answer that is none, keeps the list. With `stale`, so does a server without a
// leader.
//   So does one that hides entries from our token.
// - The token goes into X-Consul-Token, and is read from its file for each question.
#pragma once
#include <memory>

#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::discovery {

[[nodiscard]] Result<Seen> parse_consul_health(std::string_view json, const Options& options);

[[nodiscard]] std::unique_ptr<Source> make_consul_source(Options options);

}  // namespace ringshift::discovery
