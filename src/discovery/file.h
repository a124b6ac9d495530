// A list of instances in a file, YAML or JSON: what an operator or a program writes, also as a mounted
// ConfigMap.
//
//   instances:                      # or the list alone
//     - {id: cache-1, address: "10.0.0.1:6379"}
//     - {id: cache-2, address: "10.0.0.2:6379", state: draining, labels: {zone: a}}
//
// Replace it whole (write beside it, rename over it; Kubernetes swaps a link): inotify watches the directory,
// and a look every `poll` finds what inotify cannot see (NFS). A file that is gone, or cannot be read, keeps
// the last list.
#pragma once
#include <memory>

#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::discovery {

// Errors begin with `place`, and a line where there is one. Strict: whoever writes it can mend it.
[[nodiscard]] Result<std::vector<Instance>> parse_instances(std::string_view text, std::string_view place);

[[nodiscard]] std::unique_ptr<Source> make_file_source(Options options);

}  // namespace ringshift::discovery
