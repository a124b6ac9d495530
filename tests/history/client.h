// A small blocking RESP client for the workload: one connection, pipelines, one deadline for each read.
// Used by one thread.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/resp/value.h"
#include "ringshift/error.h"

namespace ringshift::history {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};
// "127.0.0.1:6380,127.0.0.1:6381"
[[nodiscard]] Result<std::vector<Address>> parse_addresses(const std::string& list);

class Client {
 public:
  explicit Client(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] Status connect(const Address& address);
  [[nodiscard]] bool connected() const noexcept { return socket_ >= 0; }
  void close() noexcept;

  // Sends whole commands; then read() once for each. Any failure closes the connection: what was sent and
  // not answered may have been executed.
  [[nodiscard]] Status send(const std::string& commands);
  [[nodiscard]] Result<protocol::resp::Value> read();

 private:
  [[nodiscard]] Status wait(short events);
  std::chrono::milliseconds timeout_;
  int socket_ = -1;
  std::string input_;
};

}  // namespace ringshift::history
