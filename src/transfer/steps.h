// The commands of a key's transfer: claim, copy, confirm, seal (RESIZE.md, "Transfer of a key"), as bytes to
// send and answers to read. Pure: who sends them, and in what order, is the caller's business.
//
//   step 1  NEW  CLAIM(k, fresh token)   -> claimed | busy | wait | gate       OLD, in parallel: EXISTS k
//   step 2  OLD  DUMP k + PTTL           -> payload | absent
//   step 3  NEW  RESTORE(token, payload) -> ok | busy | stale | gate
//   step 4  OLD  UNLINK k
//   step 5  NEW  seal: DEL of the claim, unconditional
//
// Why it holds: once OLD answered "absent" it never regains k. The seal then removes every claim there is;
// one set later belongs to a CLAIM whose DUMP runs later still and finds nothing. So no RESTORE of k can
// happen after a seal. RESTORE may be sent again with the same token; CLAIM never: each has its own.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/resp/value.h"
#include "ringshift/topology.h"

namespace ringshift::transfer {

inline constexpr std::string_view kReservedPrefix = "rs:";
inline constexpr std::string_view kStampKey = "rs:stamp";
inline constexpr std::string_view kClaimTtlMs = "2000";

[[nodiscard]] std::string claim_key(std::string_view key);

// "epoch.step.open.run_id": what rs:stamp of `member` must say for a transfer to be let in.
[[nodiscard]] std::string open_stamp(const topology::Fence& fence, const std::string& member);
// Until the step's barrier is complete.
[[nodiscard]] std::string closed_stamp(const topology::Fence& fence, const std::string& member);
// Once the step's keys have moved: closed for good, no stamp of this step replaces it.
[[nodiscard]] std::string done_stamp(const topology::Fence& fence, const std::string& member);

// What a stamp begins with; nullopt when it is none.
struct StampStep {
  std::uint64_t epoch = 0, step = 0;
  auto operator<=>(const StampStep&) const = default;
};
[[nodiscard]] std::optional<StampStep> step_of_stamp(std::string_view stamp) noexcept;

// Tokens that no two CLAIMs share: a random owner and a count. One source a thread, which has at most one
// transfer of a key under way: a CLAIM replaces an earlier claim of the same source instead of waiting for
// it.
class TokenSource {
 public:
  TokenSource();
  [[nodiscard]] std::string next();

 private:
  std::string owner_;
  std::uint64_t count_ = 0;
};

void append_claim(std::string& out, std::string_view key, std::string_view stamp, std::string_view token);
void append_exists(std::string& out, std::string_view key);
void append_dump(std::string& out, std::string_view key);
void append_restore(std::string& out, std::string_view key, std::string_view stamp, std::string_view token,
                    std::int64_t ttl_ms, std::string_view payload);
void append_unlink(std::string& out, std::string_view key);
// `token` is not part of the seal; only a switch that breaks it on purpose looks at it.
void append_seal(std::string& out, std::string_view key, std::string_view token);
// Writes the stamp unless the member already has one of a later (epoch, step), or this step's "done"; "open"
// only over this step's own "closed" or "open". Answers OK or STALE.
void append_set_stamp(std::string& out, const topology::Fence& fence, std::string_view stamp);

enum class Claim { claimed, busy, wait, gate, error };
enum class Restore { ok, busy, stale, gate, error };
[[nodiscard]] Claim read_claim(const protocol::resp::Value& reply) noexcept;
[[nodiscard]] Restore read_restore(const protocol::resp::Value& reply) noexcept;

struct Dump {
  enum class Kind { payload, absent, error } kind = Kind::error;
  std::string payload;
  std::int64_t ttl_ms = 0;  // As RESTORE wants it: 0 for none.
};
[[nodiscard]] Dump read_dump(protocol::resp::Value reply);

}  // namespace ringshift::transfer
