#include "proxy/scan_state.h"

#include <algorithm>
#include <random>
#include <utility>

#include "hashing/xxh3.h"

namespace ringshift::proxy {
namespace {

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

// Not to be guessed from outside: keys of equal hashes would hide each other.
std::uint64_t hash_of(std::string_view key) {
  static const std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  const std::uint64_t hash = hashing::xxh3(key, seed);
  return hash == 0 ? 1 : hash;
}

}  // namespace

std::size_t HashSet::find(std::uint64_t hash) const noexcept {
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at] != 0 && slots_[at] != hash) at = (at + 1) & (slots_.size() - 1);
  return at;
}

bool HashSet::contains(std::uint64_t hash) const noexcept {
  return !slots_.empty() && slots_[find(hash)] != 0;
}

void HashSet::insert(std::uint64_t hash) {
  if (size_ * 2 >= slots_.size()) {
    std::vector<std::uint64_t> old(std::max<std::size_t>(slots_.size() * 2, 64));
    old.swap(slots_);
    for (const std::uint64_t there : old) {
      if (there != 0) slots_[find(there)] = there;
    }
  }
  std::uint64_t& slot = slots_[find(hash)];
  if (slot == 0) ++size_;
  slot = hash;
}

void HashSet::clear() noexcept {
  std::vector<std::uint64_t>().swap(slots_);
  size_ = 0;
}

Scan::Scan(std::uint32_t name, std::atomic<std::size_t>& hashes_of_all)
    : name_(name), hashes_of_all_(hashes_of_all) {}
Scan::~Scan() { hashes_of_all_ -= this_visit_.size() + moving_.size(); }

bool Scan::resume(std::uint64_t cursor) {
  const std::lock_guard lock(mutex_);
  if (answered_ == cursor) {
    commit();
  } else if (asked_ == cursor) {  // The answer was lost.
    pending_.clear();
    pending_end_.reset();
    once_more_ = once_more_ || passed_on_;  // That pass is to be begun again.
  } else {
    return false;
  }
  asked_ = cursor;
  answered_.reset();
  passed_on_ = false;
  return true;
}

void Scan::adopt(std::uint64_t cursor) {
  const std::lock_guard lock(mutex_);
  asked_ = cursor;
  pass_ = ScanPosition::of(cursor).pass;
}

ScanPosition Scan::position_of(std::uint64_t cursor) const {
  const std::lock_guard lock(mutex_);
  ScanPosition position = ScanPosition::of(cursor);
  position.name = name_;
  position.pass = pass_;
  return position;
}

// The client has got the last answer.
void Scan::commit() {
  for (const Pending& pending : pending_) keep(pending.moving ? moving_ : this_visit_, pending.hash);
  pending_.clear();
  if (pending_end_) end_visit(*pending_end_);
  pending_end_.reset();
  pass_ = answered_pass_;
}

void Scan::keep(HashSet& set, std::uint64_t hash) {
  if (set.size() >= kMaxHashes || hashes_of_all_ >= kMaxHashesOfAll) return;
  const std::size_t before = set.size();
  set.insert(hash);
  hashes_of_all_ += set.size() - before;
}

void Scan::drop(HashSet& set) {
  hashes_of_all_ -= set.size();
  set.clear();
}

void Scan::keep_all_of_this_visit() {
  this_visit_.each([this](std::uint64_t hash) { keep(moving_, hash); });
  drop(this_visit_);
}

void Scan::end_visit(std::uint32_t place) {
  Place& of = places_[place];
  if (visit_is_known_ && visit_eras_ != 0) {
    of.visits.push_back(visit_eras_);
    drop(this_visit_);
  } else {
    keep_all_of_this_visit();
  }
  visit_eras_ = 0;
  visit_is_known_ = true;
}

// --- members and eras --------------------------------------------------------------------------------------

std::size_t Scan::places(Views views) const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& view : views) count += view->members().size();
  return std::max(count, places_.size());
}

void Scan::add_members(Views views) {
  clusters_.resize(views.size());
  for (std::size_t c = 0; c < views.size(); ++c) {
    if (clusters_[c].seen == views[c]) continue;
    for (const topology::Member& member : views[c]->members()) {
      if (places_.size() >= kMaxPlaces) break;
      const auto place = static_cast<std::uint32_t>(places_.size());
      if (place_of_id_.try_emplace(std::to_string(c) + '/' + member.id, place).second) {
        places_.push_back({c, member.id, {}});
      }
    }
  }
}

// REQUIRES: its members have places.
void Scan::observe(std::size_t number, const std::shared_ptr<const topology::Snapshot>& snapshot) {
  Cluster& cluster = clusters_[number];
  if (cluster.seen == snapshot) return;
  cluster.seen = snapshot;
  const auto& resize = snapshot->topology().resize;
  const std::string name =
      resize ? "resize " + resize->id + (resize->rollback ? " back" : "") : snapshot->digest;
  for (std::size_t i = 0; i < cluster.eras.size(); ++i) {
    if (cluster.eras[i].name != name) continue;
    cluster.now = static_cast<std::uint32_t>(i);
    return;
  }
  if (cluster.eras.size() == kMaxEras) start_eras_anew(cluster);
  once_more_ = once_more_ || !cluster.eras.empty() || resize.has_value();
  cluster.now = static_cast<std::uint32_t>(cluster.eras.size());
  Era& era = cluster.eras.emplace_back();
  era.name = name;
  era.resizes = resize.has_value();
  era.snapshot = snapshot;
  for (const topology::Member& member : snapshot->members()) {
    const auto found = place_of_id_.find(std::to_string(number) + '/' + member.id);
    era.place_of.push_back(found == place_of_id_.end() ? kNowhere : found->second);
  }
}

// So many changes in one scan that it is not worth remembering what was certain before.
void Scan::start_eras_anew(Cluster& cluster) {
  cluster.eras.clear();
  for (Place& place : places_) place.visits.clear();
  once_more_ = true;
  keep_all_of_this_visit();
  visit_is_known_ = false;
  visit_eras_ = 0;
}

// The member where the key was all through the era; kNowhere when it moved, or may have.
std::uint32_t Scan::certain_place(const Era& era, std::string_view key) {
  const topology::MemberIndex owner = era.snapshot->owner_before(key);
  if (era.resizes && era.snapshot->owner_after(key) != owner) return kNowhere;
  return owner < era.place_of.size() ? era.place_of[owner] : kNowhere;
}

// Whether a whole visit was made of a member where the key was in all the eras of that visit. `certain`:
// where it was, by era.
bool Scan::covered(std::span<const std::uint32_t> certain) const {
  return std::ranges::any_of(certain, [&](std::uint32_t at) {
    return at != kNowhere && std::ranges::any_of(places_[at].visits, [&](std::uint32_t eras) {
             for (std::size_t i = 0; i < certain.size(); ++i) {
               if ((eras >> i & 1U) != 0 && certain[i] != at) return false;
             }
             return true;
           });
  });
}

// Visited when all was settled, as it still is: it has no key that was not seen.
bool Scan::settled_since(const Place& place) const {
  const Cluster& cluster = clusters_[place.cluster];
  return !cluster.eras[cluster.now].resizes && !place.visits.empty() &&
         place.visits.back() == std::uint32_t{1} << cluster.now;
}

// --- going on ----------------------------------------------------------------------------------------------

// To the next member that is to be asked; false at the end.
bool Scan::advance(ScanPosition& position, Views views) {
  while (true) {
    if (position.place >= places_.size()) {
      if (!once_more_) return false;
      once_more_ = false;
      passed_on_ = true;
      ++position.pass;
      position.place = 0;
      position.member_cursor = 0;
    }
    const Place& place = places_[position.place];
    const bool here = views[place.cluster]->index_of(place.id) != topology::kNoMember;
    if (position.member_cursor != 0) {
      if (here) return true;
      keep_all_of_this_visit();  // It left in the midst of its visit.
      visit_eras_ = 0;
      visit_is_known_ = true;
    } else if (here && (position.pass == 0 || !settled_since(place))) {
      return true;
    }
    position.member_cursor = 0;
    ++position.place;
  }
}

std::optional<Scan::Target> Scan::next(ScanPosition& position, Views views) {
  const std::lock_guard lock(mutex_);
  add_members(views);
  for (std::size_t c = 0; c < views.size(); ++c) observe(c, views[c]);
  if (!advance(position, views)) return std::nullopt;
  const Place& place = places_[position.place];
  const std::uint32_t era = std::uint32_t{1} << clusters_[place.cluster].now;
  if (position.member_cursor == 0 || position.place != visit_place_ || visit_eras_ == 0) {
    keep_all_of_this_visit();
    visit_eras_ = 0;
    visit_place_ = position.place;
    // Else begun by a state that is lost, or asked for again from before another visit: part of it is
    // unknown.
    visit_is_known_ = position.member_cursor == 0;
  }
  // What was certain until now may move from now on.
  if (visit_eras_ != 0 && (visit_eras_ & era) == 0) keep_all_of_this_visit();
  visit_eras_ |= era;
  return Target{place.cluster, views[place.cluster]->index_of(place.id)};
}

void Scan::take(const ScanPosition& position, std::uint64_t member_cursor, std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  const std::vector<Era>& eras = clusters_[places_[position.place].cluster].eras;
  std::array<std::uint32_t, kMaxEras> certain{};
  std::erase_if(keys, [&](const std::string& key) {
    const std::uint64_t hash = hash_of(key);
    if (moving_.contains(hash) || this_visit_.contains(hash)) return true;
    bool moves = false;
    for (std::size_t i = 0; i < eras.size(); ++i) {
      certain[i] = certain_place(eras[i], key);
      moves = moves || ((visit_eras_ >> i & 1U) != 0 && certain[i] != position.place);
    }
    if (covered(std::span(certain).first(eras.size()))) return true;
    pending_.push_back({hash, moves});
    return false;
  });
  if (member_cursor != 0) return;
  if (keys.empty()) {
    end_visit(position.place);
  } else {
    pending_end_ = position.place;
  }
}

std::uint64_t Scan::answer(ScanPosition position, Views views) {
  const std::lock_guard lock(mutex_);
  const bool goes_on = position.member_cursor != 0 || advance(position, views);
  answered_ = goes_on ? position.cursor() : 0;
  answered_pass_ = position.pass;
  return *answered_;
}

bool Scan::over() const {
  const std::lock_guard lock(mutex_);
  return answered_ == 0;
}

// --- the table ---------------------------------------------------------------------------------------------

std::shared_ptr<Scan> ScanTable::find(std::uint64_t cursor, std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t name = ScanPosition::of(cursor).name;
  if (cursor != 0 && name != 0) {
    Entry& entry = entries_[name - 1];
    if (entry.scan != nullptr && entry.scan->resume(cursor)) {
      entry.used = now;
      return entry.scan;
    }
  }
  // A free place; else one that came to its end; else the one used least recently.
  std::size_t best = 0;
  int best_rank = -1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.scan != nullptr && now - entry.used > kForgotten) entry.scan.reset();
    const int rank = entry.scan == nullptr ? 2 : entry.scan->over() ? 1 : 0;
    if (rank > best_rank || (rank == best_rank && rank != 2 && entry.used < entries_[best].used)) {
      best = i;
      best_rank = rank;
    }
  }
  Entry& entry = entries_[best];
  entry.scan = std::make_shared<Scan>(static_cast<std::uint32_t>(best + 1), hashes_);
  entry.scan->adopt(cursor);
  entry.used = now;
  return entry.scan;
}

}  // namespace ringshift::proxy
