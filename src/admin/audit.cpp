#include "admin/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

namespace ringshift::admin {
namespace {

constexpr std::size_t kRemovedAtOnce = 50;

std::string bounded_text(std::string text) {
  if (text.size() > kAuditTextMax) {
    text.resize(kAuditTextMax);
    text += "...";
  }
  return text;
}

}  // namespace

std::string audit_prefix(const coord::ClusterKeys& keys) { return keys.prefix + "audit/"; }

std::string to_json(const AuditEntry& entry) {
  return nlohmann::json{{"at_ms", entry.at_ms},     {"who", entry.who},   {"action", entry.action},
                        {"subject", entry.subject}, {"from", entry.from}, {"to", entry.to},
                        {"result", entry.result}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<AuditEntry> parse_audit(std::string_view id, std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorKind::invalid, "audit entry: not a JSON object");
  AuditEntry entry;
  entry.id = id;
  try {
    entry.at_ms = object.value("at_ms", std::int64_t{0});
    entry.who = object.value("who", std::string());
    entry.action = object.value("action", std::string());
    entry.subject = object.value("subject", std::string());
    entry.from = object.value("from", std::string());
    entry.to = object.value("to", std::string());
    entry.result = object.value("result", std::string());
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::invalid, std::string("audit entry: ") + error.what());
  }
  return entry;
}

Status write_audit(coord::Coordinator& coordinator, const coord::ClusterKeys& keys, AuditEntry entry,
                   const std::vector<std::string>& known) {
  std::random_device entropy;
  entry.from = bounded_text(std::move(entry.from));
  entry.to = bounded_text(std::move(entry.to));
  entry.result = bounded_text(std::move(entry.result));
  std::vector<coord::Op> ops;
  ops.push_back({coord::Op::Kind::put,
                 fmt::format("{}{:013}-{:08x}", audit_prefix(keys), entry.at_ms, entropy()), to_json(entry),
                 0});
  for (std::size_t i = 0; i + kAuditKept <= known.size() && i < kRemovedAtOnce; ++i)
    ops.push_back({coord::Op::Kind::remove, audit_prefix(keys) + known[i], "", 0});
  const auto written = coordinator.transact({}, ops);
  if (!written) return std::unexpected(written.error());
  return {};
}

}  // namespace ringshift::admin
