// The admin port: the flags that every long-running command shares.
#pragma once
#include <memory>
#include <string>

#include "admin/listener.h"

namespace CLI {
class App;
}
namespace ringshift::backend {
class MemberAccess;
}
namespace ringshift::net {
class TlsContext;
}
namespace ringshift::proxy {
class Proxy;
}
namespace ringshift::resize {
class Controller;
}

namespace ringshift::cli {

inline constexpr const char* kAdminDefault = "127.0.0.1:7380";  // Of `serve` and `up`.

struct AdminFlags {
  std::string listen = "none";  // HOST:PORT; "none": there is no admin port.

  // --admin-listen, with its environment variable.
  void add_to(CLI::App& command, const std::string& default_listen);
  [[nodiscard]] bool wanted() const { return !listen.empty() && listen != "none"; }
  // Listens; null when none is wanted. An address that cannot be had is an error that names the flag. Nothing
  // is printed: announce_admin() does when the process is ready.
  [[nodiscard]] Result<std::unique_ptr<admin::Listener>> open() const;
  // For a proxy that has just taken over: its predecessor lets go of the port in a moment. Null, and a line
  // in the log, when he does not: a proxy that serves must not end for that.
  [[nodiscard]] std::unique_ptr<admin::Listener> open_after_predecessor() const;
};

// "ready: admin listening on URL". Nothing when there is no admin port.
void announce_admin(const admin::Listener* listener);

// What each part shows there, and when it is ready. The part must outlive the listener; a null listener:
// nothing.
void show_proxy(admin::Listener* listener, proxy::Proxy& proxy);
void show_controller(admin::Listener* listener, const resize::Controller& controller,
                     const std::string& cluster);
void show_certificates(admin::Listener* listener, const net::TlsContext* clients,
                       const backend::MemberAccess* members);

}  // namespace ringshift::cli
