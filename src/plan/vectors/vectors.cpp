#include "plan/vectors/vectors.h"

#include <fmt/format.h>

#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

// What a file is, told by the fields that only it has.
bool read(const Node& root, const Sibling& sibling, File& out) {
  bool any = false;
  const auto when = [&](bool present, auto reader) {
    if (!present) return;
    any = true;
    reader();
  };
  const std::string algorithm = lower(text(root, "algorithm"));
  when(has(root, "maglev_published") || has(root, "ring_published") || has(root, "extended"),
       [&] { check_envoy(root, out); });
  when(algorithm.starts_with("jump"), [&] { check_jump(root, out); });
  when(has(root, "slots") && has(root, "keys"), [&] { check_key_slots(root, out); });
  when(has(root, "cases") || has(root, "hash_values") || has(root, "memcached_npm"),
       [&] { check_assignments(root, sibling, out); });
  when(has(root, "tie") || has(root, "tie_nginx") || has(root, "big") ||
           has(root, "equal_weight_N_where_points_are_156_not_160"),
       [&] { check_ties(root, sibling, out); });
  when(has(root, "seed0_go") || has(root, "seed1_php") || has(root, "seed2_js") || has(root, "seed3_py"),
       [&] { check_articles(root, out); });
  if (any) return true;
  for (const Node& item : root.items) {
    if (item.kind != Node::Kind::map || !has(item, "first8")) continue;
    check_ring_points(root, sibling, out);
    return true;
  }
  return false;
}

}  // namespace

Result<File> check(std::string_view content, std::string_view place, const Sibling& sibling) {
  const Result<Node> root = topology::parse_json_document(content, place);
  if (!root) return std::unexpected(root.error());
  File out;
  if (root->kind != Node::Kind::map) {
    return fail(ErrorKind::invalid, fmt::format("{}: not a recording: its top is no JSON object", place));
  }
  out.peer = text(*root, "peer");
  if (read(*root, sibling, out)) return out;
  if (has(*root, "keys")) {
    out.recorded = false;
    out.note = fmt::format("a key set of {} keys, no recorded answers", root->find("keys")->items.size());
    return out;
  }
  return fail(ErrorKind::invalid,
              fmt::format("{}: not a recording that is known: it has none of the fields cases, hash_values, "
                          "slots, rows, tables, rings, ties or figures",
                          place));
}

}  // namespace ringshift::plan::vectors
