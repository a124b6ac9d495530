// A place in the source: line and column, both from 1, the column in bytes.
#pragma once
#include <cstdint>

namespace ringshift::importing {

struct Mark {
  std::uint32_t line = 1, column = 1;
  bool operator==(const Mark&) const = default;
};

}  // namespace ringshift::importing
