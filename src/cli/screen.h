// A whole terminal for one command: another screen, keys one by one, and everything as it was when it ends,
// however it ends short of kill -9.
//
// SIGINT, SIGTERM and SIGHUP are events, not ends; SIGTSTP (Ctrl-Z) gives the terminal back while the process
// is stopped; SIGWINCH says that the size is another. REQUIRES: made before any other thread starts (threads
// inherit the blocked signals); used by one thread; one at a time.
#pragma once
#include <termios.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "net/descriptor.h"

namespace ringshift::cli {

class Screen {
 public:
  enum class Key { none, quit, left, right, up, down, other };
  struct Event {
    Key key = Key::none;  // none: the time is over, or the size has changed.
    char character = 0;   // Of `other`.
  };
  struct Size {
    std::size_t rows = 24, columns = 80;
    bool operator==(const Size&) const = default;
  };

  Screen();  // Only blocks the signals.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Whether standard input and output are a terminal.
  [[nodiscard]] static bool possible();
  [[nodiscard]] static Size size();
  void enter();
  // The next event within `time`. Ctrl-C and a signal to end are Key::quit.
  [[nodiscard]] Event wait(std::chrono::milliseconds time);
  // Sleeps; true, and at once, when a signal to end came. Keys are left alone.
  [[nodiscard]] bool wait_quietly(std::chrono::milliseconds time);
  // Over what was there, line by line, so that nothing flickers. A line may have escape sequences of its own.
  void draw(const std::vector<std::string>& lines);

 private:
  void leave();
  [[nodiscard]] Event read_keys();
  void stop_and_come_back();

  sigset_t signals_{}, before_{};
  net::Descriptor signal_fd_;
  termios as_it_was_{};
  bool entered_ = false;
};

}  // namespace ringshift::cli
