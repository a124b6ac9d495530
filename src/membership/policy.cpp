#include "membership/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/discovery_match.h"
#include "topology/validate.h"

namespace ringshift::membership {
namespace {

using discovery::Instance;
using discovery::InstanceState;
using topology::Member;

bool is_name(std::string_view id) {
  return !id.empty() && id.size() <= topology::kMaxNameBytes &&
         id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") ==
             std::string_view::npos;
}

const Member* member_of(const topology::Spec& spec, std::string_view id) {
  const auto found = std::ranges::find(spec.members, id, &Member::id);
  return found == spec.members.end() ? nullptr : &*found;
}

bool any_fits(const std::vector<std::string>& patterns, auto fits) {
  return patterns.empty() || std::ranges::any_of(patterns, fits);
}

long long whole_seconds(base::Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// Adds what was watched to each clock that runs, and stops those that do not.
void run_clocks(std::map<std::string, base::Duration>& clocks, const std::set<std::string>& running,
                base::Duration watched) {
  std::erase_if(clocks, [&](const auto& entry) { return !running.contains(entry.first); });
  for (const std::string& id : running) {
    const auto [clock, is_new] = clocks.try_emplace(id, base::Duration{0});
    if (!is_new) clock->second += watched;
  }
}

void look(const Situation& now, base::TimePoint at, Memory& memory) {
  const base::Duration watched = memory.looked_at
                                     ? std::clamp(at - *memory.looked_at, base::Duration{0}, kLongestLook)
                                     : base::Duration{0};
  memory.looked_at = at;
  memory.quiet_for = now.resizing ? base::Duration{0} : memory.quiet_for + watched;
  std::set<std::string> ready, gone;
  for (const Instance& instance : now.instances)
    if (instance.state == InstanceState::ready) ready.insert(instance.id);
  for (const Member& member : now.spec.members) {
    if (now.source_well && ready.contains(member.id)) memory.seen.insert(member.id);
    if (memory.seen.contains(member.id) && !ready.contains(member.id)) gone.insert(member.id);
  }
  std::erase_if(memory.seen, [&](const std::string& id) { return member_of(now.spec, id) == nullptr; });
  if (!now.source_well) {  // Nothing is known: what was counted so far counts no more.
    memory.gone_for.clear();
    memory.ready_for.clear();
    return;
  }
  run_clocks(memory.gone_for, gone, watched);
  run_clocks(memory.ready_for, ready, watched);
}

base::Duration steady(const Situation& now) {
  return std::min<base::Duration>(kSteady, now.discovery.cooldown);
}

// At once when he is gone; back when he has been ready without a break, so that who flaps is out.
void judge_ejected(const Situation& now, Memory& memory) {
  using topology::Consistency;
  const bool ejects = now.spec.consistency != Consistency::strict &&
                      now.discovery.eject.value_or(now.spec.consistency == Consistency::none);
  if (!ejects) return memory.ejected.clear();
  std::erase_if(memory.ejected, [&](const std::string& id) {
    const auto ready = memory.ready_for.find(id);
    const bool is_back = ready != memory.ready_for.end() && ready->second >= steady(now);
    return is_back || member_of(now.spec, id) == nullptr;
  });
  if (memory.gone_for.size() > now.discovery.remove.at_most) return;
  for (const auto& [id, since] : memory.gone_for) {
    if (memory.ejected.size() + now.discovery.remove.floor >= now.spec.members.size()) return;
    memory.ejected.insert(id);
  }
}

base::Duration cooldown_left(const Situation& now, const Memory& memory) {
  return std::max(base::Duration{0}, now.discovery.cooldown - memory.quiet_for);
}

// Why nothing at all may change now; empty when something may.
Reason held(const Situation& now, const Memory& memory) {
  if (!now.source_well) return {"source", "the source is in trouble"};
  if (now.resizing) return {"resize", "a resize runs"};
  if (const base::Duration left = cooldown_left(now, memory); left.count() > 0)
    return {"cooldown", fmt::format("cool-down, {} s more", whole_seconds(left) + 1)};
  return {};
}

Reason stays_because(const Situation& now, base::Duration gone_for, std::size_t gone,
                     const Reason& all_held) {
  const topology::DiscoveryRemove& remove = now.discovery.remove;
  if (remove.after.count() == 0) return {"never", "nobody leaves by himself (remove.after)"};
  if (gone > remove.at_most) {
    return {"too_many",
            fmt::format("{} members are gone at once, more than {} (remove.at_most): an operator decides",
                        gone, remove.at_most)};
  }
  if (now.spec.members.size() <= remove.floor) {
    return {"floor",
            fmt::format("the cluster would have fewer than {} members (remove.floor)", remove.floor)};
  }
  if (gone_for < remove.after)
    return {"counting", fmt::format("{} s more", whole_seconds(remove.after - gone_for) + 1)};
  return all_held;
}

Gone gone_member(const Situation& now, const std::string& id, base::Duration since, const Memory& memory,
                 const Reason& all_held) {
  Reason stays = stays_because(now, since, memory.gone_for.size(), all_held);
  Gone gone{id, since, std::move(stays.text), std::move(stays.code), std::nullopt};
  const bool by_itself = gone.code.empty() || gone.code == "counting" || gone.code == "cooldown";
  if (by_itself && !now.resizing) {
    const base::Duration rest = std::max(base::Duration{0}, now.discovery.remove.after - since);
    gone.leaves_in = std::max(rest, cooldown_left(now, memory));
  }
  return gone;
}

Reason waits_because(const Situation& now, const Candidate& candidate, const Memory& memory,
                     const Reason& all_held) {
  if (!now.discovery.admit_auto) return {"operator", "an operator admits it: ringshift member admit"};
  if (now.drained.contains(candidate.member.id))
    return {"drained", "an operator drained it: 'ringshift member admit' takes the mark away"};
  if (candidate.state != InstanceState::ready) return {"not_ready", "it is not ready"};
  if (!memory.gone_for.empty()) {
    return {"member_gone",
            fmt::format("member {} is gone, which comes first", memory.gone_for.begin()->first)};
  }
  const auto ready = memory.ready_for.find(candidate.member.id);
  if (ready == memory.ready_for.end() || ready->second < steady(now))
    return {"not_steady", "it has not been ready for long"};
  return all_held;
}

// Spelt so or so.
bool same_address(const std::string& a, const std::string& b) {
  return a == b || topology::canonical_address(a) == topology::canonical_address(b);
}

// Who was never refused comes first, then who was refused longest ago.
std::uint64_t turn(const std::string& id, const Memory& memory) {
  const auto refused = memory.refused.find(id);
  return refused == memory.refused.end() ? 0 : refused->second;
}

// In turn; of one turn the longest gone first, then by id.
bool leaves_before(const std::string& a, const std::string& b, const Memory& memory) {
  if (turn(a, memory) != turn(b, memory)) return turn(a, memory) < turn(b, memory);
  return memory.gone_for.at(a) > memory.gone_for.at(b);
}

}  // namespace

Member as_member(const topology::DiscoverySpec& discovery, const Instance& instance) {
  Member member;
  member.id = instance.id;
  member.address = instance.address;
  bool weighed = false;
  for (const topology::DiscoveryAssign& rule : discovery.assign) {
    if (!topology::fits_pattern(rule.ids, instance.id)) continue;
    if (rule.weight && !weighed) member.weight = *rule.weight, weighed = true;
    if (member.zone.empty()) member.zone = rule.zone;
    if (member.host.empty()) member.host = rule.host;
    const auto label = rule.label.empty() ? instance.labels.end() : instance.labels.find(rule.label);
    if (label == instance.labels.end()) continue;
    std::string& field = rule.as == "zone" ? member.zone : member.host;
    if (field.empty()) field = label->second.substr(0, topology::kMaxNameBytes);
  }
  return member;
}

Reason unfit(const Situation& now, const Instance& instance, const MembersAt& members) {
  const topology::DiscoveryMatch& match = now.discovery.match;
  if (!is_name(instance.id)) return {"id_invalid", "its id is no name: letters, digits and - _ . :"};
  if (!any_fits(match.ids, [&](const auto& one) { return topology::fits_pattern(one, instance.id); }))
    return {"id_no_match", "its id does not match (match.ids)"};
  if (std::string wrong = topology::check_address(instance.address); !wrong.empty())
    return {"address_invalid", std::move(wrong)};
  if (!any_fits(match.addresses,
                [&](const auto& one) { return topology::fits_address(one, instance.address); })) {
    return {"address_no_match", "its address does not match (match.addresses)"};
  }
  if (!match.name_space.empty()) {
    const auto label = instance.labels.find("namespace");
    if (label == instance.labels.end() || label->second != match.name_space)
      return {"namespace_no_match", "its label 'namespace' does not match (match.namespace)"};
  }
  const char* const spoken = now.spec.protocol == topology::Protocol::redis ? "redis" : "memcached";
  if (instance.protocol != spoken)
    return {"protocol", fmt::format("it speaks {}, the cluster {}", instance.protocol, spoken)};
  if (std::ranges::find(now.spec.retired, instance.id) != now.spec.retired.end())
    return {"retired", "its id is retired"};
  if (const auto taken = members.find(topology::canonical_address(instance.address)); taken != members.end())
    return {"address_taken", fmt::format("member {} has its address", taken->second)};
  return {};
}

Decision decide(const Situation& now, base::TimePoint at, Memory& memory) {
  look(now, at, memory);
  judge_ejected(now, memory);
  const Reason all_held = held(now, memory);
  Decision out;
  out.ejected = memory.ejected;
  MembersAt members;
  for (const Member& member : now.spec.members)
    members.emplace(topology::canonical_address(member.address), member.id);
  if (!now.resizing) out.cooldown_left = cooldown_left(now, memory);
  for (const auto& [id, since] : memory.gone_for) {
    Gone gone = gone_member(now, id, since, memory, all_held);
    gone.ejected = memory.ejected.contains(id);
    if (gone.waits_for.empty() && (!out.remove || leaves_before(id, *out.remove, memory))) out.remove = id;
    out.gone.push_back(std::move(gone));
  }
  for (const Instance& instance : now.instances) {
    if (const Member* member = member_of(now.spec, instance.id)) {
      if (!same_address(member->address, instance.address))
        out.elsewhere.push_back({member->id, member->address, instance.address});
      continue;
    }
    Candidate candidate;
    candidate.member = as_member(now.discovery, instance);
    candidate.state = instance.state;
    Reason why = unfit(now, instance, members);
    candidate.why_not = why.text;
    if (why.empty()) why = waits_because(now, candidate, memory, all_held);
    if (why.empty() && !out.remove && (!out.admit || turn(instance.id, memory) < turn(out.admit->id, memory)))
      out.admit = candidate.member;
    candidate.waits_for = std::move(why.text);
    candidate.code = std::move(why.code);
    out.candidates.push_back(std::move(candidate));
  }
  for (Candidate& candidate : out.candidates) {
    const bool its_turn = out.admit && out.admit->id == candidate.member.id;
    if (!candidate.code.empty() || its_turn) continue;
    candidate.waits_for = "one at a time";
    candidate.code = "one_at_a_time";
  }
  return out;
}

void changed(Memory& memory, const std::string& id, bool done) {
  memory.quiet_for = base::Duration{0};
  if (done) {
    memory.refused.erase(id);
  } else {
    memory.refused[id] = ++memory.refusals;
    std::erase_if(memory.refused,
                  [&](const auto& one) { return one.second + kRefusalsKept <= memory.refusals; });
  }
}

}  // namespace ringshift::membership
