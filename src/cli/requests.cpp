#include "cli/requests.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

namespace ringshift::cli {

std::string who_asks() {
  char host[256] = "";
  static_cast<void>(gethostname(host, sizeof(host) - 1));
  const passwd* user = getpwuid(geteuid());  // One thread.
  return fmt::format("{}@{}", user != nullptr ? user->pw_name : std::to_string(geteuid()), host);
}

}  // namespace ringshift::cli
