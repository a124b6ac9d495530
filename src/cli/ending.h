// How a command ends with another status than 0: it says why, and throws what run() turns into the status.
#pragma once
#include <string_view>
#include <utility>

#include "ringshift/error.h"

namespace ringshift::cli {

[[noreturn]] void end_command(int status, std::string_view message);
[[noreturn]] void end_silently(int status);  // It has been said.

template <class T>
T or_end(Result<T> result, int status = 1) {
  if (!result) end_command(status, result.error().message);
  return *std::move(result);
}

}  // namespace ringshift::cli
