// What to ask, where and how: a source's kind and its fields, as a spec and the command line give them.
//
// kFields in options.cpp is the table; what a kind does not know is refused. M: must be given.
//
// clang-format off
//   field       stat file dns reg cons nac kube  what
//   instances    M                               ID=ADDRESS,...; with all fields in Options
//   path              M                          the list's file, YAML or JSON
//   name                   M                     host name, or name of the SRV records
//   record                 +                     address (A and AAAA), a, aaaa, srv; _...: srv
//   port                   +                 +   of address records; Kubernetes: a name, too
//   servers                +                     HOST:PORT,...: whom to ask [the system's]
//   url                            +    +    +   http(s)://HOST:PORT,...: tried in turn
//   service                        M    M    M   its name there
//   namespace                  +   +    +    +   there
//   cluster                    +                 whose agents [this cluster's]
//   datacenter                     +             [the agent's own]
//   tag                            +             only instances that bear it
//   group                               +        [DEFAULT_GROUP]
//   clusters                            +        only these of the service's clusters
//   stale                          +             any server may answer, not the leader alone
//   api                                 +        v1, v2 [v1]
//   id_from                        +         +   service, node, both [service]; pod, address [pod]
//   id_label                       +    +        the metadata whose value is the id
//   address                                  +   ip, name: the pod's own in the service [ip]
//   token_file                     +         +   the ACL's, the service account's
//   auth_file                           +        holds user:NAME:PASSWORD
//   ca_file                        +    +    +   who signs the server's certificate
//   poll              +    +            +        how often to look; dns: at least so often
//   wait                           +         +   how long a question waits for a change
//   timeout                +       +    +    +   how long until there is no answer
// clang-format on
//
// Plain values. Secrets are in files alone, read anew for each use: they can be renewed, and stand in no
// spec.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/source.h"

namespace ringshift::coord {
class Coordinator;
}

namespace ringshift::discovery {

inline constexpr std::string_view kKinds[] = {"static", "file",  "dns",       "registry",
                                              "consul", "nacos", "kubernetes"};

struct Options {
  std::string kind;
  std::vector<Instance> instances;  // static: the list itself.

  std::string path, name, record, port;
  std::vector<std::string> servers, urls, clusters;
  std::string service, name_space, cluster, datacenter, tag, group, api;
  std::string id_from, id_label, address;
  std::string token_file, auth_file, ca_file;
  bool stale = false;
  std::chrono::milliseconds poll{0}, wait{0}, timeout{0};  // 0: the kind's own default.
};

// A field's value as it was written. Lists: separated by commas.
using Fields = std::map<std::string, std::string>;

// One field of the table above, for whoever reads a spec or makes flags of them.
struct FieldInfo {
  std::string_view name, kinds, required_by, help;  // kinds: names, separated by blanks.
};
[[nodiscard]] std::span<const FieldInfo> field_table();

// Refuses an unknown kind, a field that the kind has not, one that is missing and a value out of its bounds;
// the message begins with the field's name ("source.poll: ..." with `place` "source."), without a line.
[[nodiscard]] Result<Options> read_options(std::string_view kind, const Fields& fields,
                                           std::vector<Instance> instances = {}, std::string_view place = {});

// What a source of kind `registry` watches with; it and the source's own fields say which cluster.
struct Surroundings {
  coord::Coordinator* registry = nullptr;  // Must outlive the source; null: kind registry is refused.
  std::string name_space, cluster;
};

// Nothing is asked before start(). invalid: options that read_options() would not give.
[[nodiscard]] Result<std::unique_ptr<Source>> make_source(Options options, const Surroundings& around = {});

}  // namespace ringshift::discovery
