// TLS settings read from files, for a server or for a client: OpenSSL's context, that can be read anew.
//
// Invariant: current() always gives a whole, usable context. Connections keep the one they began with, so a
// reload() touches new connections alone; a reload() that fails changes nothing and says which file and why.
// TLS 1.2 or later, no renegotiation. A server gives session tickets; a reload ends their use, so that a
// client that a new CA would refuse cannot come back by an old session.
// Thread rule: everything is thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "ringshift/error.h"

struct ssl_ctx_st;

namespace ringshift::net {

class TlsContext {
 public:
  enum class ClientCertificates : std::uint8_t { none, optional, required };
  struct Server {
    std::string certificate, key;  // PEM; the certificate with its chain. The key must not be encrypted.
    std::string ca;                // Who signs the clients' certificates; needed unless `none`.
    ClientCertificates clients = ClientCertificates::none;
  };
  struct Client {
    std::string ca;                // "": the system's store.
    std::string certificate, key;  // Our own, both or neither.
    std::string name;              // What the server's certificate must name; "": the host of the address.
    bool insecure = false;         // Accepts any certificate: whoever is in between reads and writes all.
  };

  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> server(Server files);
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> client(Client files);

  [[nodiscard]] Status reload();
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  // When our own certificate runs out, in Unix seconds; nullopt when we show none.
  [[nodiscard]] std::optional<std::int64_t> certificate_expires() const;
  [[nodiscard]] bool is_server() const noexcept { return std::holds_alternative<Server>(files_); }
  // Of a client's context.
  [[nodiscard]] const Client& client_files() const { return std::get<Client>(files_); }

 private:
  explicit TlsContext(std::variant<Server, Client> files) : files_(std::move(files)) {}
  const std::variant<Server, Client> files_;
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> current_;  // Guarded by mutex_.
};

}  // namespace ringshift::net
