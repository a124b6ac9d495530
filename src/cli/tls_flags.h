// The flags of TLS and passwords: for what clients connect to, and for what connects to members.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/access.h"
#include "net/tls.h"
#include "proxy/proxy.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ringshift::cli {

// How every command that speaks to members gets in.
struct MemberFlags {
  bool tls = false, insecure = false;
  std::string ca, certificate, key, name;
  std::string user, password_file;

  // --tls-members... and --member-...
  void add_to(CLI::App& command);
  // Null when no flag asks for anything. The password: from --member-password-file, else from the variable
  // RINGSHIFT_MEMBER_PASSWORD; never from the command line, which everybody on the machine can read.
  [[nodiscard]] Result<std::shared_ptr<backend::MemberAccess>> open() const;
};

// Where clients connect.
struct ListenFlags {
  std::vector<std::string> plain, tls;
  std::string certificate, key, ca, clients = "no", permissions;
  CLI::Option* plain_option = nullptr;

  // --listen, --tls-listen, --tls-..., --unix-permissions. `plain_default`: --listen's, unless there is a
  // --tls-listen alone.
  void add_to(CLI::App& command, const std::string& plain_default);
  // Fills the listeners, permissions and TLS of `options`. Gives the TLS context, null without --tls-listen.
  [[nodiscard]] Result<std::shared_ptr<net::TlsContext>> apply(proxy::Options& options) const;
};

// Reads certificates, keys and passwords anew, for SIGHUP; either may be null. What cannot be read stays as
// it was, and the log says why.
void reload_secrets(std::string_view who, net::TlsContext* listeners, backend::MemberAccess* members);

// "ready: NAME listening on ADDRESS" for the first listener, then for the others: NAME-tls, NAME-plain.
void announce_listeners(const std::string& name, const std::vector<proxy::Options::Listen>& listeners);

}  // namespace ringshift::cli
