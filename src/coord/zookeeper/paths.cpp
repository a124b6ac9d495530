#include "coord/zookeeper/paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "net/address.h"

namespace ringshift::coord::zookeeper {
namespace {

constexpr std::string_view kExample = "zk://127.0.0.1:2181/ringshift-prod";
constexpr std::string_view kReserved = "zookeeper";  // The server's own node below the root.
constexpr std::string_view kEmptyName = "%-";        // What a name "" is written as: keys may have "//".

std::string escape(unsigned char byte) {
  return "%" + base::to_hex(std::string_view(reinterpret_cast<const char*>(&byte), 1));
}

Status check_chroot(std::string_view chroot, std::string_view url) {
  for (std::size_t begin = 1; begin <= chroot.size();) {
    const std::size_t end = std::min(chroot.find('/', begin), chroot.size());
    const std::string_view name = chroot.substr(begin, end - begin);
    const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != ','; });
    if (name.empty() || name == "." || name == ".." || !plain || (begin == 1 && name == kReserved)) {
      return fail(ErrorKind::invalid,
                  fmt::format("registry '{}': the path '{}' after the hosts is no place for "
                              "our nodes: write for example {}",
                              url, chroot, kExample));
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<Ensemble> parse_ensemble(std::string_view url) {
  std::string hosts(url);  // zk://a,zk://b is what it looks like: every host may have the scheme.
  for (std::size_t at; (at = hosts.find(kScheme)) != std::string::npos;) hosts.erase(at, kScheme.size());
  std::string_view rest = hosts;
  Ensemble out;
  if (rest.find('@') != std::string_view::npos) {  // Not shown: what is before the @ may be a password.
    return fail(
        ErrorKind::invalid,
        "a registry's URL holds no user and password: put digest:USER:PASSWORD into a file and name it "
        "by --registry-auth-file");
  }
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    out.chroot = rest.substr(slash);
    rest = rest.substr(0, slash);
    while (out.chroot.ends_with('/')) out.chroot.pop_back();
    if (Status good = check_chroot(out.chroot, url); !good) return std::unexpected(good.error());
  }
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t end = std::min(rest.find(',', begin), rest.size());
    std::string_view host = rest.substr(begin, end - begin);
    begin = end + 1;
    if (host.empty()) continue;
    std::string text(host);
    const std::size_t bracket = text.rfind(']');
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) text += ":2181";
    if (const auto endpoint = net::parse_endpoint(text); !endpoint || !endpoint->unix_path.empty()) {
      return fail(ErrorKind::invalid, fmt::format("registry '{}': '{}' is no HOST:PORT: write for example {}",
                                                  url, host, kExample));
    }
    out.endpoints.push_back(std::move(text));
  }
  if (out.endpoints.empty()) {
    return fail(ErrorKind::invalid,
                fmt::format("registry '{}' names no host: write for example {}", url, kExample));
  }
  return out;
}

std::string encode_name(std::string_view name) {
  if (name.empty()) return std::string(kEmptyName);
  if (name == "." || name == "..") {
    std::string out;
    for (const char c : name) out += escape(static_cast<unsigned char>(c));
    return out;
  }
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '%') {
      out += escape(byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::optional<std::string> decode_name(std::string_view name) {
  if (name == kEmptyName) return "";
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      out.push_back(name[i]);
      continue;
    }
    const auto byte = base::from_hex(name.substr(i + 1, 2));
    if (!byte || byte->size() != 1) return std::nullopt;
    out += *byte;
    i += 2;
  }
  return out;
}

Result<std::string> path_of(std::string_view chroot, std::string_view key) {
  if (!key.starts_with('/')) {
    return fail(ErrorKind::invalid,
                fmt::format("key '{}' does not begin with '/', and no node of ZooKeeper can "
                            "hold it",
                            base::printable(key, 100)));
  }
  std::string out(chroot);
  for (std::size_t begin = 1; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view name = key.substr(begin, end - begin);
    out.push_back('/');
    if (begin == 1 && name == kReserved) {
      out += escape('z');
      out += name.substr(1);
    } else {
      out += encode_name(name);
    }
    begin = end + 1;
  }
  return out;
}

std::optional<std::string> key_of(std::string_view chroot, std::string_view path) {
  if (!path.starts_with(chroot)) return std::nullopt;
  path.remove_prefix(chroot.size());
  if (!path.starts_with('/') || path.size() < 2) return std::nullopt;
  std::string key;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const auto name = decode_name(path.substr(begin, end - begin));
    if (!name) return std::nullopt;
    key.push_back('/');
    key += *name;
    begin = end + 1;
  }
  return key;
}

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

std::string child_of(std::string_view directory, std::string_view name) {
  std::string out(directory == "/" ? "" : directory);
  out.push_back('/');
  out.append(name);
  return out;
}

Result<PrefixPlace> place_of(std::string_view chroot, std::string_view prefix) {
  const std::size_t slash = prefix.rfind('/');
  if (slash == std::string_view::npos) {
    if (!prefix.empty()) return fail(ErrorKind::invalid, "a prefix of keys begins with '/'");
    return PrefixPlace{chroot.empty() ? "/" : std::string(chroot), ""};
  }
  PrefixPlace out;
  out.stem = prefix.substr(slash + 1);
  if (slash == 0) {
    out.directory = chroot.empty() ? "/" : std::string(chroot);
    return out;
  }
  auto path = path_of(chroot, prefix.substr(0, slash));
  if (!path) return std::unexpected(std::move(path.error()));
  out.directory = *std::move(path);
  return out;
}

}  // namespace ringshift::coord::zookeeper
