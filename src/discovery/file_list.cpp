#include "discovery/file.h"
#include "topology/reader.h"

namespace ringshift::discovery {
namespace {

using topology::Node;
using topology::Reader;

Instance read_instance(Reader& reader, const Node& node, const std::string& path) {
  Instance instance;
  if (!reader.map(node, path, {"id", "address", "protocol", "state", "labels"})) return instance;
  reader.text(node, path, "id", instance.id, true);
  reader.text(node, path, "address", instance.address, true);
  reader.text(node, path, "protocol", instance.protocol);
  if (const auto state = reader.word(node, path, "state", {"ready", "unhealthy", "draining"}))
    instance.state = static_cast<InstanceState>(*state);
  const Node* labels = node.find("labels");
  if (labels == nullptr || reader.failed()) return instance;
  const std::string here = topology::join(path, "labels");
  if (labels->kind != Node::Kind::map) {
    reader.problem(labels->line, here, "a map of label to value belongs here");
    return instance;
  }
  if (labels->items.size() > kLabelsMax)
    reader.problem(labels->line, here, "more than 64 labels: leave some out");
  for (std::size_t i = 0; i < labels->items.size() && !reader.failed(); ++i) {
    const std::string& name = labels->names[i];
    const std::size_t before = instance.labels.size();
    add_label(instance, name, reader.scalar(labels->items[i], topology::join(here, name)));
    if (!reader.failed() && instance.labels.size() == before)
      reader.problem(labels->items[i].line, here,
                     "a label is printable ASCII, name and value at most 256 bytes");
  }
  return instance;
}

}  // namespace

Result<std::vector<Instance>> parse_instances(std::string_view text, std::string_view place) {
  const Result<Node> root = topology::parse_document(text, place);
  if (!root) return std::unexpected(root.error());
  Reader reader(place);
  const Node* list = &*root;
  if (root->kind == Node::Kind::map && reader.map(*root, "", {"instances"})) list = root->find("instances");
  std::vector<Instance> all;
  if (list == nullptr || (list->kind != Node::Kind::list && !reader.failed())) {
    reader.problem(root->line, "instances", "a list of instances belongs here; [] when there are none");
  }
  for (std::size_t i = 0; !reader.failed() && i < list->items.size(); ++i) {
    const std::string path = topology::at("instances", i);
    all.push_back(read_instance(reader, list->items[i], path));
    if (reader.failed()) break;
    if (const std::string wrong = check_instance(all.back()); !wrong.empty())
      reader.problem(list->items[i].line, path, wrong);
  }
  if (!reader.failed()) {
    if (const auto wrong = sort_and_check(all)) reader.problem(list->line, "instances", *wrong);
  }
  if (reader.failed()) return std::unexpected(reader.error());
  return all;
}

}  // namespace ringshift::discovery
