#include "base/line_writer.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace ringshift::base {
namespace {

constexpr std::size_t kPipePiece =
    4096;  // PIPE_BUF: so much a pipe that poll() calls writable takes at once.
constexpr std::size_t kBatchBytes = 64U << 10;

// False when the descriptor takes nothing, ever: then lines are lost, as they were with no thread between.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd room{fd, POLLOUT, 0};
    if (::poll(&room, 1, -1) < 0 && errno != EINTR) return false;
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), kPipePiece));
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

struct LineWriter::State {
  explicit State(int descriptor) : fd(descriptor) {}

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      more.wait(lock, [this] { return !lines.empty() || ending; });
      if (lines.empty()) return;
      std::string batch;
      if (dropped != 0) {
        batch = fmt::format("({} older lines of the log were dropped: nobody took them)\n", dropped);
        dropped = 0;
      }
      while (!lines.empty() && batch.size() < kBatchBytes) {
        bytes -= lines.front().size();
        batch += lines.front();
        lines.pop_front();
      }
      writing = true;
      lock.unlock();
      (void)write_all(fd, batch);
      lock.lock();
      writing = false;
      written.notify_all();
    }
  }

  const int fd;
  std::mutex mutex;
  std::condition_variable more, written;
  std::deque<std::string> lines;  // These are guarded by mutex.
  std::size_t bytes = 0;
  std::size_t dropped = 0;
  bool writing = false;
  bool ending = false;
};

LineWriter::LineWriter(int fd) : state_(std::make_shared<State>(fd)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Detached: it may be stuck for ever, and owns all that it uses.
  std::thread([state = state_] { state->run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineWriter::~LineWriter() {
  (void)flush(kFlushAtEnd);
  const std::lock_guard lock(state_->mutex);
  state_->ending = true;
  state_->more.notify_all();
}

void LineWriter::write(std::string line) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.bytes += line.size();
  state.lines.push_back(std::move(line));
  while (state.lines.size() > kMaxLines || (state.bytes > kMaxBytes && state.lines.size() > 1)) {
    state.bytes -= state.lines.front().size();
    state.lines.pop_front();
    ++state.dropped;
  }
  state.more.notify_one();
}

bool LineWriter::flush(std::chrono::milliseconds at_most) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  return state.written.wait_for(lock, at_most, [&] { return state.lines.empty() && !state.writing; });
}

}  // namespace ringshift::base
