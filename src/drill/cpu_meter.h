// Who used the machine's processors between two looks: we and our servers, others, the hypervisor. From
// /proc; where that says nothing, nothing is known. One thread.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ringshift::drill {

struct CpuTicks {
  std::uint64_t all = 0, idle = 0, stolen = 0;  // Of all processors.
  std::uint64_t ours = 0;                       // Of this process and the others named.
};
// nullopt when /proc cannot be read.
[[nodiscard]] std::optional<CpuTicks> read_cpu(std::span<const pid_t> servers);

struct CpuShares {
  double ours = 0, others = 0, stolen = 0;  // Of the machine.
};
[[nodiscard]] CpuShares shares_between(const CpuTicks& begin, const CpuTicks& end);

}  // namespace ringshift::drill
