// The JSON API and the dashboard on the admin port of a controlling role: its token, and what it is made of.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "admin/api.h"
#include "cli/registry_flags.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

struct AdminApiFlags {
  std::string token_file;  // "": DATA/admin.token, or none where there is no DATA.

  // --admin-token-file, with its environment variable. `otherwise` says what holds without it.
  void add_to(CLI::App& command, const std::string& otherwise);
  // The tokens of the file; without one those of `data_dir`, made when there are none; without both: no
  // actions.
  [[nodiscard]] Result<std::optional<admin::Tokens>> open(const std::string& data_dir) const;
};

// Null when there is no admin port. It must outlive the listener, and end before the coordinator does.
[[nodiscard]] std::unique_ptr<admin::Api> show_api(admin::Listener* listener, coord::Coordinator& coordinator,
                                                   const RegistryFlags& registry, std::string role,
                                                   std::shared_ptr<const backend::MemberAccess> access,
                                                   std::optional<admin::Tokens> tokens);

}  // namespace ringshift::cli
