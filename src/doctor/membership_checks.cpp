// What the doctor thinks of the membership policy, by what the leading controller told last. Nothing where
// there is no policy.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "doctor/cluster_checks.h"
#include "membership/report.h"
#include "resize/controls.h"
#include "topology/discovery.h"

namespace ringshift::doctor {
namespace {

using membership::Candidate;
using membership::Report;

constexpr std::size_t kTold = 20;  // Findings of one kind; a source may have thousands of instances.

using Fixes = std::pair<std::string_view, std::string_view>;

// Whoever can be no member as he is. One that does not match is kept out on purpose: no finding.
constexpr std::array<Fixes, 5> kUnfit = {{
    {"id_invalid", "give it another id: letters, digits and - _ . :"},
    {"address_invalid", "correct the address that it is registered with: HOST:PORT"},
    {"protocol", "take it out of this cluster's source, or keep it away by discovery.match"},
    {"retired", "give it a new id: one that was retired never returns ('ringshift member remove')"},
    {"address_taken", "correct its address, or give it the member's id if it is the member"},
}};

constexpr std::array<Fixes, 4> kGone = {{
    {"never",
     "start it again; if it shall not come back: 'ringshift member drain ID', or 'resize start --lost ID' "
     "if its server is gone, too"},
    {"too_many",
     "look at the network and the source: nobody leaves by himself while so many are gone. Start "
     "them again, or take them out by hand"},
    {"floor", "start it again, or add members first: fewer would stay than discovery.remove.floor"},
    {"", "start it again; else it is taken out by policy"},
}};

template <std::size_t N>
std::string fix_for(const std::array<Fixes, N>& fixes, std::string_view code) {
  for (const auto& [one, fix] : fixes) {
    if (one == code) return std::string(fix);
  }
  return "";
}

// 0: it was not told.
std::string since(std::int64_t at_ms) {
  return at_ms == 0 ? "" : fmt::format(" since {}", resize::local_time(at_ms));
}

void check_source(const Report& report, Findings& out) {
  if (report.trouble.empty()) {
    return out.ok("source", report.source,
                  fmt::format("answers; admission is {}", report.admit_auto ? "automatic" : "an operator's"));
  }
  if (report.held) {
    return out.warning(
        "source", report.source,
        fmt::format("is not believed{}: {}", since(report.trouble_since_ms), report.trouble),
        "look at the source ('ringshift discovery show') and at the network before it; nobody joins "
        "or leaves by policy until its list stays as it is, or is plausible again");
  }
  out.problem(
      "source", report.source,
      fmt::format("in trouble{}: {}", since(report.trouble_since_ms), report.trouble),
      "mend what it says, or correct discovery.source ('ringshift member policy FILE'); nobody joins or "
      "leaves by policy meanwhile");
}

void check_candidates(const Report& report, Findings& out) {
  std::size_t fit = 0, unfit = 0;
  for (const Candidate& candidate : report.candidates) {
    if (candidate.why_not.empty()) {
      ++fit;
      continue;
    }
    const std::string fix = fix_for(kUnfit, candidate.code);
    if (fix.empty()) continue;
    if (++unfit <= kTold) {
      out.warning("candidates", candidate.member.id, fmt::format("can be no member: {}", candidate.why_not),
                  fix);
    }
  }
  if (unfit > kTold)
    out.warning("candidates", "", fmt::format("and {} more can be no members", unfit - kTold),
                "'ringshift member candidates' lists them");
  if (unfit == 0) out.ok("candidates", "", fmt::format("{} can become members", fit));
}

void check_gone(const Report& report, const topology::Topology& topology, Findings& out) {
  // A resize that takes a member out is why its instance drains.
  if (report.gone.empty() || topology.resize) return out.ok("gone", "", "no member's instance");
  std::size_t told = 0;
  for (const Report::GoneMember& gone : report.gone) {
    if (++told > kTold) break;
    std::string fix = fix_for(kGone, gone.code);
    if (fix.empty()) fix = fix_for(kGone, "");
    std::string message =
        fmt::format("its instance is gone{}; {}", since(gone.since_ms),
                    gone.waits_for.empty() ? "it leaves now" : "it stays: " + gone.waits_for);
    if (gone.leaves_at_ms != 0)
      message += fmt::format("; leaves at {}", resize::local_time(gone.leaves_at_ms));
    if (gone.code == "too_many") {
      out.problem("gone", gone.id, std::move(message), std::move(fix));
    } else {
      out.warning("gone", gone.id, std::move(message), std::move(fix));
    }
  }
}

void check_elsewhere(const Report& report, Findings& out) {
  if (report.elsewhere.empty()) return out.ok("address", "", "instances are where their members are");
  std::size_t told = 0;
  for (const membership::Elsewhere& one : report.elsewhere) {
    if (++told > kTold) break;
    out.warning(
        "address", one.id,
        fmt::format("its instance says {}, and routers ask {}", one.instance_address, one.member_address),
        "if it has moved for good, apply a spec with the new address ('ringshift topology apply'); else "
        "correct what it registers with");
  }
}

}  // namespace

void check_membership(const RegistryLook& look, const topology::Topology& topology, Findings& out) {
  if (!look.discovery) return;
  if (const auto rules = topology::parse_discovery(look.discovery->value, look.discovery->key); !rules) {
    out.problem("rules", "", "cannot be read: " + rules.error().message,
                "put correct ones into force: 'ringshift member policy FILE'");
  }
  if (!look.controller) return;  // Which is a problem of its own; what the last one told is old.
  const Result<Report> report =
      look.membership ? membership::parse_report(look.membership->value)
                      : fail(ErrorKind::not_found, "the controller has not told yet what it sees");
  if (!report) {
    return out.warning("source", "", report.error().message,
                       "look at the controller's log, and whether it is of this version");
  }
  check_source(*report, out);
  check_candidates(*report, out);
  check_gone(*report, topology, out);
  check_elsewhere(*report, out);
  if (report->last_error.empty()) return;
  out.warning(
      "change", report->last_change.member, report->last_error,
      "mend what it says; it is tried again after the cool-down, or do it by hand: 'ringshift member'");
}

}  // namespace ringshift::doctor
