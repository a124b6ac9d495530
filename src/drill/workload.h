// Which object each request of the load concerns: Zipf-distributed, or as a recorded trace says.
//
// Pure: the n-th request is the same in every run with the same seed, so strategies are compared under the
// same load, request by request. Any thread. A request costs about 100 ns (Zipf) or one look-up (trace).
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "drill/trace.h"

namespace ringshift::drill {

struct Request {
  std::uint64_t key = 0;
  bool update = false;  // Of the object at the origin; else a read through the cache.
};

class Workload {
 public:
  virtual ~Workload() = default;
  [[nodiscard]] virtual std::uint64_t keys() const = 0;
  [[nodiscard]] virtual std::string name(std::uint64_t key) const = 0;  // In the cache.
  [[nodiscard]] virtual Request at(std::uint64_t n) const = 0;
  // Of all requests, the parts that read and update this key, in the long run.
  [[nodiscard]] virtual double reads_share(std::uint64_t key) const = 0;
  [[nodiscard]] virtual double updates_share(std::uint64_t key) const = 0;
  // Of the object's body; 0: the origin's usual size.
  [[nodiscard]] virtual std::size_t body_bytes(std::uint64_t key) const = 0;
};

struct ZipfLoad {
  std::uint64_t keys = 60'000;
  double exponent = 0.99;
  double updates = 0.02;       // Part of the requests.
  std::size_t body_bytes = 0;  // 0: 100 to 200.
  std::uint64_t seed = 1;
};
[[nodiscard]] std::unique_ptr<Workload> zipf_workload(const ZipfLoad& load);
// From the trace's end it goes on at its beginning. REQUIRES: the trace is not empty.
[[nodiscard]] std::unique_ptr<Workload> trace_workload(Trace trace);

// A cached copy lives for `ttl` unless an update removes it sooner, and comes back with the next read.
// REQUIRES: rates are per second and not negative.
struct Standing {
  double present = 0;  // Part of the time that the copy is there.
  // With chance `u` in [0, 1): how long a copy that is there has been there, in seconds.
  [[nodiscard]] double age(double u) const;
  double ttl = 0, updates = 0;
};
[[nodiscard]] Standing standing(double reads_per_second, double updates_per_second, double ttl_seconds);

}  // namespace ringshift::drill
