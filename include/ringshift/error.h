// How functions fail. `Result<T>` holds a value or an Error; `Error::kind` tells the caller what to do
// next, `Error::message` tells a person the value, the place and the fix. Absence is std::optional, not
// an error; a broken invariant aborts.
#pragma once
#include <expected>
#include <string>
#include <utility>

namespace ringshift {

enum class ErrorKind {
  invalid,     // The input is wrong; the same call fails again.
  not_found,   // The thing named is not there.
  retryable,   // A passing condition (connection lost, timeout, lost a race): try again later.
  overloaded,  // A bound was reached: back off.
  stale,       // The caller's view is older than the truth: read again, then decide again.
  denied,      // Not allowed.
  internal,    // Ours or the machine's fault (disk full, corrupt file).
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return std::unexpected(Error{kind, std::move(message)});
}

// The kind as users see it in logs and JSON, for example "retryable".
[[nodiscard]] const char* to_string(ErrorKind kind) noexcept;

}  // namespace ringshift
