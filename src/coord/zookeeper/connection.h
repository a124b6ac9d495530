// One TCP connection to a ZooKeeper server, with the session on it: calls that block until a deadline.
//
// Once a call failed for the transport the connection is broken and stays so: whatever was sent may have
// happened. Of one thread at a time; a Canceller may be fired from any. Replies are matched by their
// transaction id, which a server answers in order. Bounds: kReplyBytesMax, kNotificationsMax.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coord/zookeeper/wire.h"
#include "net/descriptor.h"
#include "ringshift/error.h"

namespace ringshift::coord::zookeeper {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Ends what waits on it, now and later.
class Canceller {
 public:
  Canceller();
  void fire() noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  net::Descriptor fd_;
};

// For a process that ends: from begin() on a wait takes `most` at most, also one under way, and none any time
// after one that was in vain. Thread-safe.
class Hurry {
 public:
  void begin(std::chrono::milliseconds most) noexcept;
  [[nodiscard]] bool begun() const noexcept { return begun_.load(); }
  [[nodiscard]] int fd() const noexcept { return signal_.fd(); }  // Can be read once it has begun.
  // When a wait ends that began at `since`. Requires: begun().
  [[nodiscard]] Deadline limit(Clock::time_point since) const noexcept;
  void in_vain() noexcept { lost_ = true; }

 private:
  std::atomic<bool> begun_{false}, lost_{false};
  std::chrono::milliseconds most_{};  // Fixed, as is the next, once begun_.
  Clock::time_point began_{};
  Canceller signal_;
};

struct SessionId {
  std::int64_t id = 0;  // 0: a new one.
  std::string password;
};

struct Reply {
  Header header;
  std::string body;
};

class Connection {
 public:
  static constexpr std::size_t kNotificationsMax = 100'000;  // Unread; more breaks the connection.

  struct Target {
    std::string endpoint;                  // host:port
    std::chrono::milliseconds timeout{};   // Of the session, asked for.
    SessionId session;                     // To take up again; not_found when it is over.
    std::string credentials;               // digest's "user:password", or none.
    const Canceller* canceller = nullptr;  // May be null.
    Hurry* hurry = nullptr;                // Likewise.
  };
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Target& target, Deadline deadline);

  // All at once, the replies in the same order. A reply with an error code is a reply.
  [[nodiscard]] Result<std::vector<Reply>> call(std::vector<std::string> requests, Deadline deadline);
  [[nodiscard]] Result<Reply> call(std::string request, Deadline deadline);
  [[nodiscard]] Status ping(Deadline deadline);  // There and back.
  // Reads what comes until something came or it is time; whether something came.
  [[nodiscard]] Result<bool> wait(Deadline until);
  [[nodiscard]] Status send_ping(Deadline deadline);  // Its answer comes in wait(), and counts as heard.
  void close_session() noexcept;                      // Tells the server without waiting for its answer.

  [[nodiscard]] std::vector<Notification> take_notifications();
  [[nodiscard]] const SessionId& session() const { return session_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }  // Granted.
  [[nodiscard]] Clock::time_point heard_at() const { return heard_at_; }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool hung_up();  // Whether the server closed it, as far as can be seen now.

 private:
  Connection(const Target& target, net::Descriptor socket);
  Status greet(const Target& target, Deadline deadline);
  Status send(std::string_view bytes, Deadline deadline);
  Result<std::string> read_packet(Deadline deadline);
  std::optional<std::string> cut_packet();
  // Bytes into input_; false when the deadline came first.
  Result<bool> fill(Deadline deadline);
  Status note(std::string_view body);
  Error break_off(std::string why);

  const std::string endpoint_;
  const Canceller* canceller_;
  Hurry* hurry_;
  net::Descriptor socket_;
  SessionId session_;
  std::chrono::milliseconds timeout_{};
  std::string input_;
  std::size_t consumed_ = 0;
  std::int32_t next_xid_ = 1;
  bool broken_ = false;
  bool greeted_ = false;
  Clock::time_point heard_at_ = Clock::now();
  std::vector<Notification> notifications_;
};

}  // namespace ringshift::coord::zookeeper
