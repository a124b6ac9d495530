// What a program proves to a registry about itself: the first line of --registry-auth-file.
//
//   digest:USER:PASSWORD   ZooKeeper
//   user:NAME:PASSWORD     etcd with authentication
//   token:SECRET           the embedded registry
//
// Secret: it goes into no URL, no log and no error, and errors of parse_credentials() do not show the line.
#pragma once
#include <string>
#include <string_view>

#include "ringshift/error.h"

namespace ringshift::coord {

struct Credentials {
  enum class Kind { none, digest, user, token };
  Kind kind = Kind::none;
  std::string name{};    // digest, user
  std::string secret{};  // The password, or the token.
  bool operator==(const Credentials&) const = default;
};

// `where` names the file in errors. Pure.
[[nodiscard]] Result<Credentials> parse_credentials(std::string_view line, std::string_view where);
// Of a file. Errors name it, never what it holds.
[[nodiscard]] Result<Credentials> read_credentials(const std::string& file);

}  // namespace ringshift::coord
