#include "protocol/resp/command_tail.h"

#include <algorithm>
#include <charconv>

namespace ringshift::protocol::resp {

CommandTail::Step CommandTail::take(std::string_view bytes) {
  std::size_t at = 0;
  while (true) {
    const std::size_t part = std::min(body_left_, bytes.size() - at);
    at += part;
    body_left_ -= part;
    if (body_left_ != 0) return {State::more, at};
    if (arguments_left_ == 0) return {State::whole, at};
    if (!header(bytes, at)) return {error_.empty() ? State::more : State::broken, at};
  }
}

// False when there is no whole header yet, or a bad one.
bool CommandTail::header(std::string_view bytes, std::size_t& at) {
  bool ended = false;
  while (!ended && at < bytes.size()) {
    if (header_size_ == header_.size()) return fail("invalid bulk length");
    header_[header_size_++] = bytes[at++];
    // As the parser we take any byte for the line feed.
    ended = header_size_ >= 2 && header_[header_size_ - 2] == '\r';
  }
  if (!ended) return false;
  const char* const digits = header_.data() + 1;
  const char* const end = header_.data() + header_size_ - 2;
  if (header_[0] != '$') {
    const char c = header_[0] == '\r' || header_[0] == '\n' || header_[0] == '\0' ? ' ' : header_[0];
    return fail(std::string("expected '$', got '") + c + "'");
  }
  std::size_t size = 0;
  const auto [stop, error] = std::from_chars(digits, std::max(digits, end), size);
  const bool leading_zero = end - digits > 1 && *digits == '0';
  if (error != std::errc() || stop != end || leading_zero || size > limits_.max_bulk_bytes) {
    return fail("invalid bulk length");
  }
  total_ += header_size_ + size + 2;
  if (total_ > limits_.max_command_bytes) return fail("too big command");
  header_size_ = 0;
  body_left_ = size + 2;
  --arguments_left_;
  return true;
}

bool CommandTail::fail(std::string_view what) {
  error_ = "-ERR Protocol error: ";
  error_ += what;
  return false;
}

}  // namespace ringshift::protocol::resp
