// All peers' placements by name: their options, what is allowed, and how to build one.
//
//   check() first, then build(). Both take an option's absence as the peer's own default.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "placement/peers/peer.h"
#include "placement/peers/server.h"
#include "placement/peers/settings.h"
#include "ringshift/error.h"

namespace ringshift::placement::peers {

inline constexpr std::uint64_t kMaxPeerPoints = 1U << 22;  // Of a whole ring or table.

struct OptionRule {
  enum class Kind : std::uint8_t { word, flag, whole, digest };
  std::string_view name;
  Kind kind = Kind::word;
  std::string_view fallback;                  // The peer's own default; "" when it has none.
  std::span<const std::string_view> words{};  // word: what it may be.
  std::uint64_t least = 0, most = 0;          // whole.
};

struct Entry {
  std::string_view name;
  std::span<const OptionRule> options;
  bool hash_tag = false;
  bool whole_weights = true;     // The peer's configuration takes whole numbers only.
  std::uint32_t max_weight = 0;  // 0: no bound of its own.
  std::unique_ptr<Peer> (*build)(const Options& options, std::span<const Server> servers) = nullptr;

  [[nodiscard]] const OptionRule* find(std::string_view option) const noexcept;
};

[[nodiscard]] std::span<const Entry> catalog() noexcept;
[[nodiscard]] const Entry* find_peer(std::string_view name) noexcept;  // nullptr when there is none.

// Names the first wrong option, what is wrong with it and what is known.
struct OptionProblem {
  std::string option;  // "" when it is about the servers.
  std::string message;
};
[[nodiscard]] std::optional<OptionProblem> check(const Entry& entry, const Options& options);
// Weights and labels, once the options are sound. `position` is the server's.
struct ServerProblem {
  std::size_t position = 0;
  bool label = false;  // Else its weight.
  std::string message;
};
[[nodiscard]] std::optional<ServerProblem> check(const Entry& entry, std::span<const Server> servers);

}  // namespace ringshift::placement::peers
