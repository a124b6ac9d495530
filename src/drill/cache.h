// How an application reaches its cache: through a proxy, or by a sharding client of its own.
//
// A Cache is shared; each thread works through a CacheClient of its own, with its own connections. Every call
// blocks for one round trip (two for a dual read), at most as long as the timeout.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/snapshot.h"

namespace ringshift::drill {

using Ttl = std::chrono::milliseconds;
inline constexpr Ttl kForEver{0};

class CacheClient {
 public:
  enum class Outcome : std::uint8_t {
    done,     // A GET: there is a value.
    absent,   // A GET: there is none.
    failed,   // Not executed.
    unknown,  // Sent, and no answer: executed or not, now or later.
  };
  struct Answer {
    Outcome outcome = Outcome::failed;
    std::string text;          // A value, or what went wrong.
    std::int64_t integer = 0;  // INCR's.
  };

  virtual ~CacheClient() = default;
  // `ttl` is what the application gives this key: a dual read that copies needs it.
  [[nodiscard]] virtual Answer get(std::string_view key, Ttl ttl) = 0;
  [[nodiscard]] virtual Answer set(std::string_view key, std::string_view value, Ttl ttl) = 0;
  [[nodiscard]] virtual Answer del(std::string_view key) = 0;
  [[nodiscard]] virtual Answer increment(std::string_view key) = 0;
};

class Cache {
 public:
  virtual ~Cache() = default;
  [[nodiscard]] virtual std::unique_ptr<CacheClient> client() = 0;
  // Where a command about this key is sent first, now.
  [[nodiscard]] virtual std::string address_of(std::string_view key) const = 0;
};

class ProxyCache final : public Cache {
 public:
  explicit ProxyCache(std::string address) : address_(std::move(address)) {}
  [[nodiscard]] std::unique_ptr<CacheClient> client() override;
  [[nodiscard]] std::string address_of(std::string_view) const override { return address_; }

 private:
  const std::string address_;
};

// What client-side sharding does: the placement is compiled into every process, and a change of members is a
// switch of it. It is fair to it: all threads switch in the same instant, which no fleet of processes does.
class ShardedCache final : public Cache {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ShardedCache>> create(const topology::Spec& spec);

  enum class DualRead : std::uint8_t {
    off,
    // As usually described: reads ask the new owner, on a miss the old one, and copy what they find there to
    // the new one; writes and deletes go to the new owner alone.
    reads,
    // The same, and a delete goes to both.
    reads_and_deletes,
  };
  [[nodiscard]] Status switch_to(const topology::Spec& spec, DualRead dual);
  void end_dual_read();

  [[nodiscard]] std::unique_ptr<CacheClient> client() override;
  [[nodiscard]] std::string address_of(std::string_view key) const override;
  [[nodiscard]] std::uint64_t copies() const noexcept { return copies_.load(); }  // By dual reads.

 private:
  friend class ShardedClient;
  struct View {
    std::shared_ptr<const topology::Snapshot> now, before;
    DualRead dual = DualRead::off;
  };
  void show(View view);
  [[nodiscard]] const View& view() const noexcept { return *view_.load(); }

  std::mutex mutex_;
  std::vector<std::unique_ptr<const View>>
      views_;  // Guarded by mutex_. All that were ever shown: two or three.
  std::atomic<const View*> view_{nullptr};
  std::atomic<std::uint64_t> copies_{0};
};

}  // namespace ringshift::drill
