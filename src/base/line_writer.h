// Lines for a log, written by a thread of their own: whoever logs never waits for whoever reads, be it a pipe
// that nobody empties or a disk that hangs.
//
// Bounds: kMaxLines and kMaxBytes wait; beyond them the oldest are dropped, counted, and told of once there
// is room again. Thread-safe. The thread blocks all signals. The destructor, and flush(), wait for what is
// queued to be written, but at most the given time: a thread that is stuck in a write is left behind.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ringshift::base {

class LineWriter {
 public:
  static constexpr std::size_t kMaxLines = 8192;
  static constexpr std::size_t kMaxBytes = 4U << 20;
  static constexpr std::chrono::milliseconds kFlushAtEnd{1000};

  explicit LineWriter(int fd);  // Of which it is not the owner.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void write(std::string line);  // With its line end.
  // False when something was left.
  bool flush(std::chrono::milliseconds at_most);

 private:
  struct State;
  std::shared_ptr<State> state_;  // Also the thread's.
};

}  // namespace ringshift::base
