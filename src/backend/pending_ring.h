// The commands of one connection that wait for their reply, oldest first: a power-of-two ring that grows
// and keeps its size. No allocation once it has grown to the depth that the load needs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"

namespace ringshift::backend {

// So late that adding a timeout neither ends nor overflows.
inline constexpr base::TimePoint kUntimed{base::TimePoint::duration::max() / 2};

struct Pending {
  ReplySink* sink = nullptr;
  std::uint64_t tag_and_traffic = 0;
  base::TimePoint sent{};  // When send() was called: the deadline counts from here. kUntimed: it has none.
  std::uint64_t end = 0;   // The command's end in the connection's output, in bytes since it was made.

  // In one word, so that an entry stays at half a cache line.
  [[nodiscard]] static std::uint64_t pack(std::uint64_t tag, Traffic traffic) noexcept {
    static_assert(static_cast<unsigned>(Traffic::count_of_kinds) <= 16);
    return tag << 4 | static_cast<std::uint64_t>(traffic);
  }
  [[nodiscard]] std::uint64_t tag() const noexcept { return tag_and_traffic >> 4; }
  [[nodiscard]] Traffic traffic() const noexcept { return static_cast<Traffic>(tag_and_traffic & 15); }
};

class PendingRing {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
  [[nodiscard]] Pending& back() noexcept { return slots_[(tail_ - 1) & mask_]; }
  [[nodiscard]] const Pending& front() const noexcept { return slots_[head_ & mask_]; }
  Pending pop() noexcept { return slots_[head_++ & mask_]; }

  // Where the command before front() ended; 0 when front() is the first of all, or when that was forgotten.
  [[nodiscard]] std::uint64_t end_before_front() const noexcept {
    return size() == slots_.size() ? 0 : slots_[(head_ - 1) & mask_].end;
  }

  void push(const Pending& pending) {
    if (size() > mask_ || slots_.empty()) [[unlikely]]
      grow();
    slots_[tail_++ & mask_] = pending;
  }
  // All replies and failures that are due go to `sink` instead.
  void redirect(ReplySink& sink) noexcept {
    for (std::size_t i = head_; i != tail_; ++i) slots_[i & mask_].sink = &sink;
  }
  void swap(PendingRing& other) noexcept {
    slots_.swap(other.slots_);
    std::swap(mask_, other.mask_);
    std::swap(head_, other.head_);
    std::swap(tail_, other.tail_);
  }

 private:
  [[gnu::noinline]] void grow() {
    std::vector<Pending> bigger(slots_.empty() ? 64 : slots_.size() * 2);
    std::size_t count = 0;
    while (!empty()) bigger[count++] = pop();
    slots_.swap(bigger);
    mask_ = slots_.size() - 1;
    head_ = 0;
    tail_ = count;
  }

  std::vector<Pending> slots_;
  std::size_t mask_ = 0;             // slots_.size() - 1, once there are any.
  std::size_t head_ = 0, tail_ = 0;  // Only grow; the slot is the value modulo the size.
};

}  // namespace ringshift::backend
