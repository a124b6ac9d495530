// The instances that agents keep under `instances/` of a cluster, in whatever registry the coordinator speaks
// to.
//
// Versions: an event whose revision is not above what is known of its key is dropped; a whole answer (at the
// start, and when history was lost or the registry is another) replaces all.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "coord/coordinator.h"
#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::discovery {

// {"id":..., "address":..., "protocol":..., "state":..., "labels":{...}}, more is not looked at. `id`: the
// key's last part, which the record must bear.
[[nodiscard]] Result<Instance> parse_agent_record(std::string_view id, std::string_view json);

// What is known of each key.
class AgentList {
 public:
  explicit AgentList(std::string prefix) : prefix_(std::move(prefix)) {}
  void reset(const coord::Range& range);
  void apply(const coord::Event& event);
  [[nodiscard]] Seen seen() const;

 private:
  struct Record {
    coord::Revision revision = 0;
    std::optional<std::string> value;  // Nothing: removed.
  };
  const std::string prefix_;
  std::map<std::string, Record, std::less<>>
      records_;  // Removed ones until the next reset, at most kInstancesMax.
};

[[nodiscard]] std::unique_ptr<Source> make_registry_source(coord::Coordinator& registry,
                                                           std::string name_space, std::string cluster);

}  // namespace ringshift::discovery
