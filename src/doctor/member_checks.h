// What the doctor thinks of members, by what they said (examine.h). Pure functions; each gives one finding
// for each member it judges.
#pragma once
#include <vector>

#include "doctor/examine.h"
#include "doctor/finding.h"
#include "ringshift/topology.h"

namespace ringshift::doctor {

// Each of these says nothing of members that did not answer, but check_reached().
void check_reached(const MemberFacts& facts, Findings& out);
void check_role(const MemberFacts& facts, Findings& out);
void check_permissions(const MemberFacts& facts, Findings& out);
void check_memory(const MemberFacts& facts, Findings& out);
void check_persistence(const MemberFacts& facts, Findings& out);
// `databases`: of the spec.
void check_databases(const MemberFacts& facts, unsigned databases, Findings& out);
void check_foreign_clients(const MemberFacts& facts, Findings& out);
void check_connections(const MemberFacts& facts, Findings& out);
void check_clock(const MemberFacts& facts, Findings& out);
void check_placed_keys(const MemberFacts& facts, Findings& out);
void check_stamp(const MemberFacts& facts, const topology::Topology& topology, Findings& out);

// Over all of them.
void check_versions(const std::vector<MemberFacts>& all, const topology::Topology& topology, Findings& out);
void check_one_server_each(const std::vector<MemberFacts>& all, Findings& out);

// All of the above. `from_registry`: stamps are expected as the topology's fence says.
[[nodiscard]] std::vector<Finding> check_members(const std::vector<MemberFacts>& all,
                                                 const topology::Topology& topology, bool from_registry);

}  // namespace ringshift::doctor
