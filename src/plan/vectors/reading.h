// What the readers of recordings share: fields of a Node, servers in their many forms, keys, base62.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/peers/catalog.h"
#include "plan/vectors/vectors.h"
#include "topology/document.h"

namespace ringshift::plan::vectors {

using placement::peers::Options;
using placement::peers::Server;
using topology::Node;

// "" when the field is absent or null.
[[nodiscard]] std::string text(const Node& map, std::string_view name);
[[nodiscard]] bool has(const Node& map, std::string_view name);  // Present and not null.
[[nodiscard]] std::optional<std::uint64_t> whole(const Node& map, std::string_view name);
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::optional<double> number(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words(std::string_view text);

// How a peer writes a server as one text.
struct ServerForm {
  bool weight_after_colon = false;  // host:port:weight
  std::string default_port;         // What it adds to a host alone.
};
// A list of texts, of [host, port, weight] or [address, weight], or of maps; or a map of address to weight. A
// list `weights` beside them overrides.
[[nodiscard]] Result<std::vector<Server>> read_servers(const Node& map, std::string_view name,
                                                       const ServerForm& form);

[[nodiscard]] Result<std::vector<std::string>> read_keys(const Node& list);  // Hex.

inline constexpr std::string_view kBase62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// A placement, once its options and servers are sound.
[[nodiscard]] Result<std::unique_ptr<placement::peers::Peer>> build(std::string_view algorithm,
                                                                    const Options& options,
                                                                    const std::vector<Server>& servers);

// Counts what matches and keeps the first mismatch.
class Comparison {
 public:
  explicit Comparison(Case& result) : result_(result) {}
  template <class Value>
  void expect(const std::string& what, const Value& recorded, const Value& ours) {
    add(recorded == ours, what, shown(recorded), shown(ours));
  }

 private:
  static std::string shown(const std::string& value) { return value; }
  static std::string shown(double value);
  static std::string shown(std::uint64_t value) { return std::to_string(value); }
  void add(bool same, const std::string& what, const std::string& recorded, const std::string& ours);
  Case& result_;
};

// One file's readers, by its form.
void check_assignments(const Node& root, const Sibling& sibling, File& out);
void check_jump(const Node& root, File& out);
void check_envoy(const Node& root, File& out);
void check_key_slots(const Node& root, File& out);
void check_ring_points(const Node& root, const Sibling& sibling, File& out);
void check_ties(const Node& root, const Sibling& sibling, File& out);
void check_articles(const Node& root, File& out);

// For ties: the cases of `list`, of the peer `peer`, with the key set that `root` names.
void check_case_list(const Node& root, const Node& list, const std::string& pointer, std::string_view peer,
                     const Sibling& sibling, File& out);

// The algorithm of the catalogue that a recording's `peer` means; "" when it is not known.
[[nodiscard]] std::string_view algorithm_of(std::string_view peer);
[[nodiscard]] ServerForm form_of(std::string_view algorithm);

}  // namespace ringshift::plan::vectors
