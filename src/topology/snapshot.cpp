#include "ringshift/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "topology/reader.h"
#include "topology/snapshot_impl.h"
#include "topology/validate.h"

namespace ringshift::topology {

static_assert(kNoMember == placement::kNoMember);

namespace {

const placement::Ring* ring_of(const placement::Placement& placement) {
  if (const auto* ring = std::get_if<placement::Ring>(&placement.algorithm())) return ring;
  if (const auto* tokens = std::get_if<placement::Tokens>(&placement.algorithm())) return &tokens->ring();
  const auto* bounded = std::get_if<placement::BoundedRing>(&placement.algorithm());
  return bounded == nullptr ? nullptr : &bounded->ring();
}

// What the hash leads to in a placement that is no ring.
std::string step_of(const placement::Placement& placement, const Placement& spec, std::uint64_t hash) {
  if (const auto* jump = std::get_if<placement::Jump>(&placement.algorithm())) {
    const auto buckets = static_cast<std::uint32_t>(jump->members().size());
    return fmt::format("bucket {} of {} (jump)", placement::jump_bucket(hash, buckets), buckets);
  }
  if (const auto* maglev = std::get_if<placement::Maglev>(&placement.algorithm())) {
    return fmt::format("entry {} of {} (maglev)", hash % maglev->table().size(), maglev->table().size());
  }
  if (const auto* partitions = std::get_if<placement::Partitions>(&placement.algorithm())) {
    return fmt::format("partition {} of {}", partitions->partition(hash), partitions->table().size());
  }
  return spec.algorithm;
}

// Both members by one store: GCC 12 otherwise takes them through a vector register.
Route settled(MemberIndex member) noexcept {
  static_assert(offsetof(Route, member) == 0 && offsetof(Route, source) == sizeof member);
  Route route;
  const std::uint64_t both = std::uint64_t{member} << 32 | member;
  std::memcpy(static_cast<void*>(&route), &both, sizeof both);
  return route;
}

}  // namespace

Route Snapshot::Impl::route_in_resize(std::string_view key) const noexcept {
  const SliceState state = slices[slice(key)];
  if (state == SliceState::before) return settled(owner(*before, key));
  const MemberIndex to = owner(*after, key);
  if (state == SliceState::after) return settled(to);
  const MemberIndex from = owner(*before, key);
  if (from == to) return settled(to);
  // An active slice is still where its direction comes from: A's going forward, B's in a rollback.
  const MemberIndex source = rollback ? to : from;
  const MemberIndex destination = rollback ? from : to;
  switch (phase) {
    case Phase::prep:
      return settled(source);
    case Phase::hold:
      return {destination, source, KeyState::hold};
    case Phase::dual:
      // Nothing will ever be read from a lost source again, and what it has is never looked at: past HOLD the
      // key is its destination's, as if the source had said "absent" (I8: no claim can be there, for no
      // transfer of this step has begun).
      if (!lost.empty() && lost[source] != 0) return settled(destination);
      return {destination, source, KeyState::dual};
  }
  return settled(source);
}

std::vector<Former> Snapshot::Impl::formers() const {
  const auto index_of = [this](std::string_view id) {
    const auto found = indices.find(id);
    return found == indices.end() ? kNoMember : found->second;
  };
  std::vector<Former> out{{before, topology.spec.placement, topology.spec.members, index_of}};
  if (after) out.push_back({after, topology.resize->placement, topology.resize->members, index_of});
  return out;
}

Result<std::shared_ptr<const Snapshot>> Snapshot::compile(Topology topology, Version version,
                                                          const Snapshot* previous) {
  if (const auto problem = check_topology(topology)) {
    return fail(ErrorKind::invalid, describe("topology", 0, problem->path, problem->message));
  }
  std::string hex = topology::digest(topology);
  auto impl = std::make_unique<Impl>(std::move(topology));
  const Topology& kept = impl->topology;
  const auto add = [&](const std::vector<Member>& members) {
    for (const Member& member : members) {
      const auto index = static_cast<MemberIndex>(impl->members.size());
      if (impl->indices.emplace(member.id, index).second) impl->members.push_back(member);
    }
  };
  const auto index_of = [&](std::string_view id) { return impl->indices.find(id)->second; };
  add(kept.spec.members);
  const std::vector<Former> formers =
      previous == nullptr ? std::vector<Former>{} : previous->impl_->formers();
  impl->before = compile_from(formers, kept.spec.placement, kept.spec.members, index_of);
  impl->slice_tag = impl->before->tag();
  if (kept.resize) {
    const Resize& resize = *kept.resize;
    add(resize.members);
    impl->after = compile_from(formers, resize.placement, resize.members, index_of);
    if (!impl->slice_tag.enabled()) impl->slice_tag = impl->after->tag();
    impl->rollback = resize.rollback;
    impl->phase = resize.phase;
    if (!resize.lost.empty()) impl->lost.resize(impl->members.size());
    for (const std::string& id : resize.lost) impl->lost[index_of(id)] = 1;
    for (std::uint32_t slice = 0; slice < kSliceCount; ++slice) {
      if (contains(resize.done, slice)) impl->slices[slice] = Impl::SliceState::after;
      if (contains(resize.active, slice)) impl->slices[slice] = Impl::SliceState::active;
    }
  }
  impl->lifecycle = Lifecycle(impl->members, kept.factors);
  impl->plain = !kept.resize && !impl->lifecycle.active();
  if (impl->plain && impl->before->hash_function() == hashing::Hash64::xxh3)
    impl->plain_ring = std::get_if<placement::Ring>(&impl->before->algorithm());
  impl->plain_tag = impl->before->tag();
  return std::shared_ptr<const Snapshot>(new Snapshot(version, std::move(hex), std::move(impl)));
}

Snapshot::Snapshot(Version v, std::string d, std::unique_ptr<Impl> impl)
    : version(v), digest(std::move(d)), impl_(std::move(impl)) {}
Snapshot::~Snapshot() = default;

const Topology& Snapshot::topology() const noexcept { return impl_->topology; }
std::span<const Member> Snapshot::members() const noexcept { return impl_->members; }

MemberIndex Snapshot::index_of(std::string_view id) const noexcept {
  const auto found = impl_->indices.find(id);
  return found == impl_->indices.end() ? kNoMember : found->second;
}

Route Snapshot::Impl::route_any(std::string_view key) const noexcept {
  if (plain) return settled(before->owner(key));
  return after ? route_in_resize(key) : settled(owner(*before, key));
}

// The usual case in full, with no call in it: then nothing is saved and restored around one.
Route Snapshot::route(std::string_view key) const noexcept {
  const Impl& impl = *impl_;
  if (impl.plain_ring != nullptr && key.size() <= hashing::kXxh3Short && impl.plain_tag.surely_absent(key))
      [[likely]] {
    const MemberIndex owner = impl.plain_ring->quick_owner(hashing::xxh3_short(key));
    if (owner != placement::Ring::kSearch) [[likely]]
      return settled(owner);
  }
  return impl.route_any(key);
}

void Snapshot::route_many(std::span<const std::string_view> keys, std::span<Route> out) const noexcept {
  if (!impl_->plain) {
    for (std::size_t i = 0; i < keys.size(); ++i) out[i] = route(keys[i]);
    return;
  }
  // In blocks that live on the stack: hashes first, then all their look-ups at once.
  constexpr std::size_t kBlock = 64;
  std::array<std::uint64_t, kBlock> hashes;
  std::array<MemberIndex, kBlock> owners;
  const placement::Placement& placement = *impl_->before;
  for (std::size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, keys.size() - begin);
    placement.hashes(keys.subspan(begin, count), hashes);
    placement.owners(std::span(hashes).first(count), std::span(owners).first(count));
    for (std::size_t i = 0; i < count; ++i) out[begin + i] = settled(owners[i]);
  }
}

MemberIndex Snapshot::owner_before(std::string_view key) const noexcept {
  return impl_->owner(*impl_->before, key);
}

MemberIndex Snapshot::owner_after(std::string_view key) const noexcept {
  return impl_->owner(impl_->after ? *impl_->after : *impl_->before, key);
}

std::uint32_t Snapshot::slice(std::string_view key) const noexcept { return impl_->slice(key); }

std::vector<std::string> Snapshot::explain(std::string_view key) const {
  const placement::Placement& placement = *impl_->before;
  const std::string_view tagged = placement.tag().apply(key);
  const std::uint64_t hash = placement.hash(tagged);
  const auto id = [&](MemberIndex member) { return impl_->members[member].id; };
  std::vector<std::string> out;
  if (tagged.size() != key.size())
    out.push_back(fmt::format("hash tag {}: only this part is hashed", shown(tagged)));
  out.push_back(fmt::format("slice {} of {}", impl_->slice(key), kSliceCount));
  const std::string_view name = hashing::to_string(placement.hash_function());
  if (const auto* ring = ring_of(placement)) {
    const std::size_t first = ring->first_point(hash);
    const std::size_t point = first == ring->size() ? 0 : first;
    out.push_back(fmt::format("hash {:016x} ({})", hash, name));
    out.push_back(fmt::format("point {:016x}, number {} of {}{}, of {}", ring->points()[point].hash, point,
                              ring->size(), first == ring->size() ? " (past the end: wraps)" : "",
                              id(ring->points()[point].member)));
  } else if (const auto* peer = std::get_if<placement::PeerPlacement>(&placement.algorithm())) {
    out.push_back(fmt::format("hash {:08x} ({})", hash, peer->peer().key_hash().name()));
    out.push_back(peer->peer().explain(hash));
  } else if (const auto* modulo = std::get_if<placement::Modulo>(&placement.algorithm())) {
    out.push_back(fmt::format("hash {:016x} ({})", hash, name));
    out.push_back(
        fmt::format("residue {} of {}", hash % modulo->residues().size(), modulo->residues().size()));
  } else if (std::holds_alternative<placement::Slots>(placement.algorithm())) {
    out.push_back(fmt::format("slot {} of {} (crc16)", hash, placement::kSlotCount));
  } else {
    out.push_back(fmt::format("hash {:016x} ({})", hash, name));
    out.push_back(step_of(placement, impl_->topology.spec.placement, hash));
  }
  const MemberIndex first = placement.owner_of(hash);
  const MemberIndex taker = owner_before(key);
  if (first != taker) {
    out.push_back(fmt::format("{} leaves the key to others: its factor is {} of 1000", id(first),
                              impl_->topology.factors.at(id(first))));
  }
  out.push_back(fmt::format("owner {}", id(taker)));
  return out;
}

}  // namespace ringshift::topology
