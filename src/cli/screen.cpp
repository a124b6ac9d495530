#include "cli/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace ringshift::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // The other screen; no cursor.
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;  // The terminal is gone: SIGHUP says so.
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Screen::Screen() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  signal_fd_ = net::Descriptor(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
}

Screen::~Screen() {
  leave();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Screen::possible() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

Screen::Size Screen::size() {
  winsize found{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0) return {};
  return {found.ws_row, found.ws_col};
}

void Screen::enter() {
  if (entered_) return;
  ::tcgetattr(STDIN_FILENO, &as_it_was_);
  termios raw = as_it_was_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  put(kEnter);
  entered_ = true;
}

void Screen::leave() {
  if (!entered_) return;
  put(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &as_it_was_);
  entered_ = false;
}

// Ctrl-Z: the shell gets its terminal as it knows it; after `fg` we take it again.
void Screen::stop_and_come_back() {
  leave();
  ::kill(::getpid(), SIGSTOP);
  enter();
}

Screen::Event Screen::wait(std::chrono::milliseconds time) {
  pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {signal_fd_.get(), POLLIN, 0}};
  const int patience = static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, 60'000));
  if (::poll(watched, 2, patience) <= 0) return {};
  if (watched[1].revents != 0) {
    signalfd_siginfo info{};
    if (::read(signal_fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
    if (info.ssi_signo == SIGTSTP) stop_and_come_back();
    if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH) return {};
    return {Key::quit, 0};
  }
  return read_keys();
}

bool Screen::wait_quietly(std::chrono::milliseconds time) {
  pollfd watched{signal_fd_.get(), POLLIN, 0};
  if (::poll(&watched, 1, static_cast<int>(time.count())) <= 0) return false;
  signalfd_siginfo info{};
  if (::read(signal_fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return false;
  if (info.ssi_signo == SIGTSTP) ::kill(::getpid(), SIGSTOP);
  return info.ssi_signo != SIGTSTP && info.ssi_signo != SIGWINCH;
}

Screen::Event Screen::read_keys() {
  char bytes[16];
  const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (size <= 0) return {Key::quit, 0};  // Nobody is at the other end.
  const std::string_view text(bytes, static_cast<std::size_t>(size));
  if (text.starts_with("\x1b[") || text.starts_with("\x1bO")) {
    switch (text.size() > 2 ? text[2] : 0) {
      case 'A':
        return {Key::up, 0};
      case 'B':
        return {Key::down, 0};
      case 'C':
        return {Key::right, 0};
      case 'D':
        return {Key::left, 0};
      default:
        return {};
    }
  }
  if (text[0] == 'q' || text[0] == 'Q') return {Key::quit, 0};
  return {Key::other, text[0]};
}

void Screen::draw(const std::vector<std::string>& lines) {
  const std::size_t rows = size().rows;
  std::string out = "\x1b[H";
  for (std::size_t i = 0; i < std::min(lines.size(), rows); ++i) {
    if (i != 0) out += "\r\n";
    out += lines[i] + "\x1b[0m\x1b[K";
  }
  out += "\x1b[J";
  put(out);
}

}  // namespace ringshift::cli
