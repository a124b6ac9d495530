#include "coord/topology_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "hashing/sha256.h"

namespace ringshift::coord {
namespace {

using nlohmann::json;

// The first line; behind it the SHA-256 of all that follows, in hex, and a line's end.
constexpr std::string_view kCacheHeader = "ringshift topology cache 1 ";
constexpr std::size_t kCacheDigestBytes = 64;

class CacheDescriptor {
 public:
  explicit CacheDescriptor(int fd) : fd_(fd) {}
  ~CacheDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  CacheDescriptor(const CacheDescriptor&) = delete;
  CacheDescriptor& operator=(const CacheDescriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  const int fd_;
};

std::unexpected<Error> cache_problem(const std::string& file, std::string_view what) {
  return fail(ErrorKind::invalid, fmt::format("topology cache {}: {}", file, what));
}

std::unexpected<Error> cache_system_error(const std::string& file, std::string_view doing) {
  return fail(errno == ENOENT ? ErrorKind::not_found : ErrorKind::invalid,
              fmt::format("topology cache {}: {}: {}", file, doing, std::strerror(errno)));
}

Result<std::string> read_cache_bytes(int fd, const std::string& file) {
  std::string bytes;
  char part[65536];
  while (true) {
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cache_system_error(file, "cannot be read");
    if (got == 0) return bytes;
    bytes.append(part, static_cast<std::size_t>(got));
    if (bytes.size() > TopologyCache::kMaxFileBytes) {
      return cache_problem(file, fmt::format("is longer than {} bytes", TopologyCache::kMaxFileBytes));
    }
  }
}

Status write_cache_bytes(int fd, std::string_view bytes, const std::string& file) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cache_system_error(file, "cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(fd) != 0) return cache_system_error(file, "fsync");
  return {};
}

// What the first line promises of the rest.
Result<std::string_view> checked_body(std::string_view bytes, const std::string& file) {
  if (!bytes.starts_with(kCacheHeader)) return cache_problem(file, "is no topology cache of this version");
  bytes.remove_prefix(kCacheHeader.size());
  if (bytes.size() <= kCacheDigestBytes || bytes[kCacheDigestBytes] != '\n') {
    return cache_problem(file, "is cut off in its first line");
  }
  const std::string_view digest = bytes.substr(0, kCacheDigestBytes);
  bytes.remove_prefix(kCacheDigestBytes + 1);
  if (hashing::sha256_hex(bytes) != digest) {
    return cache_problem(file, "was cut off or changed: its checksum is another one");
  }
  return bytes;
}

std::chrono::seconds age_of_file(const struct stat& facts) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(std::max<std::int64_t>(0, now.tv_sec - facts.st_mtim.tv_sec));
}

Status sync_directory_of(const std::string& file) {
  std::string directory = std::filesystem::path(file).parent_path().string();
  if (directory.empty()) directory = ".";
  const CacheDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return cache_system_error(file, "fsync of its directory");
  return {};
}

}  // namespace

Result<CachedTopology> TopologyCache::read() const {
  const CacheDescriptor fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return cache_system_error(file_, "cannot be opened");
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return cache_system_error(file_, "fstat");
  if (!S_ISREG(facts.st_mode)) return cache_problem(file_, "is no file");
  const Result<std::string> bytes = read_cache_bytes(fd.get(), file_);
  if (!bytes) return std::unexpected(bytes.error());
  const Result<std::string_view> body = checked_body(*bytes, file_);
  if (!body) return std::unexpected(body.error());

  const json document = json::parse(*body, nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* name) -> std::string {
    const auto found = document.is_object() ? document.find(name) : document.end();
    return found != document.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto revision = document.is_object() ? document.find("revision") : document.end();
  const auto epoch = document.is_object() ? document.find("epoch") : document.end();
  const auto processes = document.is_object() ? document.find("processes") : document.end();
  if (revision == document.end() || !revision->is_number_unsigned() || epoch == document.end() ||
      !epoch->is_number_unsigned() || processes == document.end() || !processes->is_object()) {
    return cache_problem(file_, "lacks what this version of ringshift writes");
  }
  if (text("prefix") != prefix_) {
    return cache_problem(
        file_, fmt::format("is of another cluster ('{}', this one is '{}')", text("prefix"), prefix_));
  }
  CachedTopology cached;
  const std::string id = text("registry");
  const auto [end, wrong] = std::from_chars(id.data(), id.data() + id.size(), cached.cluster_id, 16);
  if (wrong != std::errc() || end != id.data() + id.size() || cached.cluster_id == 0) {
    return cache_problem(file_, fmt::format("names no registry ('{}')", id));
  }
  for (const auto& [member, run_id] : processes->items()) {
    if (run_id.is_string()) cached.processes[member] = run_id.get<std::string>();
  }
  Result<topology::Topology> parsed = topology::parse_topology(text("topology"), file_);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->resize) return cache_problem(file_, "is from the midst of a resize, which nobody may serve by");
  auto compiled = topology::Snapshot::compile(std::move(*parsed),
                                              {epoch->get<std::uint64_t>(), revision->get<std::uint64_t>()});
  if (!compiled) return std::unexpected(compiled.error());
  cached.snapshot = std::move(*compiled);
  cached.age = age_of_file(facts);
  return cached;
}

Status TopologyCache::write(const topology::Snapshot& snapshot, std::uint64_t cluster_id,
                            const Processes& processes) {
  const json document = {{"prefix", prefix_},
                         {"registry", fmt::format("{:x}", cluster_id)},
                         {"epoch", snapshot.version.epoch},
                         {"revision", snapshot.version.revision},
                         {"digest", snapshot.digest},
                         {"processes", processes},
                         {"topology", topology::to_json(snapshot.topology())}};
  const std::string body = document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  const std::string bytes = fmt::format("{}{}\n{}", kCacheHeader, hashing::sha256_hex(body), body);
  std::string beside = file_ + ".XXXXXX";  // Several routers may share the file.
  const CacheDescriptor fd(::mkostemp(beside.data(), O_CLOEXEC));
  if (fd.get() < 0) return cache_system_error(file_, "cannot be written beside it");
  Status written = write_cache_bytes(fd.get(), bytes, file_);
  if (written && ::rename(beside.c_str(), file_.c_str()) != 0) {
    written = cache_system_error(file_, "cannot be replaced");
  }
  if (!written) {
    ::unlink(beside.c_str());
    return written;
  }
  present_ = true;
  touched_ = std::chrono::steady_clock::now();
  return sync_directory_of(file_);
}

void TopologyCache::touch(std::chrono::steady_clock::time_point now) {
  if (!present_ || now - touched_ < kTouchInterval) return;
  touched_ = now;
  // Somebody may have removed it; the next topology brings it back.
  static_cast<void>(::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0));
}

void TopologyCache::remove() {
  present_ = false;
  if (::unlink(file_.c_str()) == 0) static_cast<void>(sync_directory_of(file_));
}

}  // namespace ringshift::coord
