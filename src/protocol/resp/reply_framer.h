// Finds where a whole RESP2 or RESP3 reply ends, so that the data path can pass replies on untouched.
//
// Incremental: when more bytes are needed the framer remembers how far it came, and a later call goes on
// there. So the cost is O(bytes) for any split of the input, and O(1) memory for any nesting: an aggregate
// only raises the count of items that must still pass. Nothing inside a reply is validated beyond what is
// needed to find its end; what decode() (value.h) accepts, this accepts with the same size.
//
// Refused as broken: unknown first bytes, lengths that are no number or out of range, bulks that do not
// end with CR LF, and RESP3's streamed types ("$?", "*?"), which Redis never sends.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ringshift::protocol::resp {

class ReplyFramer {
 public:
  static constexpr std::uint64_t kMaxBulk = 512ULL << 20;
  static constexpr std::uint64_t kMaxItems = 64ULL << 20;  // Of one aggregate.

  enum class State : std::uint8_t { complete, more, broken };
  struct Frame {
    State state = State::more;
    bool push = false;     // complete: an out-of-band RESP3 push, not the answer to a command.
    std::size_t size = 0;  // complete: bytes of the reply.
  };

  // `bytes` begins with the first byte of a reply, and after State::more with the same reply again, grown or
  // not. After `complete` the next call is about the next reply. After `broken` only reset() helps.
  [[nodiscard]] Frame next(std::string_view bytes) noexcept;

  void reset() noexcept { *this = ReplyFramer(); }
  // After State::more: bytes of the whole reply if it is one bulk and its header is there; else 0.
  [[nodiscard]] std::size_t lone_bulk() const noexcept { return at_ == 0 && left_ == 1 ? bulk_end_ : 0; }
  // Why it is broken, for people.
  [[nodiscard]] const char* problem() const noexcept { return problem_; }

 private:
  static constexpr std::size_t kShortLine = 24;

  [[nodiscard]] Frame scan(std::string_view bytes) noexcept;
  [[nodiscard]] State item(std::string_view bytes) noexcept;
  [[nodiscard]] State broken(const char* problem) noexcept;

  std::size_t at_ = 0;        // Where the item under way begins; all before it is whole.
  std::size_t searched_ = 0;  // Its line is known not to end before here.
  std::size_t bulk_end_ = 0;  // Not 0: the item is a bulk that ends here.
  std::uint64_t left_ = 1;    // Items that must still pass, this one included.
  char kind_ = 0;             // First byte of the reply itself, attributes skipped; 0 when not seen.
  const char* problem_ = "";
};

// Inline for the replies that a cache gives nearly always: a bulk that is all there, a miss, a short line.
inline ReplyFramer::Frame ReplyFramer::next(std::string_view bytes) noexcept {
  if (bulk_end_ != 0) return bytes.size() < bulk_end_ ? Frame{} : scan(bytes);
  if (searched_ != 0 || at_ != 0 || bytes.size() < 5) return scan(bytes);
  const char* const data = bytes.data();
  if (data[0] == '$') {
    // Up to seven digits; longer or odd ones take the other way.
    const std::size_t limit = bytes.size() < 8 ? bytes.size() : 8;
    std::size_t at = 1;
    std::size_t length = 0;
    for (; at < limit; ++at) {
      const unsigned digit = static_cast<unsigned>(static_cast<unsigned char>(data[at])) - '0';
      if (digit > 9) break;
      length = length * 10 + digit;
    }
    const std::size_t end = at + length + 4;
    if (at > 1 && end <= bytes.size() && data[at] == '\r' && data[at + 1] == '\n' && data[end - 2] == '\r' &&
        data[end - 1] == '\n') {
      return {State::complete, false, end};
    }
    if (std::memcmp(data, "$-1\r\n", 5) == 0) return {State::complete, false, 5};
  } else if (data[0] == '+' || data[0] == ':') {
    const std::size_t limit = bytes.size() < kShortLine ? bytes.size() : kShortLine;
    for (std::size_t at = 2; at < limit; ++at) {
      if (data[at] == '\n' && data[at - 1] == '\r') return {State::complete, false, at + 1};
    }
  }
  return scan(bytes);
}

}  // namespace ringshift::protocol::resp
