#include "drill/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// In the child, between fork and exec: async-signal-safe calls alone.
[[noreturn]] void become(char* const* arguments, pid_t parent, int error_pipe, const SpawnOptions& options) {
  const auto give_up = [error_pipe](int error) {
    [[maybe_unused]] const ssize_t written = ::write(error_pipe, &error, sizeof error);
    ::_exit(127);
  };
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();  // The terminal's Ctrl-C is for us; we end the children in order.
  if (options.user) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(options.user->second) != 0 ||
        ::setuid(options.user->first) != 0)
      give_up(errno);
  }
  // After the change of user, which resets it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // The parent died before the line above.
  const int null_fd = ::open("/dev/null", O_RDWR);
  ::dup2(null_fd, 0);
  const int out_fd =
      options.log.empty() ? null_fd : ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out_fd < 0) give_up(errno);
  ::dup2(out_fd, 1);
  ::dup2(out_fd, 2);
  ::execvp(arguments[0], arguments);
  give_up(errno);
  ::abort();  // Not reached.
}

}  // namespace

// An exec that fails comes back as its errno through a pipe.
Result<pid_t> spawn(const std::vector<std::string>& words, const SpawnOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorKind::internal, fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(arguments.data(), parent, ends[1], options);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return fail(ErrorKind::internal, fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  }
  int error = 0;
  const ssize_t got = ::read(ends[0], &error, sizeof error);
  ::close(ends[0]);
  if (got == static_cast<ssize_t>(sizeof error)) {
    ::waitpid(pid, nullptr, 0);
    if (error == ENOENT) {
      return fail(ErrorKind::not_found,
                  fmt::format("'{}' is not installed: {}", words[0], options.install_hint));
    }
    return fail(ErrorKind::internal, fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
  }
  return pid;
}

std::string last_line_of(const std::string& file) {
  std::ifstream in(file);
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

void end_process(pid_t pid, steady_clock::time_point deadline) {
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (steady_clock::now() >= deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

Status run_program(const std::vector<std::string>& words, const SpawnOptions& options,
                   std::chrono::seconds timeout) {
  const Result<pid_t> pid = spawn(words, options);
  if (!pid) return std::unexpected(pid.error());
  const auto end = steady_clock::now() + timeout;
  for (int status = 0; steady_clock::now() < end; std::this_thread::sleep_for(milliseconds(10))) {
    const pid_t ended = ::waitpid(*pid, &status, WNOHANG);
    if (ended == 0) continue;
    if (ended == *pid && status == 0) return {};
    return fail(ErrorKind::internal, fmt::format("{} failed: {}", words[0], last_line_of(options.log)));
  }
  end_process(*pid, steady_clock::now());
  return fail(ErrorKind::internal, fmt::format("{} did not end within {} s", words[0], timeout.count()));
}

}  // namespace ringshift::drill
