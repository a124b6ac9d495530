#include "cli/admin_api.h"

#include <CLI/CLI.hpp>

#include "admin/dashboard.h"

namespace ringshift::cli {

void AdminApiFlags::add_to(CLI::App& command, const std::string& otherwise) {
  command
      .add_option("--admin-token-file", token_file,
                  "Tokens of those who may act through the admin port, a line each: TOKEN or NAME TOKEN; "
                  "mode 0600 [" +
                      otherwise + "]")
      ->type_name("FILE")
      ->envname("RINGSHIFT_ADMIN_TOKEN_FILE");
}

Result<std::optional<admin::Tokens>> AdminApiFlags::open(const std::string& data_dir) const {
  if (token_file.empty() && data_dir.empty()) return std::nullopt;
  Result<admin::Tokens> tokens = token_file.empty() ? admin::Tokens::read_or_make(data_dir + "/admin.token")
                                                    : admin::Tokens::read(token_file);
  if (!tokens) return fail(tokens.error().kind, "--admin-token-file: " + tokens.error().message);
  return *std::move(tokens);
}

std::unique_ptr<admin::Api> show_api(admin::Listener* listener, coord::Coordinator& coordinator,
                                     const RegistryFlags& registry, std::string role,
                                     std::shared_ptr<const backend::MemberAccess> access,
                                     std::optional<admin::Tokens> tokens) {
  if (listener == nullptr) return nullptr;
  admin::ApiOptions options{
      std::move(role),     registry.keys(),   {registry.registry, registry.name_space, registry.cluster},
      std::move(access),   std::move(tokens),
      /*ask_members=*/true};
  auto api = std::make_unique<admin::Api>(coordinator, std::move(options));
  api->attach(*listener);
  listener->add("GET", "/", admin::dashboard());
  return api;
}

}  // namespace ringshift::cli
