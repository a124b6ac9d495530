#include "discovery/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/retry_thread.h"
#include "topology/document.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFilePoll{5000};
// A directory where much else happens wakes us for nothing: no more often than this.
constexpr milliseconds kFileRest{50};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// The whole file; retryable when it was written to meanwhile.
Result<std::string> read_whole(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    return fail(errno == ENOENT ? ErrorKind::not_found : ErrorKind::internal,
                fmt::format("{}: cannot be opened ({}): the last list stands", path, std::strerror(errno)));
  }
  struct stat before{};
  struct stat after{};
  if (::fstat(file.get(), &before) != 0 || !S_ISREG(before.st_mode))
    return fail(ErrorKind::invalid, fmt::format("{}: is no file", path));
  std::string text;
  char part[1 << 16];
  ssize_t got = 0;
  while ((got = ::read(file.get(), part, sizeof part)) > 0) {
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > topology::kMaxTextBytes) {
      return fail(ErrorKind::invalid,
                  fmt::format("{}: has more than the {} bytes allowed: is it the right file?", path,
                              topology::kMaxTextBytes));
    }
  }
  if (got < 0)
    return fail(ErrorKind::internal, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  ::fstat(file.get(), &after);
  if (before.st_size != after.st_size || before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
      before.st_mtim.tv_nsec != after.st_mtim.tv_nsec) {
    return fail(ErrorKind::retryable, fmt::format("{}: is being written: replace it by renaming", path));
  }
  return text;
}

class FileSource final : public Source {
 public:
  explicit FileSource(Options options)
      : path_(std::move(options.path)),
        poll_(options.poll.count() > 0 ? options.poll : kFilePoll),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        notify_(-1) {}
  ~FileSource() override {
    thread_.stop([this] {
      const std::uint64_t one = 1;
      static_cast<void>(!::write(stop_.get(), &one, sizeof one));
    });
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  Status start(Sink& sink) override {
    if (stop_.get() < 0) return fail(ErrorKind::internal, fmt::format("eventfd: {}", std::strerror(errno)));
    thread_.start([this, &sink] { run(sink); });
    return {};
  }
  std::string describe() const override { return "file " + path_; }

 private:
  void run(Sink& sink) {
    Teller teller(sink);
    while (!thread_.stopping()) {
      watch_directory();  // Before the look: what comes after it wakes us.
      look(teller);
      await_change();
      thread_.wait(kFileRest);
    }
  }

  void look(Teller& teller) {
    Result<std::string> text = read_whole(path_);
    if (!text) {
      if (text.error().kind == ErrorKind::retryable)
        return;  // The end of writing, or the next look, shows it.
      last_.reset();
      teller.trouble(text.error());
      return;
    }
    if (last_ == *text) return;
    last_ = *std::move(text);
    Result<std::vector<Instance>> all = parse_instances(*last_, path_);
    if (all) {
      teller.saw({*std::move(all), {}});
    } else {
      teller.trouble({all.error().kind, all.error().message + " (the last list stands)"});
    }
  }

  // The directory, never the file: a renamed one is another file. Again whenever it was lost, as when the
  // directory itself was replaced.
  void watch_directory() {
    if (notify_.get() >= 0) return;
    const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
    notify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    const bool watching =
        notify_.get() >= 0 && ::inotify_add_watch(notify_.get(), parent.empty() ? "." : parent.c_str(),
                                                  IN_MOVED_TO | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE |
                                                      IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) >= 0;
    if (watching) return;
    if (!told_) {
      base::log(base::LogLevel::warning,
                "discovery: {}: its directory cannot be watched ({}): looking every {} ms", path_,
                std::strerror(errno), poll_.count());
    }
    told_ = true;
    notify_.reset();
  }

  void await_change() {
    pollfd waits[] = {{stop_.get(), POLLIN, 0}, {notify_.get(), POLLIN, 0}};
    if (::poll(waits, 2, static_cast<int>(poll_.count())) <= 0 || (waits[1].revents & POLLIN) == 0) return;
    alignas(inotify_event) char events[1 << 14];
    ssize_t size = 0;
    while ((size = ::read(notify_.get(), events, sizeof events)) > 0) {
      for (ssize_t at = 0; at < size;) {
        inotify_event event;  // Copied: the buffer has no objects in it.
        std::memcpy(&event, events + at, sizeof event);
        at += static_cast<ssize_t>(sizeof event + event.len);
        if ((event.mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
          notify_.reset();
          return;
        }
      }
    }
  }

  const std::string path_;
  const milliseconds poll_;
  const Descriptor stop_;

  // The thread's own.
  Descriptor notify_;
  bool told_ = false;
  std::optional<std::string> last_;  // What was read last, good or bad.

  base::RetryThread thread_{kRetryFirst, kRetryMax};  // Last: its thread uses all above.
};

}  // namespace

std::unique_ptr<Source> make_file_source(Options options) {
  return std::make_unique<FileSource>(std::move(options));
}

}  // namespace ringshift::discovery
