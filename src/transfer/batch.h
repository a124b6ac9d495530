// Moves a batch of keys from one member to another with blocking connections: the mover's way of running the
// steps of transfer/steps.h. Five round trips a batch, whatever its size, plus three more for each byte cap
// that the payloads fill. With `verify` also: see transfer/verify.h; two more for keys whose bytes differ.
//
// Not thread-safe: one batch at a time for each pair of connections. Fails only when a connection does; the
// keys of a failed batch are wherever they are, and the next pass finds them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/sync_client.h"
#include "ringshift/error.h"
#include "transfer/steps.h"
#include "transfer/verify.h"

namespace ringshift::transfer {

inline constexpr std::size_t kBatchBytesMax = 256U << 10;
inline constexpr std::size_t kBigKeyBytes = 1U << 20;

struct BatchResult {
  std::uint64_t moved = 0;    // RESTOREd by this batch.
  std::uint64_t settled = 0;  // Found gone from OLD, or on NEW already, and sealed.
  std::uint64_t bytes = 0;    // Payload moved.
  std::uint64_t later = 0;    // Claimed by others, or their claim was lost: for the next pass.
  bool gated = false;         // NEW does not let transfers in: the phase is over, or NEW restarted.
  std::string error;          // A member's error, such as -OOM; its key stays on OLD.
  std::vector<std::pair<std::string, std::uint64_t>> big;       // Keys above kBigKeyBytes, with their size.
  std::uint64_t verified = 0;                                   // Of `moved`: compared with their originals.
  std::vector<std::pair<std::string, std::string>> mismatched;  // Key and how; it is on OLD alone.
};

class BatchMover {
 public:
  // `stamp`: what rs:stamp of the destination must say. All must outlive this.
  // `claim_ms`: how long a claim stands. More than kClaimTtlMs only for what takes longer: while a mover that
  // died left one, clients' writes of that key are refused.
  BatchMover(backend::SyncClient& source, backend::SyncClient& destination, std::string stamp,
             TokenSource& tokens, Verify verify = Verify::counts, std::string_view claim_ms = kClaimTtlMs);

  [[nodiscard]] Result<BatchResult> move(std::span<const std::string> keys);

 private:
  struct Item {
    const std::string* key = nullptr;
    std::string token;
  };
  struct Copy {
    Item item;
    Dump dump;
  };
  // The stamp, then each key with its claim.
  [[nodiscard]] static std::vector<std::string> script_keys(std::span<const Item> items);
  [[nodiscard]] Status claim(std::span<const std::string> keys, std::vector<Item>& claimed,
                             std::vector<Item>& confirm, BatchResult& result);
  // DUMPs from the front of `items` up to the byte cap.
  [[nodiscard]] Result<std::vector<Copy>> dump(std::span<const Item> items, BatchResult& result);
  [[nodiscard]] Status restore(std::span<const Copy> copies, std::vector<Item>& confirm,
                               std::vector<Item>& seal_only, BatchResult& result);
  // Copies whose bytes differ lie aside: in their place, or dropped.
  [[nodiscard]] Status decide(const std::vector<const Copy*>& differing, std::vector<Item>& confirm,
                              BatchResult& result);
  [[nodiscard]] bool is_verified(const Item& item) const;
  void note(Restore answer, const Copy& copy, const std::string& error, std::vector<Item>& confirm,
            BatchResult& result);
  [[nodiscard]] Status unlink_and_seal(const std::vector<Item>& confirm, const std::vector<Item>& seal_only,
                                       BatchResult& result);

  backend::SyncClient& source_;
  backend::SyncClient& destination_;
  const std::string stamp_;
  TokenSource& tokens_;
  const Verify verify_;
  const std::string claim_ms_;
};

}  // namespace ringshift::transfer
