// Output buffers that the streams of one loop hand round, so that an idle stream holds none and a busy one
// allocates none. The loop's thread.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ringshift::net {

class Buffers {
 public:
  static constexpr std::size_t kNewBytes = 16U << 10;      // Buffers begin with this...
  static constexpr std::size_t kMaxKeptBytes = 64U << 10;  // ...and bigger ones are given back to the heap.
  static constexpr std::size_t kMaxKept = 64;

  [[nodiscard]] std::unique_ptr<std::string> take() {
    if (free_.empty()) [[unlikely]]
      return fresh();
    std::unique_ptr<std::string> buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(std::unique_ptr<std::string> buffer) {
    if (buffer->capacity() > kMaxKeptBytes || free_.size() >= kMaxKept) [[unlikely]]
      return;
    buffer->clear();
    free_.push_back(std::move(buffer));
  }

 private:
  static std::unique_ptr<std::string> fresh() {
    auto buffer = std::make_unique<std::string>();
    buffer->reserve(kNewBytes);
    return buffer;
  }
  std::vector<std::unique_ptr<std::string>> free_;
};

}  // namespace ringshift::net
