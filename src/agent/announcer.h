// Keeps an instance in one catalog (Consul, Nacos) for as long as this lives: registered, beaten for,
// registered again when the catalog has forgotten it, and taken out at the end. For ever, with full jitter
// between attempts, before the first one too.
//
// Threads: its own. Public functions: any thread.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "agent/catalog.h"
#include "base/retry_thread.h"

namespace ringshift::agent {

class Announcer {
 public:
  static constexpr std::chrono::milliseconds kFirstAttempt{500};   // The upper end of the jitter.
  static constexpr std::chrono::milliseconds kLongestPause{5000};  // Likewise, after many failures.

  using Make = std::function<std::unique_ptr<Catalog>()>;
  // `record`: what to tell, asked on this thread. `make`: called twice, the second time for the end.
  Announcer(Make make, std::function<Record()> record);
  ~Announcer();

  void changed() { thread_.ring(); }  // The record has news that should not wait for the next beat.
  [[nodiscard]] bool registered() const noexcept { return registered_; }

 private:
  void run();
  Status beat();

  const Make make_;
  const std::function<Record()> record_;
  const std::unique_ptr<Catalog> catalog_;
  std::atomic<bool> registered_{false};
  std::atomic<bool> ever_{false};  // Whether it may be there.
  std::string told_;               // The last trouble in the log. The thread's.
  base::RetryThread thread_{kFirstAttempt, kLongestPause};
};

}  // namespace ringshift::agent
