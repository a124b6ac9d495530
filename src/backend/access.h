// How members let us in: TLS and a password, the same for all members of a cluster. Every connection to a
// member uses it: the proxy's, the controller's, the mover's, the plan's.
//
// Invariant: both are whole at any time; reload() reads the files anew, for new connections alone, and what
// cannot be read keeps its old value. The password is never logged nor part of an error.
// Thread rule: everything is thread-safe.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "net/tls.h"
#include "ringshift/error.h"

namespace ringshift::backend {

struct Credentials {
  std::string user;      // "": the default user.
  std::string password;  // "": none, AUTH is not sent.
};

class MemberAccess {
 public:
  static constexpr std::size_t kMaxPasswordBytes = 4096;
  struct Options {
    std::optional<net::TlsContext::Client> tls{};  // nullopt: plain.
    std::string user{};
    std::string password{};       // Unless there is a file.
    std::string password_file{};  // Its first line.
  };

  [[nodiscard]] static Result<std::shared_ptr<MemberAccess>> open(Options options);
  [[nodiscard]] Status reload();
  [[nodiscard]] Credentials credentials() const;
  // Null: plain. Lives as long as this.
  [[nodiscard]] const net::TlsContext* tls() const noexcept { return tls_.get(); }

 private:
  explicit MemberAccess(Options options);
  [[nodiscard]] Status read_password();

  const Options options_;
  std::shared_ptr<net::TlsContext> tls_;
  mutable std::mutex mutex_;
  Credentials credentials_;  // Guarded by mutex_.
};

// Appends AUTH. REQUIRES: a password.
void append_auth(std::string& out, const Credentials& credentials);
// What AUTH's answer means. A member without a password lets everybody in, and so us: members may get their
// passwords one after the other.
[[nodiscard]] bool auth_refused(std::string_view error_text) noexcept;

}  // namespace ringshift::backend
