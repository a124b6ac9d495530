// The keys of a run, one after the other. Key N of a kind lives as generations: a generation is given up for
// the next after so many operations, or so many of unknown outcome, so that each search stays small while a
// key lives long enough to be moved under load. When the last operation on one that was given up has ended,
// its history is complete and is handed over: memory holds only keys that live.
//
// Thread rule: everything is thread-safe; `done` is called without a lock held, by the client whose operation
// was the last. Cost: one short lock an operation, of that key.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "check/operation.h"

namespace ringshift::check {

inline constexpr std::uint32_t kOperationsPerKey = 400;
inline constexpr std::uint32_t kLeastOperationsPerKey = 40;
inline constexpr std::uint32_t kUnknownsPerKey = 24;
inline constexpr std::size_t kMaxHeld = 4'000'000;  // Operations of all living keys, about: fewer a key then.

class KeyLives {
 public:
  using Done = std::function<void(std::vector<Operation>)>;
  struct Life;
  using Lease = std::shared_ptr<Life>;  // One operation under way on a key.

  KeyLives(std::string prefix, std::uint32_t keys, Done done);
  ~KeyLives();

  // Writes kind and key of `operation`.
  [[nodiscard]] Lease begin(Kind kind, std::uint32_t number, Operation& operation);
  // The operation is over. REQUIRES: once for each begin().
  void end(const Lease& lease, Operation operation);
  // Hands over all that is left. REQUIRES: nothing is under way.
  void finish();

 private:
  struct Slot {
    std::mutex mutex;
    std::uint64_t generation = 0;
    Lease life;  // Guarded by mutex, and so are its contents.
  };
  Slot& slot(Kind kind, std::uint32_t number) {
    return slots_[static_cast<std::size_t>(kind) * keys_ + number];
  }
  [[nodiscard]] bool worn_out(const Life& life) const;

  const std::string prefix_;
  const std::uint32_t keys_, operations_per_key_;
  const Done done_;
  std::vector<Slot> slots_;
};

}  // namespace ringshift::check
