// What /metrics says of any process of ours: its build, and the usual process_* figures from /proc.
#pragma once
#include "telemetry/exposition.h"

namespace ringshift::admin {

// Any thread. Cost: three small files of /proc and the list of open descriptors.
void collect_process(telemetry::Exposition& page);

}  // namespace ringshift::admin
