// Asks the embedded registry what etcd has no words for: tokens, the audit, a backup.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "cli/registry_flags.h"

namespace ringshift::cli {

// The answer's body, of the first endpoint that answers.
[[nodiscard]] Result<std::string> ask_registry(const RegistryFlags& flags, std::string_view path,
                                               std::string body);
// Hands on the answer as it comes; `take` says false to end it. retryable when nothing came for `patience`.
[[nodiscard]] Status stream_from_registry(const RegistryFlags& flags, std::string_view path, std::string body,
                                          std::chrono::seconds patience,
                                          const std::function<bool(std::string_view)>& take);

}  // namespace ringshift::cli
