// One function a peer: its placement from its options and servers. Every file says how the peer computes and
// which recording proves it. REQUIRES of all: check() found nothing wrong.
#pragma once
#include <memory>
#include <span>

#include "placement/peers/peer.h"
#include "placement/peers/server.h"
#include "placement/peers/settings.h"

namespace ringshift::placement::peers {

using Servers = std::span<const Server>;

[[nodiscard]] std::unique_ptr<Peer> build_libmemcached(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_twemproxy(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_libketama(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_nginx(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_haproxy(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_spymemcached(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_dalli(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_hashring(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_cache_memcached_fast(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_envoy_ring(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_envoy_maglev(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_article_go(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_article_php(const Options& options, Servers servers);
[[nodiscard]] std::unique_ptr<Peer> build_article_js(const Options& options, Servers servers);

// The points themselves, sorted, where a peer reads them in another way than first-at-or-after.
[[nodiscard]] Points32 dalli_points(Servers servers);
[[nodiscard]] Points32 haproxy_points(Servers servers);

// How many points (or table entries) each server got, by position; what a weight rounded to.
[[nodiscard]] std::vector<std::uint64_t> libketama_points(Servers servers);
[[nodiscard]] std::vector<std::uint64_t> hashring_digests(const Options& options, Servers servers);

}  // namespace ringshift::placement::peers
