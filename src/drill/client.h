// A blocking RESP2 connection with pipelining: what an application's Redis client does, and no more.
//
// One thread at a time. A call that fails leaves the connection unusable: commands that were under way may
// or may not have been executed, so the caller opens a new one and accounts for them as unknown.
#pragma once
#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "protocol/resp/value.h"
#include "ringshift/error.h"

namespace ringshift::drill {

class Client {
 public:
  using Value = protocol::resp::Value;

  // `address` is host:port. `timeout` bounds the connect, each send and each receive.
  [[nodiscard]] static Result<Client> connect(std::string_view address, std::chrono::milliseconds timeout);
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  void append(std::initializer_list<std::string_view> command);  // To the output; flush() sends it.
  [[nodiscard]] Status flush();
  [[nodiscard]] Result<Value> read();  // The next reply, in the order of the commands.
  // append, flush and read. An error reply is a Value, not an Error.
  [[nodiscard]] Result<Value> call(std::initializer_list<std::string_view> command);

  // When the bytes of the reply that read() gave last had arrived.
  [[nodiscard]] base::TimePoint arrived() const noexcept { return arrived_; }

 private:
  Client(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}
  int fd_;
  std::string address_;
  std::string out_, in_;
  std::size_t in_used_ = 0;  // Bytes of in_ that were given out.
  base::TimePoint arrived_{};
};

}  // namespace ringshift::drill
