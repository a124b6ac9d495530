// The membership policy as the API shows it (schema Membership of docs/openapi.yaml). Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "membership/report.h"

namespace ringshift::admin {

// `discovery`: the policy's rules as the registry has them, "" when there are none; `report`: what the
// leading controller told last, if it has. Without a policy everything is empty, and `active` false.
[[nodiscard]] std::string membership_text(std::string_view discovery,
                                          const std::optional<membership::Report>& report);

}  // namespace ringshift::admin
