#include "coord/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace ringshift::coord {
namespace {

constexpr std::size_t kSecretBytesMax = 4096;

}  // namespace

Result<Credentials> parse_credentials(std::string_view line, std::string_view where) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorKind::invalid,
                fmt::format("{}: {}; its first line is to be digest:USER:PASSWORD for ZooKeeper, "
                            "user:NAME:PASSWORD for etcd or token:SECRET for the embedded registry",
                            where, why));
  };
  const std::size_t colon = line.find(':');
  const std::string_view kind = line.substr(0, std::min(colon, line.size()));
  const std::string_view rest = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (line.size() > kSecretBytesMax) return refuse(fmt::format("more than {} bytes", kSecretBytesMax));
  // It becomes a line of an HTTP request.
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  if (!std::ranges::all_of(line, plain)) return refuse("it holds control characters");
  if (kind == "token" && !rest.empty()) return Credentials{Credentials::Kind::token, "", std::string(rest)};
  if (kind == "digest" || kind == "user") {
    const std::size_t second = rest.find(':');
    if (second == std::string_view::npos || second == 0) return refuse("no user and password in it");
    return Credentials{kind == "user" ? Credentials::Kind::user : Credentials::Kind::digest,
                       std::string(rest.substr(0, second)), std::string(rest.substr(second + 1))};
  }
  return refuse("it begins with none of these words");
}

Result<Credentials> read_credentials(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  // Not by getline(): a file may be a device, and have no end.
  for (char c = 0; line.size() <= kSecretBytesMax && in.get(c) && c != '\n';) line += c;
  if (line.empty()) {
    return fail(ErrorKind::invalid,
                fmt::format("--registry-auth-file {}: it cannot be read, or is empty", file));
  }
  return parse_credentials(line, fmt::format("--registry-auth-file {}", file));
}

}  // namespace ringshift::coord
