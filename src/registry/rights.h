// Who may do what in the registry, decided from a request alone: pure, and denied unless a rule allows it.
//
//   read          reads all keys of its namespace, /ringshift/NAMESPACE/
//   register-own  writes instances/ID and routers/ID of its namespace's clusters, for its own IDs alone,
//   under a
//                 lease of its own; reads what a router needs
//   operate       reads and writes all keys of its namespace
//   admin         everything, tokens, audit, backup and compaction too
//
// A range must lie in what the role reads whole: one that reaches beyond is denied, not cut.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"
#include "store/types.h"

namespace ringshift::registry {

inline constexpr std::size_t kKeyShown = 120;  // Of a key, in an error: more would fill the log.

enum class Role : std::uint8_t { read, register_own, operate, admin };
[[nodiscard]] std::string_view to_string(Role role) noexcept;
[[nodiscard]] std::optional<Role> role_of(std::string_view name) noexcept;

inline constexpr std::string_view kAllNamespaces = "*";  // An admin's.
inline constexpr std::size_t kPatternsMax = 32;          // Of IDs, and of address ranges, in one token.
inline constexpr std::size_t kNameBytesMax = 64;
// Of register-own: a router's is 20 KiB at most, an agent's with all its labels about as much.
inline constexpr std::size_t kRecordBytesMax = 64U << 10;

struct Identity {
  std::string name;
  Role role = Role::read;
  std::string name_space;
  std::vector<std::string> ids;        // Shell patterns. register-own: empty means the name, and NAME.* .
  std::vector<std::string> addresses;  // "10.0.0.0/8": where its instances may be. Empty: anywhere.
};

// Whether a token may be so; names the field, the value and the form.
[[nodiscard]] Status check_identity(const Identity& identity);

// denied, with who, what and why. `range_end` as in store::RangeRequest.
[[nodiscard]] Status may_read(const Identity& who, std::string_view key, std::string_view range_end);
// Whose the lease and the present key are is for the caller to check: this looks at the request alone.
[[nodiscard]] Status may_put(const Identity& who, const store::PutRequest& request);
[[nodiscard]] Status may_remove(const Identity& who, const store::DeleteRequest& request);
[[nodiscard]] Status may_lease(const Identity& who);
[[nodiscard]] Status may_administer(const Identity& who, std::string_view what);

// Of a key that may_put() or may_remove() allows register-own.
[[nodiscard]] std::string_view id_in(std::string_view key) noexcept;

// Whether the address, "HOST:PORT", is an IP address in one of the ranges.
[[nodiscard]] bool in_ranges(std::string_view address, const std::vector<std::string>& ranges);

// Of keys in /ringshift/: not the bookkeeping that controllers and routers write by themselves all the time.
[[nodiscard]] bool worth_auditing(std::string_view key);

}  // namespace ringshift::registry
