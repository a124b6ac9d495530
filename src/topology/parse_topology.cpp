#include <fmt/format.h>

#include "topology/parse.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

constexpr std::uint64_t kMaxU64 = ~std::uint64_t{0};

// [[begin, end], ...], half open.
SliceSet read_slices(Reader& reader, const Node& node, const std::string& path) {
  SliceSet set;
  if (!reader.list(node, path)) return set;
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    const Node& item = node.items[i];
    const std::string here = at(path, i);
    if (item.kind != Node::Kind::list || item.items.size() != 2) {
      reader.problem(item.line, here, "a range of slices is written [begin, end]");
      break;
    }
    const auto begin = reader.scalar_whole(item.items[0], here, kSliceCount);
    const auto end = reader.scalar_whole(item.items[1], here, kSliceCount);
    if (begin && end) set.push_back({static_cast<std::uint16_t>(*begin), static_cast<std::uint16_t>(*end)});
  }
  return set;
}

Fence read_fence(Reader& reader, const Node& node) {
  Fence fence;
  if (!reader.map(node, "fence", {"epoch", "step", "run_ids"})) return fence;
  reader.whole(node, "fence", "epoch", kMaxU64, fence.epoch);
  reader.whole(node, "fence", "step", kMaxU64, fence.step);
  const Node* run_ids = node.find("run_ids");
  if (run_ids == nullptr) return fence;
  if (run_ids->kind != Node::Kind::map)
    reader.problem(run_ids->line, "fence.run_ids", "a map of member to run id belongs here");
  for (std::size_t i = 0; i < run_ids->names.size(); ++i) {
    const std::string& id = run_ids->names[i];
    fence.run_ids[id] = reader.scalar(run_ids->items[i], join("fence.run_ids", id));
  }
  return fence;
}

Resize read_resize(Reader& reader, const Node& node) {
  Resize resize;
  const std::string path = "resize";
  if (!reader.map(
          node, path,
          {"id", "placement", "members", "rollback", "phase", "read_order", "done", "active", "lost"})) {
    return resize;
  }
  for (const std::string_view name : {"placement", "members", "phase"}) {
    if (node.find(name) == nullptr)
      reader.problem(node.line, path, fmt::format("the field '{}' is missing", name));
  }
  if (reader.failed()) return resize;
  reader.text(node, path, "id", resize.id, true);
  resize.placement = read_placement(reader, *node.find("placement"), "resize.placement");
  resize.members = read_members(reader, *node.find("members"), "resize.members");
  reader.flag(node, path, "rollback", resize.rollback);
  if (const auto phase = reader.word(node, path, "phase", {"prep", "hold", "dual"})) {
    resize.phase = static_cast<Phase>(*phase);
  }
  if (const auto order = reader.word(node, path, "read_order", {"old_first", "new_first"})) {
    resize.read_order = static_cast<ReadOrder>(*order);
  }
  if (const Node* done = node.find("done")) resize.done = read_slices(reader, *done, "resize.done");
  if (const Node* active = node.find("active")) resize.active = read_slices(reader, *active, "resize.active");
  if (const Node* lost = node.find("lost"); lost != nullptr && reader.list(*lost, "resize.lost")) {
    for (std::size_t i = 0; i < lost->items.size() && !reader.failed(); ++i)
      resize.lost.push_back(reader.scalar(lost->items[i], at("resize.lost", i)));
  }
  return resize;
}

}  // namespace

Result<Topology> parse_topology(std::string_view json, std::string_view place) {
  const Result<Node> root = parse_json_document(json, place);
  if (!root) return std::unexpected(root.error());
  Reader reader(place);
  Topology topology;
  if (reader.map(*root, "", {"spec", "factors", "fence", "resize"})) {
    if (const Node* spec = root->find("spec")) {
      topology.spec = read_spec(reader, *spec, "spec");
    } else {
      reader.problem(root->line, "", "the field 'spec' is missing");
    }
    if (const Node* factors = root->find("factors"); factors != nullptr && !reader.failed()) {
      if (factors->kind != Node::Kind::map)
        reader.problem(factors->line, "factors", "a map of member to factor belongs here");
      for (std::size_t i = 0; i < factors->names.size(); ++i) {
        const std::string& id = factors->names[i];
        const auto value = reader.scalar_whole(factors->items[i], join("factors", id), kFullFactor - 1);
        if (value) topology.factors[id] = static_cast<std::uint32_t>(*value);
      }
    }
    if (const Node* fence = root->find("fence")) topology.fence = read_fence(reader, *fence);
    if (const Node* resize = root->find("resize"); resize != nullptr && resize->kind != Node::Kind::null) {
      topology.resize = read_resize(reader, *resize);
    }
  }
  if (reader.failed()) return std::unexpected(reader.error());
  if (const auto problem = check_topology(topology)) {
    return fail(ErrorKind::invalid, describe(place, 0, problem->path, problem->message));
  }
  return topology;
}

}  // namespace ringshift::topology
