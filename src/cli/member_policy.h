// ringshift member candidates, admit and policy: who may join by the spec's `discovery`.
#pragma once
#include <string>
#include <vector>

#include "cli/resize_start.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_member_policy(CLI::App& member);

// The operator's word on these ids, before the request that it belongs to is asked: drained (nobody admits
// them by policy) or not. Taken back when the request is refused.
void mark_drained(StartFlags& flags, std::vector<std::string> ids, bool drained);

}  // namespace ringshift::cli
