// Requests to Nacos's open API as one of its users: login by POST /v1/auth/login with the auth file's
// user:NAME:PASSWORD; the token goes into a header, never into a URL, is renewed when four fifths of its time
// have gone, and once more when it is refused.
//
// Thread rule: as HttpAsk's.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/http_ask.h"

namespace ringshift::discovery {

class NacosSession {
 public:
  // `auth_file` "": no login. `timeout` is for each request.
  NacosSession(std::vector<std::string> urls, std::string ca_file, std::string auth_file,
               std::chrono::milliseconds timeout);

  // The answer of status 200; every other one is an error. A form in `form` is sent as the body.
  [[nodiscard]] Result<HttpReply> ask(std::string_view method, const std::string& path,
                                      const std::string& form = {});
  void cancel() { http_.cancel(); }

 private:
  Status log_in();

  const std::string auth_file_;
  const std::chrono::milliseconds timeout_;
  HttpAsk http_;
  std::string token_;
  std::chrono::steady_clock::time_point renew_at_{};
};

}  // namespace ringshift::discovery
