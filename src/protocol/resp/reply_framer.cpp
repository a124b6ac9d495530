#include "protocol/resp/reply_framer.h"

#include <charconv>
#include <cstring>

namespace ringshift::protocol::resp {
namespace {

constexpr std::size_t kMaxHeader = 32;  // "$", "*" and the like with their number; longer ones are none.

// The number of a header line without its first byte; false when it is none.
bool header_number(std::string_view line, std::int64_t& out) noexcept {
  if (!line.empty() && line.front() == '+') line.remove_prefix(1);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
  return error == std::errc() && end == line.data() + line.size() && !line.empty();
}

}  // namespace

ReplyFramer::State ReplyFramer::broken(const char* problem) noexcept {
  problem_ = problem;
  return State::broken;
}

ReplyFramer::Frame ReplyFramer::scan(std::string_view bytes) noexcept {
  if (*problem_ != '\0') return {State::broken, false, 0};
  while (left_ != 0) {
    const State state = item(bytes);
    if (state != State::complete) return {state, false, 0};
    --left_;
  }
  const Frame frame{State::complete, kind_ == '>', at_};
  reset();
  return frame;
}

// One item: a whole simple item, or the header of an aggregate, whose items it adds to left_.
ReplyFramer::State ReplyFramer::item(std::string_view bytes) noexcept {
  if (bulk_end_ == 0) {
    if (at_ >= bytes.size()) return State::more;
    const char kind = bytes[at_];
    std::size_t from = searched_ > at_ ? searched_ : at_ + 1;
    std::size_t end = 0;
    for (;;) {  // To CR LF; a lone LF or CR belongs to the line.
      const void* found =
          from < bytes.size() ? std::memchr(bytes.data() + from, '\n', bytes.size() - from) : nullptr;
      if (found == nullptr) {
        searched_ = bytes.size();
        break;
      }
      const auto position = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
      if (bytes[position - 1] == '\r' && position - 1 > at_) {
        end = position + 1;
        break;
      }
      from = position + 1;
    }
    std::uint64_t factor = 1;
    bool bulk = false;
    switch (kind) {
      case '+':
      case '-':
      case ':':
      case '_':
      case '#':
      case ',':
      case '(':
        if (end == 0) return State::more;
        if (kind_ == 0 && left_ == 1) kind_ = kind;  // Not what an attribute holds.
        at_ = end;
        return State::complete;
      case '$':
      case '!':
      case '=':
        bulk = true;
        break;
      case '*':
      case '~':
      case '>':
        break;
      case '%':
      case '|':
        factor = 2;
        break;
      default:
        return broken("not a RESP reply: unknown first byte");
    }
    // The same whether its end has come or not: T bytes with CR LF are refused as soon as T - 1 can be.
    if ((end == 0 ? bytes.size() : end - 1) - at_ > kMaxHeader) {
      return broken("a RESP length of more than 30 characters");
    }
    if (end == 0) return State::more;
    std::int64_t number = 0;
    if (!header_number(bytes.substr(at_ + 1, end - at_ - 3), number))
      return broken("a RESP length is no number");
    if (kind_ == 0 && left_ == 1 && kind != '|') kind_ = kind;
    if (number == -1) {  // RESP2's null bulk and null array.
      // An attribute that is null still stands before the item it describes.
      if (kind == '|') ++left_;
      at_ = end;
      return State::complete;
    }
    if (number < 0 || static_cast<std::uint64_t>(number) > (bulk ? kMaxBulk : kMaxItems)) {
      return broken("a RESP length is out of range");
    }
    if (!bulk) {
      left_ += static_cast<std::uint64_t>(number) * factor + (kind == '|' ? 1 : 0);
      at_ = end;
      return State::complete;
    }
    bulk_end_ = end + static_cast<std::size_t>(number) + 2;
  }
  if (bytes.size() < bulk_end_) return State::more;
  if (bytes[bulk_end_ - 2] != '\r' || bytes[bulk_end_ - 1] != '\n')
    return broken("a RESP bulk does not end with CR LF");
  at_ = bulk_end_;
  searched_ = 0;
  bulk_end_ = 0;
  return State::complete;
}

}  // namespace ringshift::protocol::resp
