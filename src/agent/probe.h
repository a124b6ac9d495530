// Looks at the server beside us: does it answer, is it whole, how full and how busy is it. Blocking, up to
// the timeout; one thread at a time. A connection is kept between looks and made again when it broke; on a
// Redis it bears the observers' name, so that no resize takes it for a stranger's.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "agent/record.h"
#include "ringshift/error.h"

namespace ringshift::backend {
class MemberAccess;
}

namespace ringshift::agent {

class Probe {
 public:
  virtual ~Probe() = default;
  // Never fails: what goes wrong is the health's reason. `with_clients`: count the routers' connections, too.
  [[nodiscard]] virtual Health look(bool with_clients) = 0;
};

struct ProbeOptions {
  std::string address;
  std::chrono::milliseconds timeout{1000};
  std::shared_ptr<const backend::MemberAccess> access{};  // Redis alone.
};
// Good: answers PING and INFO, is a master, and has loaded its data.
[[nodiscard]] std::unique_ptr<Probe> make_redis_probe(ProbeOptions options);
// Good: answers version and stats.
[[nodiscard]] std::unique_ptr<Probe> make_memcached_probe(ProbeOptions options);

// Whether a connection to `address` is refused at once, at all addresses of its name.
[[nodiscard]] bool nothing_listens(std::string_view address);

}  // namespace ringshift::agent
