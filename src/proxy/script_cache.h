// The scripts that clients have given to this proxy with SCRIPT LOAD or EVAL, so that a member that has not
// got one (it joined, restarted, failed over, or saw another client's EVAL never) can be given it.
//
// Shared by the workers. Thread-safe. Bounds: kMaxScripts and kMaxBytes; the one used least recently goes.
// Cost of remember(), which every EVAL pays: one XXH3 of the script, a lock and a comparison when it is
// known. SHA-1 is computed when a script is asked for by it, once for each script.
#pragma once
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ringshift::proxy {

class ScriptCache {
 public:
  static constexpr std::size_t kMaxScripts = 1000;
  static constexpr std::size_t kMaxBytes = 8U << 20;

  // `loaded`: members have said that it compiles.
  void remember(std::string_view script, bool loaded);
  struct Found {
    std::string script;
    bool loaded = false;
  };
  // By SHA-1 in hex, of any case.
  [[nodiscard]] std::optional<Found> find(std::string_view sha);
  void clear();
  [[nodiscard]] std::size_t size();

 private:
  struct Entry {
    std::string script;
    std::string sha;  // Empty until somebody asks.
    std::uint64_t hash = 0;
    bool loaded = false;
  };
  using Entries = std::list<Entry>;  // The one used last in front.
  void evict();

  std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::uint64_t, Entries::iterator> by_hash_;
  std::unordered_map<std::string, Entries::iterator> by_sha_;
  std::size_t bytes_ = 0;
  std::size_t without_sha_ = 0;
};

}  // namespace ringshift::proxy
