// The Authorization header of requests to etcd and to the embedded registry.
//
// A user's password is exchanged for a token at /v3/auth/authenticate: at first use, and again once the
// registry refused the one we have (etcd's simple tokens live five minutes, and die with the server that
// keeps them). Where authentication is off yet, requests go without one, so that the file can be rolled out
// before it is turned on. What the registry refuses is looked up in the file again, where somebody may have
// put another token or password: so a rotation needs no restart. Thread-safe, and no lock is held while
// asking; two threads may ask at once, which is harmless.
#pragma once
#include <chrono>
#include <expected>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coord/credentials.h"
#include "http/client.h"

namespace ringshift::coord {

class EtcdAccess {
 public:
  // Sends a request whole; the caller's own way, since a watch's must be one that can be cancelled.
  using Send = std::function<std::expected<http::Answer, http::TransportError>(const http::Call&)>;

  // `file`: where the credentials are from, "" when they do not change.
  explicit EtcdAccess(Credentials credentials, std::string file = "")
      : file_(std::move(file)), credentials_(std::move(credentials)) {}

  // Headers to add for `endpoint`, after having asked it for a token where one is needed. Failures are
  // `unsent`: the request itself was not made.
  [[nodiscard]] std::expected<std::vector<std::string>, http::TransportError> headers(
      const std::string& endpoint, std::chrono::milliseconds timeout, const Send& send);
  // Whether `answer` says that the token sent in `headers` is none (any more), and asking for another one may
  // help. Then nothing was done, and the next headers() asks.
  [[nodiscard]] bool refused(const std::vector<std::string>& headers, int status, std::string_view answer);
  // The same for the reason why etcd cancelled a watch.
  void watch_cancelled(const std::vector<std::string>& headers, std::string_view reason);

 private:
  void forget(const std::vector<std::string>& headers);
  [[nodiscard]] Credentials credentials() const;
  // Whether there are others now than `used`: another thread has got them, or the file has them.
  [[nodiscard]] bool renewed(const Credentials& used);
  // A token for the name and the password; "" where authentication is off.
  [[nodiscard]] std::expected<std::string, http::TransportError> authenticate(
      const Credentials& as, const std::string& endpoint, std::chrono::milliseconds timeout,
      const Send& send);

  const std::string file_;
  mutable std::mutex mutex_;
  Credentials credentials_;           // Guarded by mutex_.
  std::optional<std::string> token_;  // Guarded by mutex_. Empty: authentication is off, as we were told.
};

}  // namespace ringshift::coord
