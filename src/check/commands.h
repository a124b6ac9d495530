// Between operations and RESP: what a client sends for one, and what the answer means.
#pragma once
#include <string>

#include "check/operation.h"
#include "protocol/resp/value.h"

namespace ringshift::check {

// Appends the command. A written value is made `size` bytes long (see value.h); 0: as it is.
void encode(std::string& out, const Operation& operation, std::size_t size = 0);

enum class Meaning { answer, known_error, unknown_error };
// Outcome and answer of `operation`. An error that says that nothing was executed: known; so is TIMEOUT,
// whose outcome stays unknown. After any other error the outcome is unknown, too: that accuses nobody.
[[nodiscard]] Meaning take_answer(Operation& operation, const protocol::resp::Value& value);

}  // namespace ringshift::check
