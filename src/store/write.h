// Inside of the store: how its public functions take the lock, begin a transaction and turn failures into
// results.
#pragma once
#include <chrono>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "store/database.h"
#include "store/store.h"

namespace ringshift::store {

struct Store::Write {
  Revision next = 0;          // The revision this transaction gets, if it changes anything.
  std::vector<Event> events;  // What it changed.
  std::vector<LeaseId> revoked;
  const Actor* actor = nullptr;
  [[nodiscard]] Revision so_far() const { return events.empty() ? next - 1 : next; }
};

template <class Body>
auto Store::guarded(Body body) -> Result<decltype(body())> {
  try {
    const std::lock_guard lock(mutex_);
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return {};
    } else {
      return body();
    }
  } catch (Failure& failure) {
    note_failure(failure.error);
    return std::unexpected(std::move(failure.error));
  }
}

template <class Body>
auto Store::write(Body body, const Actor* actor) -> Result<decltype(body(std::declval<Write&>()))> {
  return guarded([&] {
    if (group_failed_) throw Failure{*group_failed_};
    Transaction transaction(*db_);
    Write write{revision_ + 1, {}, {}, actor};
    auto result = body(write);
    if (!write.events.empty()) {
      db_->statement("UPDATE meta SET revision=?1").bind(1, write.next).run();
      audit_in(write);
    }
    const auto began = std::chrono::steady_clock::now();
    transaction.commit();
    if (!grouped_) count_commit(began);
    for (const LeaseId id : write.revoked) leases_.erase(id);
    if (!write.events.empty()) {
      revision_ = write.next;
      if (grouped_) {
        group_.emplace_back(std::move(write.events), revision_);
      } else if (listener_) {
        listener_(write.events, revision_);
      }
    }
    return result;
  });
}

}  // namespace ringshift::store
