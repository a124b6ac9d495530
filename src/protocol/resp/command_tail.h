// The rest of a command whose beginning was parsed: tells its bytes from those of the next command, while
// they pass by and are kept nowhere.
//
// Invariant: every byte that take() counts as taken belongs to the command; after `whole` or `broken` it is
// not called again. One thread. O(1) a call and header, no allocation but for an error. The limits, and what
// is said of a malformed header, are the CommandParser's.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "protocol/resp/command_parser.h"

namespace ringshift::protocol::resp {

class CommandTail {
 public:
  enum class State : unsigned char { more, whole, broken };
  struct Step {
    State state;
    std::size_t taken;
  };

  // What is left of `command`; its first `command.head` bytes are somebody else's.
  explicit CommandTail(const CommandParser::UnderWay& command, const CommandLimits& limits = {})
      : limits_(limits),
        arguments_left_(command.arguments - command.complete - (command.body_left != 0 ? 1 : 0)),
        body_left_(command.body_left),
        total_(command.head + command.body_left) {}

  [[nodiscard]] Step take(std::string_view bytes);
  // After `broken`: a whole error reply without its line end.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  static constexpr std::size_t kMaxHeader = 24;  // "$", 19 digits, CR LF.
  bool header(std::string_view bytes, std::size_t& at);
  bool fail(std::string_view what);

  CommandLimits limits_;
  std::size_t arguments_left_;  // Behind the one under way.
  std::size_t body_left_;       // Of the one under way, its line end included.
  std::size_t total_;           // Bytes of the command, as far as they are announced.
  std::array<char, kMaxHeader> header_{};
  std::size_t header_size_ = 0;
  std::string error_;
};

}  // namespace ringshift::protocol::resp
