#include "admin/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ringshift_version.h"

namespace ringshift::admin {
namespace {

// The fields of /proc/self/stat after the command's name, which may contain blanks: [0] is the state.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(text.substr(end + 1));
  std::vector<std::string> out;
  for (std::string field; rest >> field;) out.push_back(std::move(field));
  return out;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::atof(line.c_str() + 6);
  }
  return 0;
}

// With the directory itself, which is open while it is read: one too many.
std::size_t open_descriptors() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;
}

}  // namespace

void collect_process(telemetry::Exposition& page) {
  page.gauge("ringshift_build_info", "1; the program's version and compiler are the labels", 1,
             {{"version", RINGSHIFT_VERSION}, {"compiler", __VERSION__}});
  const std::vector<std::string> stat = stat_fields();
  const auto number = [&](std::size_t i) { return i < stat.size() ? std::atof(stat[i].c_str()) : 0.0; };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  // Fields 14, 15, 20, 22, 23 and 24 of proc(5).
  page.counter("process_cpu_seconds_total", "User and system time of this process in seconds",
               (number(11) + number(12)) / ticks);
  page.gauge("process_threads", "Threads of this process", number(17));
  static const double booted = boot_time();
  page.gauge("process_start_time_seconds", "When this process started, in Unix seconds",
             booted + number(19) / ticks);
  page.gauge("process_virtual_memory_bytes", "Virtual memory of this process in bytes", number(20));
  page.gauge("process_resident_memory_bytes", "Resident memory of this process in bytes",
             number(21) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  page.gauge("process_open_fds", "Open file descriptors of this process",
             static_cast<double>(open_descriptors()));
  if (rlimit files{}; getrlimit(RLIMIT_NOFILE, &files) == 0) {
    page.gauge("process_max_fds", "Most file descriptors that this process may open",
               static_cast<double>(files.rlim_cur));
  }
}

}  // namespace ringshift::admin
