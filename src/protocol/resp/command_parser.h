// Finds client commands in a byte buffer: arrays of bulk strings, and inline commands with quotes, with the
// answers (and the quirks) of a real Redis server to what is malformed.
//
// The parser never owns the buffer. While it answers `need_more` the caller keeps every byte since the
// last command and calls again with the same bytes and more behind them, at any address; nothing is scanned
// twice. Views that it gives are into the caller's buffer (inline: into the parser) and are good until the
// next parse(). One thread. Cost: O(bytes), no allocation once the argument list has grown. Failure: after
// `error` the connection is to be closed; the parser answers the same for ever.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringshift::protocol::resp {

struct CommandLimits {
  std::size_t max_arguments = INT32_MAX;                      // Announced, as in Redis; the bytes bound them.
  std::size_t max_bulk_bytes = 512U << 20;                    // One argument; Redis' proto-max-bulk-len.
  std::size_t max_inline_bytes = 64U << 10;                   // An inline command, or the digits of a length.
  std::size_t max_command_bytes = (512U << 20) + (1U << 20);  // A whole command.
};

class CommandParser {
 public:
  enum class State : std::uint8_t { command, need_more, error };

  explicit CommandParser(const CommandLimits& limits = {}) : limits_(limits), trusted_(limits) {}

  // Whoever has not said who he is may send little: enough for AUTH and HELLO, not enough to fill memory.
  // Asked of the lengths that are read from now on. As Redis.
  static constexpr std::size_t kStrangersArguments = 10;
  static constexpr std::size_t kStrangersBulkBytes = 16U << 10;
  void set_stranger(bool stranger) noexcept {
    limits_ = trusted_;
    if (!stranger) return;
    limits_.max_arguments = std::min(trusted_.max_arguments, kStrangersArguments);
    limits_.max_bulk_bytes = std::min(trusted_.max_bulk_bytes, kStrangersBulkBytes);
  }

  // Looks for one command at the front of `bytes`. Empty commands (`*0`, `*-5`, a blank line) are skipped.
  [[nodiscard]] State parse(std::string_view bytes) {
    if (fresh_ && parse_whole(bytes)) [[likely]]
      return State::command;
    return parse_carefully(bytes);
  }

  // command: the bytes it took, empty commands before it included. need_more: bytes at the front that will
  // not be looked at again (skipped empty commands); drop_front() after dropping them.
  [[nodiscard]] std::size_t consumed() const noexcept { return state_ == State::command ? pos_ : begin_; }
  // Tells the parser that the caller dropped consumed() bytes during `need_more`.
  void drop_front() noexcept;
  // Between commands: gives back what it keeps for the next one. So many bytes.
  std::size_t rest();
  // need_more: how long the buffer must at least become; for reserving space.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_; }

  // After need_more, when the caller has dropped the front: how far an array came, for who wants to pass on
  // the rest without keeping it.
  struct UnderWay {
    std::size_t arguments = 0;  // Announced; 0: none yet, or it is an inline command.
    std::size_t complete = 0;   // Of these are there.
    std::size_t body_left = 0;  // What the next one still needs from `head` on, its line end included; 0 when
                                // not even its header is there.
    std::size_t head = 0;       // Bytes of the front that are understood.
  };
  [[nodiscard]] UnderWay under_way() const noexcept;
  // Lets the arguments of the command under way be seen, with what is there of the next one as the last;
  // until hide() or the next parse(). REQUIRES: under_way().complete > 0, `bytes` are those of need_more.
  void show(std::string_view bytes);
  void hide() noexcept { count_ = complete_; }
  // The rest of that command goes another way: the next parse() begins with the one behind it.
  void leave() noexcept { state_ = State::command; }
  // Bytes of the command; of one under way, those that are known to belong to it.
  [[nodiscard]] std::size_t command_bytes() const noexcept {
    return state_ == State::command ? raw_.size() : wanted_;
  }

  // After `command`. There is at least one argument.
  [[nodiscard]] std::size_t argument_count() const noexcept { return count_; }
  [[nodiscard]] std::string_view argument(std::size_t i) const noexcept {
    return {base_ + spans_[i].offset, spans_[i].size};
  }
  // The whole command as an array of bulk strings, fit for a server.
  [[nodiscard]] std::string_view raw() const noexcept { return raw_; }

  // After `error`: a whole error reply without its line end, "-ERR Protocol error: ...".
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  struct Span {
    std::size_t offset, size;
  };
  enum class Step : std::uint8_t { start, header, bulk_header, bulk_body, inline_line };
  enum class Line : std::uint8_t { ready, need_more, too_long };

  bool parse_whole(std::string_view bytes);
  State parse_carefully(std::string_view bytes);
  State parse_array(std::string_view bytes);
  State parse_bulks(std::string_view bytes);
  State parse_inline(std::string_view bytes);
  bool split_inline(std::string_view line);
  State need_more(std::size_t wanted) noexcept;
  State fail(std::string_view what);
  // A decimal number between pos_ + 1 and the line's end; moves pos_ behind the line when `ready`.
  Line length_line(std::string_view bytes, std::int64_t& value, bool& valid);
  void add(std::size_t offset, std::size_t size);

  CommandLimits limits_;   // In force.
  CommandLimits trusted_;  // Without set_stranger().
  State state_ = State::need_more;
  bool fresh_ = false;  // `command` was said, and nothing is kept that the next one should not find.
  Step step_ = Step::start;
  std::size_t begin_ = 0;    // Where the command starts.
  std::size_t pos_ = 0;      // All before it is understood.
  std::size_t scanned_ = 0;  // No line end between pos_ and here.
  std::size_t wanted_ = 1;
  std::size_t count_ = 0;     // Arguments found.
  std::size_t complete_ = 0;  // While they are shown: those that are whole.
  std::size_t expected_ = 0;  // Arguments announced.
  std::size_t bulk_size_ = 0;
  std::vector<Span> spans_;
  const char* base_ = nullptr;
  std::string_view raw_;
  std::string inline_;  // An inline command, encoded anew.
  std::string error_;
};

}  // namespace ringshift::protocol::resp
