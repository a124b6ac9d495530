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
[[nodiscard]] std::optional<double> number(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words(std::string_view text);

// How a peer writes a server as one text.
struct ServerForm {
  bool weight_after_colon = false;  // host:port:weight
  std::string default_port;         // What it adds to a host alone,
  std::string socket_port;          // and to a Unix socket.
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

// Counts what matches, keeps the first mismatch, and our answers where their places are given.
class Comparison {
 public:
  explicit Comparison(Case& result) : result_(result) {}
  template <class Value>
  void expect(const std::string& what, const Value& recorded, const Value& ours) {
    add(recorded == ours, what, shown(recorded), shown(ours));
  }
  // As expect, of a number (or a text) that stands at `pointer`.
  template <class Value>
  void expect_at(const std::string& pointer, const std::string& what, const Value& recorded,
                 const Value& ours) {
    expect(what, recorded, ours);
    result_.answers.push_back({pointer, json(ours)});
  }

 private:
  static std::string shown(const std::string& value) { return value; }
  static std::string shown(double value);
  static std::string shown(std::uint64_t value) { return std::to_string(value); }
  static std::string json(const std::string& value) { return '"' + value + '"'; }
  static std::string json(double value) { return shown(value); }
  static std::string json(std::uint64_t value) { return shown(value); }
  void add(bool same, const std::string& what, const std::string& recorded, const std::string& ours);
  Case& result_;
};

// A step of a JSON pointer: "/name", escaped.
[[nodiscard]] std::string step(std::string_view name);
[[nodiscard]] inline std::string step(std::size_t index) { return '/' + std::to_string(index); }

// One block each, by its form. `at` is the JSON pointer of `node`.
struct Place {
  const Node& node;
  std::string at;
  [[nodiscard]] Place child(std::size_t i) const {
    return {node.items[i], at + (node.kind == Node::Kind::map ? step(node.names[i]) : step(i))};
  }
  [[nodiscard]] std::optional<Place> child(std::string_view name) const {
    const Node* found = node.find(name);
    return found == nullptr ? std::nullopt : std::optional<Place>({*found, at + step(name)});
  }
};

// What the blocks of a file share.
struct Context {
  const Node& root;
  std::string_view place;  // The file's name.
  const Sibling& sibling;
};

// Cases with an `assign`; `peer` is theirs unless a case names its own.
void check_cases(const Context& context, const Place& list, std::string_view peer, File& out);
void check_hash_values(const Context& context, const Place& values, File& out);
void check_jump_rows(const Place& rows, File& out);
// A table of maglev or a ring of ring_hash, Envoy's or Cilium's.
[[nodiscard]] bool is_table(const Node& node);
void check_table(const Context& context, const Place& block, File& out);
void check_cilium(const Context& context, const Place& block, Case& result);
void check_key_slots(const Place& root, File& out);
void check_ring_points(const Context& context, const Place& ring, const std::string& title, File& out);
// True when `field` of the root is one of the blocks of ties_rounding.json (or of seed_figures.json).
[[nodiscard]] bool check_ties(const Context& context, const std::string& field, File& out);
[[nodiscard]] bool check_articles(const Context& context, const std::string& field, File& out);

// The algorithm of the catalogue that a recording's `peer` means; "" when it is not known.
[[nodiscard]] std::string_view algorithm_of(std::string_view peer);
[[nodiscard]] ServerForm form_of(std::string_view algorithm);

}  // namespace ringshift::plan::vectors
