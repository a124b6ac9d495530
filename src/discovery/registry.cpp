#include "discovery/registry.h"

#include <fmt/format.h>

#include "coord/keys.h"
#include "discovery/json_look.h"
#include "topology/reader.h"

namespace ringshift::discovery {
namespace {

class RegistrySource final : public Source, private coord::Watcher {
 public:
  RegistrySource(coord::Coordinator& registry, std::string name_space, std::string cluster)
      : registry_(registry),
        name_(fmt::format("{}/{}", name_space, cluster)),
        prefix_(coord::ClusterKeys(name_space, cluster).instances()),
        list_(prefix_) {}

  Status start(Sink& sink) override {
    teller_.emplace(sink);
    watch_ = registry_.watch(prefix_, *this);
    return {};
  }
  std::string describe() const override { return "registry, agents of " + name_; }

 private:
  void on_events(const std::vector<coord::Event>& events) override {
    for (const coord::Event& event : events) list_.apply(event);
    teller_->saw(list_.seen());
  }
  void on_resync(const coord::Range& state) override {
    list_.reset(state);
    teller_->saw(list_.seen());
  }
  void on_disconnected(const Error& why) override { teller_->trouble(why); }

  coord::Coordinator& registry_;
  const std::string name_, prefix_;
  AgentList list_;  // The watch's thread's, as is the teller.
  std::optional<Teller> teller_;
  std::unique_ptr<coord::Watch> watch_;  // Last: its thread uses all above.
};

}  // namespace

Result<Instance> parse_agent_record(std::string_view id, std::string_view json) {
  const auto root = topology::parse_json_document(json, id);
  if (!root) return std::unexpected(root.error());
  JsonLook look;
  Instance instance;
  if (look.is_map(*root, "record")) {
    instance.id = look.text(*root, "id");
    instance.address = look.text(*root, "address");
    if (std::string protocol = look.text(*root, "protocol"); !protocol.empty())
      instance.protocol = std::move(protocol);
    // A state that we do not know is none to send anybody to.
    instance.state = parse_state(look.text(*root, "state")).value_or(InstanceState::unhealthy);
    const auto& labels = look.map(*root, "labels");
    for (std::size_t i = 0; i < labels.items.size(); ++i)
      add_label(instance, labels.names[i], look.scalar(labels.items[i], "labels"));
  }
  if (!look.bad() && instance.id != id)
    look.problem("id", fmt::format("{} is another than the key's", topology::shown(instance.id)));
  if (look.bad()) return fail(ErrorKind::invalid, look.wrong());
  return instance;
}

void AgentList::reset(const coord::Range& range) {
  records_.clear();
  for (const coord::KeyValue& kv : range.kvs) records_[kv.key] = {kv.mod_revision, kv.value};
}

void AgentList::apply(const coord::Event& event) {
  const auto found = records_.find(event.kv.key);
  if (found != records_.end() && event.kv.mod_revision <= found->second.revision) return;
  if (event.kind == coord::Event::Kind::put) {
    records_[event.kv.key] = {event.kv.mod_revision, event.kv.value};
    return;
  }
  // Remembered, so that an older put that comes late does not bring it back.
  records_[event.kv.key] = {event.kv.mod_revision, std::nullopt};
  if (records_.size() <= kInstancesMax) return;
  std::erase_if(records_, [](const auto& record) { return !record.second.value; });
}

Seen AgentList::seen() const {
  Seen seen;
  for (const auto& [key, record] : records_) {
    if (!record.value || !key.starts_with(prefix_)) continue;
    const std::string_view id = std::string_view(key).substr(prefix_.size());
    Result<Instance> instance = parse_agent_record(id, *record.value);
    if (instance) {
      seen.add(*std::move(instance));
    } else {
      seen.leave_out(fmt::format("{}: {}", topology::shown(id), instance.error().message));
    }
  }
  return seen;
}

std::unique_ptr<Source> make_registry_source(coord::Coordinator& registry, std::string name_space,
                                             std::string cluster) {
  return std::make_unique<RegistrySource>(registry, std::move(name_space), std::move(cluster));
}

}  // namespace ringshift::discovery
