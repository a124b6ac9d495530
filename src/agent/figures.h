// What an agent shows at its admin port: how its server does, and whether it is registered.
#pragma once
#include "agent/record.h"

namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::agent {

// `health`: of the last look.
void collect(telemetry::Exposition& page, const Record& record, const Health& health, bool registered);

}  // namespace ringshift::agent
