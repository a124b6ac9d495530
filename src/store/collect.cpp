// What the store shows to Prometheus.
#include "base/log.h"
#include "store/store.h"
#include "store/write.h"
#include "telemetry/exposition.h"

namespace ringshift::store {

void Store::collect(telemetry::Exposition& page) {
  telemetry::TimesTotals times{};
  double seconds = 0;
  std::size_t lease_count = 0;
  Revision revision = 0, compacted = 0;
  {
    const std::lock_guard lock(mutex_);
    commits_.add_to(times);
    seconds = commit_seconds_;
    lease_count = leases_.size();
    revision = revision_;
    compacted = compacted_;
  }
  page.gauge("ringshift_registry_revision", "The revision of the last write", static_cast<double>(revision));
  page.gauge("ringshift_registry_compacted_revision", "The revision up to which the history is forgotten",
             static_cast<double>(compacted));
  page.gauge("ringshift_registry_leases", "Leases that are alive", static_cast<double>(lease_count));
  if (const auto size = bytes()) {
    page.gauge("ringshift_registry_database_bytes", "Size of the database file", static_cast<double>(*size));
  }
  page.histogram("ringshift_registry_commit_seconds", "Time that a write took to be on the disk", times,
                 seconds);
}

}  // namespace ringshift::store
