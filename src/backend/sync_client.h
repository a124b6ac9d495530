// A blocking connection to one Redis member, for controller, mover, CLI and load generators; never on an
// event loop. Not thread-safe: one thread at a time.
//
// Nothing is ever sent twice by this class: RESIZE.md needs each CLAIM to be sent once. Failure: a timeout,
// a broken connection or a reply that is no RESP closes the connection for good, and that call and all
// later ones fail as `retryable`; the message says whether the command may have been executed. An error
// reply of the member (-ERR ...) is a Value, not a failure.
#pragma once
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/access.h"
#include "net/tls_session.h"
#include "protocol/resp/reply_framer.h"
#include "protocol/resp/value.h"
#include "ringshift/error.h"

namespace ringshift::backend {

struct SyncOptions {
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds request_timeout{3000};  // Of a whole call or pipeline.
  std::string name;                                 // For CLIENT SETNAME; "" for none.
  std::shared_ptr<const MemberAccess> access;       // Null: plain, without a password.
};

class SyncClient {
 public:
  static constexpr std::size_t kMaxReplyBytes = (512U << 20) + (1U << 20);
  using Value = protocol::resp::Value;

  // `address` as in a topology: "host:port", "[v6]:port", "unix:/path".
  [[nodiscard]] static Result<std::unique_ptr<SyncClient>> connect(std::string_view address,
                                                                   SyncOptions options = {});
  ~SyncClient();
  SyncClient(const SyncClient&) = delete;
  SyncClient& operator=(const SyncClient&) = delete;

  [[nodiscard]] Result<Value> call(std::span<const std::string_view> arguments);
  [[nodiscard]] Result<Value> call(std::initializer_list<std::string_view> arguments);

  // Sends `count` whole commands in RESP and reads their replies, in order. Reads while it writes, so that
  // any length works.
  [[nodiscard]] Result<std::vector<Value>> pipeline(std::string_view raw_commands, std::size_t count);

  // The two halves of pipeline(), for callers that do something in between.
  [[nodiscard]] Status send(std::string_view raw_commands);
  [[nodiscard]] Result<std::vector<Value>> receive(std::size_t count);

  [[nodiscard]] bool connected() const noexcept { return fd_ >= 0; }
  // The member's id of this connection, for CLIENT KILL ID; 0 unless a name was given.
  [[nodiscard]] std::uint64_t client_id() const noexcept { return client_id_; }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  SyncClient(std::string address, SyncOptions options);
  [[nodiscard]] Status dial();
  [[nodiscard]] Status start_tls(std::string_view host, Deadline deadline);
  [[nodiscard]] Status introduce();
  ssize_t send_some(std::string_view bytes);
  ssize_t receive_some(char* data, std::size_t size);
  [[nodiscard]] std::string failure(int error) const;
  void hang_up();
  [[nodiscard]] Result<std::vector<Value>> exchange(std::string_view output, std::size_t count);
  [[nodiscard]] Status take_replies(std::vector<Value>& out, std::size_t count);
  [[nodiscard]] Status read_some();
  [[nodiscard]] Error broke(std::string_view why, bool maybe_executed);

  std::string address_;
  SyncOptions options_;
  int fd_ = -1;
  std::unique_ptr<net::TlsSession> tls_;  // Null: plain.
  std::string closed_because_;
  std::uint64_t client_id_ = 0;
  std::string input_;  // Bytes of replies that were not taken yet.
  std::size_t input_used_ = 0;
  protocol::resp::ReplyFramer framer_;
};

}  // namespace ringshift::backend
