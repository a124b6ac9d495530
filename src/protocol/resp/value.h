// A whole RESP2/RESP3 reply as a tree, for control-plane code and tests. The data path never builds trees:
// it only finds where a reply ends.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::protocol::resp {

struct Value {
  enum class Type {
    simple,
    error,
    integer,
    bulk,
    null,
    array,
    map,
    set,
    push,
    real,
    boolean,
    big_number,
    verbatim
  };
  Type type = Type::null;
  std::string text;          // simple, error, bulk, verbatim (without its "txt:"), real, big_number
  std::int64_t integer = 0;  // integer; boolean as 0 or 1
  std::vector<Value> items;  // array, set, push; map as key, value, key, value

  [[nodiscard]] bool is_error() const noexcept { return type == Type::error; }
  [[nodiscard]] bool is_null() const noexcept { return type == Type::null; }
};

struct Decoded {
  Value value;
  std::size_t size = 0;  // Bytes consumed.
};

// Decodes the reply at the front of `bytes`: nullopt when more are needed, an error when they are no RESP.
// Attributes (`|`) are skipped. Nesting is bounded at 32, a bulk at 512 MiB.
[[nodiscard]] Result<std::optional<Decoded>> decode(std::string_view bytes);

// Appends one command as an array of bulk strings.
void append_command(std::string& out, std::span<const std::string_view> arguments);
void append_command(std::string& out, std::initializer_list<std::string_view> arguments);

}  // namespace ringshift::protocol::resp
