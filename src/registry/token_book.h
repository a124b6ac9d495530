// The registry's tokens: who has a secret, or is known by a certificate, and how much each may ask.
//
// Invariants: a secret is shown once, when it is made; what is kept is its SHA-256, compared in constant
// time; names are unique, and a name has one secret, or two while a rotation's grace lasts. There is always
// an admin whose token does not end: the last one cannot be revoked (an admin by certificate does not count:
// a start without --client-ca would lock everybody out). Thread rule: one thread. Cost: a look-up
// is one SHA-256 and one hash map's.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "registry/rights.h"
#include "ringshift/error.h"
#include "store/store.h"

namespace ringshift::registry {

inline constexpr std::size_t kTokensMax = 10'000;
inline constexpr std::string_view kTokenPrefix = "rs_";
inline constexpr std::size_t kTokenBytes = 3 + 43;  // The prefix, and 256 bits in base64url.

// A fresh secret from the kernel's random numbers.
[[nodiscard]] std::string make_secret();

class TokenBook {
 public:
  using Clock = std::function<std::int64_t()>;  // Unix seconds.

  struct Info {
    Identity identity;
    std::int64_t created = 0, expires = 0;
    int secrets = 0;           // Live ones.
    bool certificate = false;  // It has no secret: a client's certificate names it.
  };
  struct Change {  // Who makes it, for the audit.
    std::string who, peer;
  };

  [[nodiscard]] static Result<std::unique_ptr<TokenBook>> open(store::Store& store, Clock clock);

  // Null: no such token (any more).
  [[nodiscard]] std::shared_ptr<const Identity> find(std::string_view secret) const;
  // Whether a connection that was opened for `identity` may go on: it is still there, and so was its secret.
  [[nodiscard]] bool alive(std::string_view name, std::string_view secret_hash) const;
  [[nodiscard]] static std::string hash_of(std::string_view secret);
  // The entry that was made for certificates of this name; null when there is none (any more).
  [[nodiscard]] std::shared_ptr<const Identity> find_certified(std::string_view name) const;
  // What stands for its secret's hash. No secret has it: it is longer.
  [[nodiscard]] static std::string mark_of_certified(std::string_view name);

  // Whether an id that `who` has by its name alone is another token's by a longer name.
  [[nodiscard]] bool of_another(const Identity& who, const std::string& id) const;

  [[nodiscard]] std::vector<Info> list() const;
  [[nodiscard]] bool has_admin() const;
  // Each gives the secret. expires 0: never.
  [[nodiscard]] Result<std::string> create(const Identity& identity, std::int64_t expires, const Change& by);
  // An entry for certificates, without a secret.
  [[nodiscard]] Status create_certified(const Identity& identity, std::int64_t expires, const Change& by);
  [[nodiscard]] Result<std::string> rotate(const std::string& name, std::int64_t grace_seconds,
                                           const Change& by);
  [[nodiscard]] Status revoke(const std::string& name, const Change& by);

 private:
  struct Entry {
    store::TokenRow row;
    std::shared_ptr<const Identity> identity;
    bool certificate = false;
  };
  TokenBook(store::Store& store, Clock clock) : store_(store), clock_(std::move(clock)) {}
  [[nodiscard]] Status load();
  [[nodiscard]] Status add(const Identity& identity, std::int64_t expires, std::string hash,
                           std::string_view verb, const Change& by);
  [[nodiscard]] const Entry* entry(std::string_view hash) const;
  [[nodiscard]] bool live(const Entry& entry) const;
  [[nodiscard]] Result<std::vector<const Entry*>> named(const std::string& name) const;
  [[nodiscard]] Status apply(std::vector<store::TokenRow> put, std::vector<std::string> removed,
                             std::string_view verb, const std::string& name, const Change& by);

  store::Store& store_;
  Clock clock_;
  std::unordered_multimap<std::uint64_t, Entry> by_hash_;  // By the first 8 bytes of the hash.
  std::unordered_set<std::string> names_;
};

// Requests a second of each token: a bucket as large as a second's worth, and at least one.
class RateLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  explicit RateLimit(double per_second) : per_second_(per_second) {}
  [[nodiscard]] bool take(const std::string& name, TimePoint now);

 private:
  struct Bucket {
    double left = 0;
    TimePoint at;
  };
  double per_second_;
  std::map<std::string, Bucket>
      buckets_;  // At most one a token; emptied when there are more than kTokensMax.
};

}  // namespace ringshift::registry
