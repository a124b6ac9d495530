#include "resize/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringshift::resize {

using topology::Phase;
using topology::Resize;
using topology::SliceSet;
using topology::Topology;

namespace {

std::uint16_t slice_bound(double percent) {
  return static_cast<std::uint16_t>(std::lround(percent / 100.0 * topology::kSliceCount));
}

Topology with_new_step(const Topology& now, RunIds run_ids) {
  Topology next = now;
  ++next.fence.step;
  next.fence.run_ids = std::move(run_ids);
  return next;
}

}  // namespace

Status check_steps(const std::vector<double>& percent) {
  double before = 0;
  for (const double step : percent) {
    if (!(step > before) || step > 100) {
      return fail(
          ErrorKind::invalid,
          fmt::format("steps: {} must be above {} and at most 100 (example: 1,10,50,100)", step, before));
    }
    before = step;
  }
  if (before != 100)
    return fail(ErrorKind::invalid, "steps: the last one must be 100 (example: 1,10,50,100)");
  return {};
}

SliceSet slices_of_step(const std::vector<double>& percent, std::size_t index) {
  const std::uint16_t begin = index == 0 ? std::uint16_t{0} : slice_bound(percent[index - 1]);
  const std::uint16_t end = slice_bound(percent[index]);
  if (begin >= end) return {};  // A step too small for a slice of its own.
  return {{begin, end}};
}

std::size_t next_step(const std::vector<double>& percent, const SliceSet& done) {
  for (std::size_t i = 0; i < percent.size(); ++i) {
    for (const topology::SliceRange& range : slices_of_step(percent, i)) {
      for (std::uint32_t slice = range.begin; slice < range.end; ++slice) {
        if (!topology::contains(done, slice)) return i;
      }
    }
  }
  return percent.size();
}

std::vector<topology::Member> all_members(const Topology& topology) {
  std::vector<topology::Member> members = topology.spec.members;
  if (!topology.resize) return members;
  for (const topology::Member& member : topology.resize->members) {
    const bool there = std::ranges::any_of(members, [&](const auto& other) { return other.id == member.id; });
    if (!there) members.push_back(member);
  }
  return members;
}

Topology begin(const Topology& now, const topology::Spec& target, std::string id, RunIds run_ids) {
  Topology next = with_new_step(now, std::move(run_ids));
  ++next.fence.epoch;
  next.factors.clear();  // Between two owners of a key there is no third.
  Resize resize;
  resize.id = std::move(id);
  resize.placement = target.placement;
  resize.members = target.members;
  next.spec.limits = target.limits;
  next.resize = std::move(resize);
  return next;
}

Topology hold(const Topology& now, const SliceSet& slices, RunIds run_ids) {
  Topology next = with_new_step(now, std::move(run_ids));
  next.resize->phase = Phase::hold;
  next.resize->active = slices;
  next.resize->read_order = topology::ReadOrder::old_first;
  return next;
}

Topology dual(const Topology& now) {
  Topology next = now;
  next.resize->phase = Phase::dual;
  return next;
}

Topology call_off(const Topology& now) {
  Topology next = now;
  next.resize->phase = Phase::prep;
  next.resize->active.clear();
  return next;
}

Topology settle(const Topology& now) {
  Topology next = now;
  Resize& resize = *next.resize;
  // In a rollback they are A's again: neither done nor active.
  if (!resize.rollback) resize.done = topology::unite(resize.done, resize.active);
  resize.active.clear();
  resize.phase = Phase::prep;
  resize.read_order = topology::ReadOrder::old_first;
  return next;
}

Topology begin_rollback(const Topology& now, RunIds run_ids) {
  Topology next = with_new_step(now, std::move(run_ids));
  ++next.fence.epoch;
  Resize& resize = *next.resize;
  resize.rollback = true;
  resize.active = topology::unite(resize.done, resize.active);
  resize.done.clear();
  resize.phase = Phase::hold;
  resize.read_order = topology::ReadOrder::old_first;
  return next;
}

Topology finish(const Topology& now) {
  Topology next = now;
  const Resize& resize = *now.resize;
  if (!resize.rollback && topology::count(resize.done) == topology::kSliceCount) {
    next.spec.placement = resize.placement;
    next.spec.members = resize.members;
  }
  next.resize.reset();
  return next;
}

}  // namespace ringshift::resize
