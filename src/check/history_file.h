// A history on disk: JSON lines. The first says what it is, {"ringshift_history": 1, "seed", "proxies",
// "ttl_slack_ms"}; each other one is an operation: {"kind", "key", "client", "proxy", "sequence", "verb",
// "field", "value", "ttl_ms", "invoked_ns", "returned_ns", "outcome", "text", "number", "fields"}, without
// what is empty or has its default.
//
// Invariant: a key's operations are adjacent, so that a history of any length is judged with the memory of
// its longest key. Values are the tokens of value.h. Thread rule: one thread at a time. Failure: an error
// names the file and the line.
#pragma once
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check/operation.h"
#include "ringshift/error.h"

namespace ringshift::check {

struct HistoryHeader {
  std::uint64_t seed = 0;
  std::vector<std::string> proxies;
  std::chrono::milliseconds ttl_slack{250};
};

class HistoryWriter {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HistoryWriter>> create(const std::string& path,
                                                                     const HistoryHeader& header);
  // A key's operations, all of them. What the disk refuses shows in close().
  void write(const std::vector<Operation>& operations);
  [[nodiscard]] Status close();

 private:
  explicit HistoryWriter(std::string path) : path_(std::move(path)) {}
  const std::string path_;
  std::ofstream out_;
};

inline constexpr std::size_t kMaxLine = 1U << 20;
inline constexpr std::size_t kMaxOperationsOfAKey = 1'000'000;

// Calls `key` with each key's operations. The first operation that cannot be right ends it.
[[nodiscard]] Result<HistoryHeader> read_history(const std::string& path,
                                                 const std::function<void(const HistoryHeader&)>& begin,
                                                 const std::function<void(std::vector<Operation>)>& key);

}  // namespace ringshift::check
