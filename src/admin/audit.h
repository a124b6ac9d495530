// The list of actions that were taken through the admin API: who, what, from what to what, and how it ended.
// An entry is a key of its own under audit/ in the registry; the newest kAuditKept stay.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"

namespace ringshift::admin {

inline constexpr std::size_t kAuditKept = 500;
inline constexpr std::size_t kAuditTextMax = 1000;  // Bytes of each of `from`, `to` and `result`.

struct AuditEntry {
  std::string id;  // The rest of its key.
  std::int64_t at_ms = 0;
  std::string who, action, subject, from, to, result;
};
[[nodiscard]] std::string audit_prefix(const coord::ClusterKeys& keys);
[[nodiscard]] std::string to_json(const AuditEntry& entry);
// Fails when it is none of ours.
[[nodiscard]] Result<AuditEntry> parse_audit(std::string_view id, std::string_view json);

// Writes the entry (its id is made here), and removes what is beyond kAuditKept of `known`, the keys that are
// there, oldest first. Blocking: one request.
[[nodiscard]] Status write_audit(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                 AuditEntry entry, const std::vector<std::string>& known);

}  // namespace ringshift::admin
