// What an authority may do beside answering (proxy.h): believe members without a stamp because it knows them
// from an earlier life, keep what is found out for the next one, and say how old its knowledge is.
#pragma once
#include <map>
#include <string>

#include "proxy/proxy.h"

namespace ringshift::proxy {

class Keeper : public Authority {
 public:
  using Processes = std::map<std::string, std::string, std::less<>>;  // Member id -> its process' run id.
  // Processes that may be believed without a stamp while no resize is known of. Fixed. Any thread.
  [[nodiscard]] virtual const Processes& believed() const = 0;
  // The same, found in this life: we were connected to these when the registry said that no resize was yet.
  // Any thread; must not block.
  virtual void vouch(const Processes& processes) = 0;
  // Where the topology comes from, for people. Any thread.
  struct Standing {
    bool from_disk = false;           // The registry has not answered since the start.
    double registry_age_seconds = 0;  // Since it last answered.
    bool registry_refused = false;    // What it says is not obeyed; the log says why.
  };
  [[nodiscard]] virtual Standing standing() const noexcept = 0;
};

// Null when it is none.
[[nodiscard]] inline Keeper* keeper_of(Authority* authority) noexcept {
  return dynamic_cast<Keeper*>(authority);
}

}  // namespace ringshift::proxy
