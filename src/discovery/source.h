// Where instances are found: one interface over a static list, a file, DNS, the registry's agents, Consul,
// Nacos and Kubernetes. A source tells what it sees, whole lists only; it never decides who becomes a member
// (membership does).
//
// Threads: start() makes the source's own thread; the sink is called from it, one call at a time, none after
// the destructor returned. Failure: an outage or an answer that cannot be read is trouble(); the last list
// stands, for ever.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::discovery {

// Waits after a failure, of all sources: a thousand programs must not return to a restarted server in one
// moment.
inline constexpr std::chrono::milliseconds kRetryFirst{500};
inline constexpr std::chrono::milliseconds kRetryMax{15'000};

enum class InstanceState { ready, unhealthy, draining };

// A running process that somebody registered. Equality by all fields; a list is sorted by id and names no id
// twice.
struct Instance {
  std::string id;       // Stable; what becomes the member's id.
  std::string address;  // host:port, [v6]:port, unix:/path.
  std::string protocol = "redis";
  InstanceState state = InstanceState::ready;
  std::map<std::string, std::string> labels;  // What the source says of it; zone and weight are never taken
                                              // from here unless the operator's policy names the label.
  bool operator==(const Instance&) const = default;
};

// Gets what a source saw.
class Sink {
 public:
  virtual ~Sink() = default;
  // All instances as of now; called at the first answer, at each change of content and, though the list be
  // the same, when trouble() is over; not at each poll.
  virtual void instances(const std::vector<Instance>& all) = 0;
  // The source cannot be asked, or said what cannot be right; it tries again by itself, with full jitter.
  virtual void trouble(const Error& why) = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] virtual Status start(Sink& sink) = 0;  // Once. `sink` must outlive the source.
  [[nodiscard]] virtual std::string describe()
      const = 0;  // "file /etc/cache.yaml", for messages; no secret in it.
};

}  // namespace ringshift::discovery
