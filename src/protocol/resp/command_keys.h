// Which of a command's arguments are keys, and whether the command may wait.
//
// Right for every command of the table, those whose keys move included (EVAL, XREAD, SORT ... STORE): what is
// found is what the server would touch. Pure, any thread. Cost: O(keys); commands with options look through
// their arguments. Never fails on any arguments: what makes no sense is `malformed`.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::protocol::resp {

// A command's arguments, its name first (a subcommand's container and name: two), wherever they are kept.
// Holds no bytes: good as long as what it was made from.
class Arguments {
 public:
  Arguments(const CommandParser& parser) noexcept  // NOLINT(google-explicit-constructor): a view.
      : source_(&parser), count_(parser.argument_count()), at_([](const void* source, std::size_t i) {
          return static_cast<const CommandParser*>(source)->argument(i);
        }) {}
  Arguments(std::span<const std::string_view> list) noexcept  // NOLINT(google-explicit-constructor)
      : source_(list.data()), count_(list.size()), at_([](const void* source, std::size_t i) {
          return static_cast<const std::string_view*>(source)[i];
        }) {}

  [[nodiscard]] std::size_t size() const noexcept { return count_ - skip_; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept { return at_(source_, i + skip_); }
  // REQUIRES: first <= size(). Without the first ones: COMMAND GETKEYS' command.
  [[nodiscard]] Arguments from(std::size_t first) const noexcept {
    Arguments rest = *this;
    rest.skip_ += first;
    return rest;
  }

 private:
  const void* source_;
  std::size_t count_, skip_ = 0;
  std::string_view (*at_)(const void*, std::size_t);
};

struct KeyRef {
  std::uint32_t argument;  // Its index.
  std::uint16_t flags;     // KeyFlag, of this use: SET with GET reads and writes, without it overwrites.
  KeyUse use;              // read or write.
};

struct KeysResult {
  enum class Kind : std::uint8_t {
    found,      // At least one.
    none,       // Well formed, and it names none: EVAL with no keys. Any member may run it.
    malformed,  // Every server answers an error, whatever its keys hold: ask any member for it.
    refused,    // It may touch keys that its arguments do not name: SORT ... BY pattern. See `error`.
  };
  Kind kind = Kind::none;
  std::string_view error;  // refused: an error reply without its line end, as Redis words it.
};

// Puts the keys, in the order of COMMAND GETKEYS, into `out` (cleared first). `malformed` leaves there what
// Redis itself would name. REQUIRES: the arity fits.
[[nodiscard]] KeysResult find_keys(const Command& command, const Arguments& arguments,
                                   std::vector<KeyRef>& out);

struct Blocks {
  bool may_wait = false;  // May wait for something to happen.
  bool forever = false;   // For as long as it takes.
  std::chrono::milliseconds timeout{0};
};

// Whether these arguments may wait at the server outside of a transaction, and how long. A timeout that the
// server will refuse reads as `forever`: a wait must never be taken for none. REQUIRES: the arity fits.
[[nodiscard]] Blocks blocks(const Command& command, const Arguments& arguments);

}  // namespace ringshift::protocol::resp
