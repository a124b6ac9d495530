#include "ringshift/error.h"

namespace ringshift {

const char* to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid:
      return "invalid";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::retryable:
      return "retryable";
    case ErrorKind::overloaded:
      return "overloaded";
    case ErrorKind::stale:
      return "stale";
    case ErrorKind::denied:
      return "denied";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

}  // namespace ringshift
