// One database other than 0 as one worker sees it: an Upstream of each cluster, whose connections have
// selected it, and the reach of each user there.
//
// Made when a client of the worker first selects the database, kept until the worker ends: so a client in
// another database routes as any other, by the Reach that he has. The worker's thread. Cost: the connections
// of an Upstream, once for each cluster. Bound: topology's kMaxDatabases.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proxy/reach.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

struct DatabaseSet {
  std::vector<std::unique_ptr<Upstream>> upstreams;  // By cluster; also those that do not have it so far.
  std::map<std::string, std::unique_ptr<const Reach>, std::less<>>
      reach;  // By user, under the worker's rules.
};

}  // namespace ringshift::proxy
