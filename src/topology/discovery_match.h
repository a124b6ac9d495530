// The patterns of a spec's `discovery`: of ids and of addresses. Pure; linear in the text (a '*' never tries
// again what an earlier one could have taken).
#pragma once
#include <string>
#include <string_view>

namespace ringshift::topology {

// '*' is any text, '?' any one character; everything else is itself.
[[nodiscard]] bool fits_pattern(std::string_view pattern, std::string_view text) noexcept;

// Whether the host of `address` (host:port, [v6]:port, unix:/path) lies in `range`: a network such as
// 10.0.0.0/8 or fd00::/8 (which a host name never does), a single IP, or a pattern for names and unix paths.
[[nodiscard]] bool fits_address(std::string_view range, std::string_view address);

// "" when fits_address() can do something with it, else what is wrong.
[[nodiscard]] std::string check_address_range(std::string_view range);

}  // namespace ringshift::topology
