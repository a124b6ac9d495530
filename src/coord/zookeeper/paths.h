// Keys as ZooKeeper's paths, and the URL that names an ensemble. Pure.
//
// A key "/a/b" is the node CHROOT/a/b. What a path cannot hold (control and non-ASCII bytes, "", ".", "..",
// the root's name "zookeeper") is written %XX, as is '%' itself, so that every key has one path, and back.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::coord::zookeeper {

inline constexpr std::string_view kScheme = "zk://";

struct Ensemble {
  std::vector<std::string> endpoints;  // host:port
  std::string chroot;                  // "" or "/a/b"
};
// zk://host:port[,host:port...][/chroot]; 2181 where no port is said.
[[nodiscard]] Result<Ensemble> parse_ensemble(std::string_view url);

// `invalid` for a key that does not begin with '/'.
[[nodiscard]] Result<std::string> path_of(std::string_view chroot, std::string_view key);
// nullopt for a path that no key has (another program's).
[[nodiscard]] std::optional<std::string> key_of(std::string_view chroot, std::string_view path);
[[nodiscard]] std::string encode_name(std::string_view name);
[[nodiscard]] std::optional<std::string> decode_name(std::string_view name);

// "/a/b" of "/a/b/c"; "/" of "/a".
[[nodiscard]] std::string_view parent_of(std::string_view path);
[[nodiscard]] std::string child_of(std::string_view directory, std::string_view name);

// Where the keys that begin with `prefix` are: in the directory `directory`, below the names that begin with
// `stem` (all of them when it is empty).
struct PrefixPlace {
  std::string directory;  // A path.
  std::string stem;       // Not encoded.
};
[[nodiscard]] Result<PrefixPlace> place_of(std::string_view chroot, std::string_view prefix);

}  // namespace ringshift::coord::zookeeper
