#include "drill/cpu_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace ringshift::drill {
namespace {

// utime + stime: fields 14 and 15, counted after the name, which may hold anything up to the last ')'.
std::uint64_t ticks_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

}  // namespace

std::optional<CpuTicks> read_cpu(std::span<const pid_t> servers) {
  std::ifstream file("/proc/stat");
  std::string label;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, stolen = 0;
  if (!(file >> label >> user >> nice >> system >> idle >> wait >> irq >> soft >> stolen) || label != "cpu")
    return std::nullopt;
  CpuTicks ticks;
  ticks.all = user + nice + system + idle + wait + irq + soft + stolen;
  ticks.idle = idle + wait;
  ticks.stolen = stolen;
  ticks.ours = ticks_of(::getpid());
  for (const pid_t pid : servers) ticks.ours += ticks_of(pid);
  return ticks;
}

CpuShares shares_between(const CpuTicks& begin, const CpuTicks& end) {
  if (end.all <= begin.all) return {};
  const auto whole = static_cast<double>(end.all - begin.all);
  const auto grown = [](std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) : 0.0;
  };
  CpuShares shares;
  shares.ours = std::min(1.0, grown(begin.ours, end.ours) / whole);
  shares.stolen = grown(begin.stolen, end.stolen) / whole;
  shares.others = std::max(0.0, 1 - grown(begin.idle, end.idle) / whole - shares.stolen - shares.ours);
  return shares;
}

}  // namespace ringshift::drill
