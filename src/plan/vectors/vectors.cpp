#include "plan/vectors/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

// Fields that say something of the others, and are no answers.
constexpr std::array<std::string_view, 14> kAbout{"keys", "class", "tie_keys", "tie_nginx_keys", "doc",
                                                  "note", "notes", "comment",  "sources",        "source",
                                                  "peer", "call",  "labels",   "hosts"};

bool all_of(const Node& node, auto test) {
  return node.kind != Node::Kind::null && !node.items.empty() && std::ranges::all_of(node.items, test);
}
bool is_case(const Node& node) { return node.kind == Node::Kind::map && has(node, "assign"); }
bool is_ring(const Node& node) {
  return node.kind == Node::Kind::map && (has(node, "first8") || has(node, "last8"));
}
bool is_values(const Node& node) {
  return node.kind == Node::Kind::map && (has(node, "values") || has(node, "roll31"));
}
bool has_rows(const Node& node) {
  const Node* rows = node.kind == Node::Kind::map ? node.find("rows") : nullptr;
  return rows != nullptr && rows->kind == Node::Kind::list;
}

// npm_hashring.json holds a second peer; any other block with cases names its own, or is named after it.
std::string peer_of(const Context& context, const std::string& field, const Node& block) {
  if (has(block, "peer")) return text(block, "peer");
  if (field == "memcached_npm") return "npm memcached";
  return algorithm_of(field).empty() ? text(context.root, "peer") : field;
}

// One block of a file, by what it holds; false when nothing in it is understood.
bool read_block(const Context& context, const std::string& field, const Place& block, File& out) {
  const Node& node = block.node;
  if (check_ties(context, field, out) || check_articles(context, field, out)) return true;
  if (field == "cases" || all_of(node, is_case)) {
    if (node.kind != Node::Kind::list) return false;
    check_cases(context, block, text(context.root, "peer"), out);
  } else if (field == "hash_values" || all_of(node, is_values)) {
    check_hash_values(context, block, out);
  } else if (is_ring(node)) {
    check_ring_points(context, block, field, out);
  } else if (has_rows(node)) {
    check_jump_rows(*block.child("rows"), out);
  } else if (field == "rows" && node.kind == Node::Kind::list) {
    check_jump_rows(block, out);
  } else if (is_table(node)) {
    check_table(context, block, out);
  } else if (all_of(node, is_table)) {
    for (std::size_t i = 0; i < node.items.size(); ++i) check_table(context, block.child(i), out);
  } else if (const auto cases = block.child("cases"); cases && cases->node.kind == Node::Kind::list) {
    check_cases(context, *cases, peer_of(context, field, node), out);
  } else {
    return false;
  }
  return true;
}

void read(const Context& context, File& out) {
  const Node& root = context.root;
  if (has(root, "slots") && has(root, "keys")) check_key_slots({root, ""}, out);
  // A file may be one table, or one ring, and nothing else.
  const bool whole_table = is_table(root);
  if (whole_table) check_table(context, {root, ""}, out);
  for (std::size_t i = 0; i < root.items.size(); ++i) {
    const std::string& field = root.names[i];
    const bool block = root.items[i].kind == Node::Kind::list || root.items[i].kind == Node::Kind::map;
    if (!block || whole_table || std::ranges::find(kAbout, field) != kAbout.end()) continue;
    if (field == "slots" && has(root, "keys")) continue;
    if (read_block(context, field, {root.items[i], step(field)}, out)) continue;
    Case& result = out.cases.emplace_back();
    result.name = field;
    result.problem = fmt::format(
        "the block '{:.60}' (line {}) is not understood: it is neither cases with an 'assign', hash values, "
        "tables, rings, rows, ties nor figures",
        field, root.items[i].line);
  }
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
  read({*root, place, sibling}, out);
  if (!out.cases.empty()) return out;
  out.recorded = false;
  if (const Node* keys = root->find("keys"); keys != nullptr && keys->kind == Node::Kind::list) {
    out.note = fmt::format("a key set of {} keys, no recorded answers", keys->items.size());
    return out;
  }
  return fail(ErrorKind::invalid,
              fmt::format("{}: not a recording that is known: it has none of the fields cases, hash_values, "
                          "slots, rows, tables, rings, ties or figures",
                          place));
}

}  // namespace ringshift::plan::vectors
