// Questions to an HTTP API for Consul, Nacos and Kubernetes: the URLs in turn, secrets from files and in
// headers alone, the question under way cancelled when its source ends.
//
// Thread rule: cancel() from any thread, all else from the source's. No message has a header or a secret in
// it.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/options.h"
#include "http/client.h"

namespace ringshift::discovery {

inline constexpr std::size_t kSecretBytesMax = 16U << 10;

struct HttpReply {
  int status = 0;
  std::string body;
};

class HttpAsk {
 public:
  HttpAsk(std::vector<std::string> urls, std::string ca_file);

  // The whole answer, from the URL that answered last. A server that cannot be reached: the next call asks
  // the next one. `timeout` is for all of it.
  [[nodiscard]] Result<HttpReply> ask(http::Call call, std::string_view path);
  // As it comes, in lines; false from `on_line` ends it. A status other than 200 comes back with the body.
  [[nodiscard]] Result<HttpReply> follow(http::Call call, std::string_view path,
                                         const std::function<bool(std::string_view)>& on_line);
  [[nodiscard]] std::string header(std::string_view name) const { return stream_.header(name); }
  [[nodiscard]] const std::string& url() const { return urls_[at_ % urls_.size()]; }
  void next() { ++at_; }  // After an answer that is none.
  void cancel() { stream_.cancel(); }

 private:
  [[nodiscard]] Result<HttpReply> run(http::Call call, std::string_view path,
                                      const std::function<bool(std::string_view, std::string&)>& on_data);

  const std::vector<std::string> urls_;
  const std::string ca_file_;
  std::size_t at_ = 0;
  http::StreamCall stream_;
};

// What an HTTP status other than 200 means, with what the server says of it and `fix` for one that denies.
[[nodiscard]] Error status_error(const HttpReply& reply, std::string_view url, std::string_view fix);

// One line of printable characters; its end is cut. Errors name the file alone.
[[nodiscard]] Result<std::string> read_secret(const std::string& path);

// For a path or a query: all but letters, digits and -_.~ as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace ringshift::discovery
