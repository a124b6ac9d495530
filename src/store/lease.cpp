// Leases: a key put under one goes when it ends.
#include <algorithm>
#include <random>

#include "store/errors.h"
#include "store/write.h"

namespace ringshift::store {

LeaseInfo Store::info(LeaseId id, const Lease& lease) const {
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(lease.expires - clock_.now());
  return {id, lease.ttl_seconds, std::max<std::int64_t>(left.count(), 0), {}};
}

Result<LeaseInfo> Store::grant(std::int64_t ttl_seconds, LeaseId id, std::string_view owner) {
  if (ttl_seconds > kMaxLeaseSeconds) return fail(ErrorKind::invalid, errors::kLeaseTtlTooLarge);
  const std::int64_t ttl = std::max(ttl_seconds, kMinLeaseSeconds);
  return guarded([&] {
    std::random_device device;
    while (id == 0) {
      const auto candidate = static_cast<LeaseId>((std::uint64_t{device()} << 32 | device()) >> 1);
      if (!leases_.contains(candidate)) id = candidate;
    }
    if (leases_.contains(id)) throw Failure{{ErrorKind::invalid, errors::kLeaseExists}};
    if (group_failed_) throw Failure{*group_failed_};
    Transaction transaction(*db_);
    db_->statement("INSERT INTO lease VALUES(?1, ?2)").bind(1, id).bind(2, ttl).run();
    if (!owner.empty()) {
      db_->statement("INSERT OR REPLACE INTO lease_owner VALUES(?1, ?2)").bind(1, id).bind(2, owner).run();
    }
    transaction.commit();
    const Lease lease{ttl, clock_.now() + std::chrono::seconds(ttl), std::string(owner)};
    leases_[id] = lease;
    LeaseInfo result = info(id, lease);
    result.remaining_seconds = ttl;
    return result;
  });
}

Result<LeaseInfo> Store::keep_alive(LeaseId id) {
  return guarded([&] {
    const auto found = leases_.find(id);
    // One that is over but not yet swept is gone all the same: its keys are about to go.
    if (found == leases_.end() || found->second.expires <= clock_.now()) {
      throw Failure{{ErrorKind::not_found, errors::kLeaseNotFound}};
    }
    found->second.expires = clock_.now() + std::chrono::seconds(found->second.ttl_seconds);
    LeaseInfo result = info(id, found->second);
    result.remaining_seconds = found->second.ttl_seconds;
    return result;
  });
}

void Store::revoke_in(Write& w, LeaseId id) {
  std::vector<std::string> keys;
  {
    Statement query = db_->statement("SELECT key FROM current WHERE lease=?1 AND lease<>0 ORDER BY key");
    query.bind(1, id);
    while (query.step()) keys.push_back(query.blob(0));
  }
  for (const std::string& key : keys) remove_in(w, {key, "", false});
  db_->statement("DELETE FROM lease WHERE id=?1").bind(1, id).run();
  db_->statement("DELETE FROM lease_owner WHERE id=?1").bind(1, id).run();
  w.revoked.push_back(id);
}

Result<Revision> Store::revoke(LeaseId id, const Actor* actor) {
  return write(
      [&](Write& w) {
        if (!leases_.contains(id)) throw Failure{{ErrorKind::not_found, errors::kLeaseNotFound}};
        revoke_in(w, id);
        return w.so_far();
      },
      actor);
}

Result<LeaseInfo> Store::time_to_live(LeaseId id, bool with_keys) {
  return guarded([&] {
    const auto found = leases_.find(id);
    if (found == leases_.end()) throw Failure{{ErrorKind::not_found, errors::kLeaseNotFound}};
    LeaseInfo result = info(id, found->second);
    if (with_keys) {
      Statement query = db_->statement("SELECT key FROM current WHERE lease=?1 AND lease<>0 ORDER BY key");
      query.bind(1, id);
      while (query.step()) result.keys.push_back(query.blob(0));
    }
    return result;
  });
}

std::vector<LeaseId> Store::leases() {
  const std::lock_guard lock(mutex_);
  std::vector<LeaseId> ids;
  for (const auto& [id, lease] : leases_) ids.push_back(id);
  return ids;
}

std::size_t Store::leases_of(std::string_view owner) {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(leases_, [&](const auto& one) { return one.second.owner == owner; }));
}

}  // namespace ringshift::store
