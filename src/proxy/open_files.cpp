#include "proxy/open_files.h"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>

namespace ringshift::proxy {
namespace {

constexpr std::size_t kOfAThread = 4;           // Its event queue, wake-ups, timers.
constexpr std::size_t kOfAMemberAndThread = 2;  // RESP2 and RESP3.
// Private connections, a registry, files that are read anew, a successor that takes over.
constexpr std::size_t kSpare = 32;
constexpr std::size_t kLeastBesideClients = 64;  // What `ringshift doctor` wants to see.
constexpr std::size_t kShareOfTooFew = 4;        // Of a limit below what is reserved, clients get this part.

std::size_t open_now() {
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  std::size_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count - std::min<std::size_t>(count, 3);  // ".", "..", and the directory itself.
}

}  // namespace

OpenFiles::OpenFiles(const Needs& needs)
    : reserved_(open_now() +
                needs.threads * (kOfAThread + needs.listeners + kOfAMemberAndThread * needs.members) +
                kSpare) {}

std::size_t OpenFiles::room_for(std::size_t wanted) const {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t need = wanted + std::max(reserved_, kLeastBesideClients);
  if (limit.rlim_cur < need && limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{std::min(need, limit.rlim_max), limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= need) return wanted;
  const std::size_t room = limit.rlim_cur > reserved_ ? limit.rlim_cur - reserved_ : 0;
  return std::min(wanted, std::max<std::size_t>({room, limit.rlim_cur / kShareOfTooFew, 1}));
}

}  // namespace ringshift::proxy
