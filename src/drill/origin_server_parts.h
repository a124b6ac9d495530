// What the private database servers of origin_server.h have in common. Internal to this folder.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "drill/child_process.h"
#include "drill/origin_server.h"

namespace ringshift::drill {

[[nodiscard]] Result<std::unique_ptr<OriginServer>> start_postgres(const std::string& directory);
[[nodiscard]] Result<std::unique_ptr<OriginServer>> start_mariadb(const std::string& directory);

// A directory of its own for a server's files and socket, owned by the user that it runs as: databases refuse
// to run as root, so root starts them as `user`, or as nobody where there is no such user.
struct ServerHome {
  std::string path;
  SpawnOptions spawning;
};
[[nodiscard]] Result<ServerHome> make_server_home(const std::string& directory, const std::string& name,
                                                  const char* user);
// The first that is there of what `patterns` (of glob) match, the last match of each; or `name` for PATH.
[[nodiscard]] std::string find_program(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace ringshift::drill
