#include "protocol/resp/command_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ringshift::protocol::resp {
namespace {

// As Redis reads a number: an optional minus, no plus, no leading zeros, no white space, 64 bits.
bool parse_number(std::string_view text, std::int64_t& value) {
  if (text == "0") {
    value = 0;
    return true;
  }
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 19 || text[0] < '1' || text[0] > '9') return false;
  std::uint64_t sum = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    sum = sum * 10 + static_cast<std::uint64_t>(c - '0');  // 19 digits cannot overflow 64 bits.
  }
  if (sum > static_cast<std::uint64_t>(INT64_MAX)) return false;
  value = negative ? -static_cast<std::int64_t>(sum) : static_cast<std::int64_t>(sum);
  return true;
}

constexpr std::size_t kKeptSpans = 128;
constexpr std::size_t kKeptInlineBytes = 512;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads one word of an inline command from the front of `line`, quotes undone; nullopt when they do not
// balance. A closing quote must be followed by a space or the end.
std::optional<std::string> next_word(std::string_view& line) {
  std::string word;
  char quote = 0;
  while (true) {
    if (line.empty()) {
      if (quote != 0) return std::nullopt;
      return word;
    }
    const char c = line[0];
    if (quote == 0) {
      // A NUL ends the line for Redis, which reads it as a C string.
      if (is_space(c) || c == '\0') return word;
      line.remove_prefix(1);
      if (c == '"' || c == '\'') {
        quote = c;
      } else {
        word += c;
      }
      continue;
    }
    if (c == '\0') return std::nullopt;
    if (quote == '"' && c == '\\' && line.size() >= 4 && line[1] == 'x' && hex_digit(line[2]) >= 0 &&
        hex_digit(line[3]) >= 0) {
      word += static_cast<char>(hex_digit(line[2]) * 16 + hex_digit(line[3]));
      line.remove_prefix(4);
    } else if (quote == '"' && c == '\\' && line.size() >= 2) {
      word += unescape(line[1]);
      line.remove_prefix(2);
    } else if (quote == '\'' && line.starts_with("\\'")) {
      word += '\'';
      line.remove_prefix(2);
    } else if (c == quote) {
      line.remove_prefix(1);
      if (!line.empty() && !is_space(line[0])) return std::nullopt;
      return word;
    } else {
      word += c;
      line.remove_prefix(1);
    }
  }
}

}  // namespace

void CommandParser::drop_front() noexcept {
  pos_ -= begin_;
  scanned_ -= begin_;
  wanted_ -= begin_;
  for (std::size_t i = 0; i < count_; ++i) spans_[i].offset -= begin_;
  begin_ = 0;
}

CommandParser::State CommandParser::need_more(std::size_t wanted) noexcept {
  wanted_ = wanted;
  return state_ = State::need_more;
}

CommandParser::State CommandParser::fail(std::string_view what) {
  error_ = fmt::format("-ERR Protocol error: {}", what);
  return state_ = State::error;
}

void CommandParser::add(std::size_t offset, std::size_t size) {
  if (count_ == spans_.size()) {
    spans_.push_back({offset, size});
  } else {
    spans_[count_] = {offset, size};
  }
  ++count_;
}

std::size_t CommandParser::rest() {
  if (state_ != State::command) return 0;  // In the middle of one, or it keeps nothing yet.
  const std::size_t kept = spans_.capacity() * sizeof(Span) + inline_.capacity();
  std::vector<Span>().swap(spans_);
  std::string().swap(inline_);
  count_ = 0;
  base_ = nullptr;
  raw_ = {};
  return kept;
}

CommandParser::UnderWay CommandParser::under_way() const noexcept {
  if (state_ != State::need_more || (step_ != Step::bulk_header && step_ != Step::bulk_body)) return {};
  return {expected_, count_, step_ == Step::bulk_body ? bulk_size_ + 2 : 0, pos_};
}

void CommandParser::show(std::string_view bytes) {
  base_ = bytes.data();
  raw_ = {};
  complete_ = count_;
  if (step_ == Step::bulk_body) add(pos_, std::min(bulk_size_, bytes.size() - pos_));
}

CommandParser::State CommandParser::parse_carefully(std::string_view bytes) {
  if (state_ == State::error) return state_;
  if (state_ == State::command) {
    begin_ = pos_ = scanned_ = count_ = 0;
    step_ = Step::start;
    // What one unusual command needed is not kept for ever: clients are many and mostly idle.
    if (spans_.size() > kKeptSpans) std::vector<Span>().swap(spans_);
    if (inline_.capacity() > kKeptInlineBytes) std::string().swap(inline_);
  }
  fresh_ = false;
  while (true) {
    if (step_ == Step::start) {
      begin_ = pos_;
      if (pos_ == bytes.size()) return need_more(pos_ + 1);
      step_ = bytes[pos_] == '*' ? Step::header : Step::inline_line;
      scanned_ = pos_;
    }
    const State state = step_ == Step::inline_line ? parse_inline(bytes) : parse_array(bytes);
    if (state != State::command) return state;
    if (count_ > 0) {
      fresh_ = spans_.size() <= kKeptSpans && inline_.capacity() <= kKeptInlineBytes;
      return state_ = State::command;
    }
    step_ = Step::start;  // An empty command: Redis answers nothing.
  }
}

namespace {

// Reads a first byte of `type`, up to six digits and a line end from the front, and moves `p` behind it.
// False for anything else, zero included.
inline bool take_length(const char*& p, const char* end, char type, std::size_t& value) {
  // So near the end only a length of one digit has all its bytes behind it.
  if (end - p < 10 && (end - p < 4 || p[2] != '\r')) [[unlikely]]
    return false;
  const auto digit = [](char c) { return static_cast<unsigned>(static_cast<unsigned char>(c)) - '0'; };
  if (p[0] != type || digit(p[1]) - 1 > 8) return false;
  value = digit(p[1]);
  const char* at = p + 2;
  // One digit or two, nearly always.
  if (*at != '\r') {
    if (digit(*at) > 9) return false;
    value = value * 10 + digit(*at++);
    while (*at != '\r') {
      if (at == p + 7 || digit(*at) > 9) return false;
      value = value * 10 + digit(*at++);
    }
  }
  p = at + 2;
  return true;
}

}  // namespace

// The fast path: one pass over an array that is all there, with small lengths. False, and nothing changed,
// for anything else: then the careful path begins at the front, and keeps its place between calls.
bool CommandParser::parse_whole(std::string_view bytes) {
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  const char* p = begin;
  std::size_t arguments = 0;
  // With room for as many as the client has sent before: the careful path makes more.
  if (!take_length(p, end, '*', arguments) || arguments > spans_.size() || arguments > limits_.max_arguments)
    return false;
  Span* span = spans_.data();
  for (Span* const last = span + arguments; span != last; ++span) {
    std::size_t size = 0;
    if (!take_length(p, end, '$', size) || static_cast<std::size_t>(end - p) < size + 2 ||
        size > limits_.max_bulk_bytes)
      return false;
    *span = {static_cast<std::size_t>(p - begin), size};
    p += size + 2;
  }
  const auto taken = static_cast<std::size_t>(p - begin);
  if (taken > limits_.max_command_bytes) return false;
  count_ = arguments;
  base_ = begin;
  raw_ = {begin, taken};
  pos_ = taken;
  return true;
}

CommandParser::Line CommandParser::length_line(std::string_view bytes, std::int64_t& value, bool& valid) {
  // Fast path: up to 9 digits and a whole line end.
  const std::size_t digits = pos_ + 1;
  const std::size_t stop = std::min(bytes.size(), digits + 9);
  std::size_t p = digits;
  std::int64_t sum = 0;
  while (p < stop && bytes[p] >= '0' && bytes[p] <= '9') sum = sum * 10 + (bytes[p++] - '0');
  if (p > digits && p + 1 < bytes.size() && bytes[p] == '\r' && (bytes[digits] != '0' || p == digits + 1)) {
    value = sum;
    valid = true;
    pos_ = p + 2;
    return Line::ready;
  }
  const std::size_t from = std::max(scanned_, pos_);
  const auto* end = static_cast<const char*>(std::memchr(bytes.data() + from, '\r', bytes.size() - from));
  if (end == nullptr) {
    scanned_ = bytes.size();
    return bytes.size() - pos_ > limits_.max_inline_bytes ? Line::too_long : Line::need_more;
  }
  const auto at = static_cast<std::size_t>(end - bytes.data());
  scanned_ = at;
  if (at - pos_ > limits_.max_inline_bytes) return Line::too_long;
  if (at + 1 >= bytes.size()) return Line::need_more;
  valid = parse_number(bytes.substr(digits, at - digits), value);
  pos_ = at + 2;  // Like Redis we take any byte for the line feed; members read it the same way.
  return Line::ready;
}

CommandParser::State CommandParser::parse_array(std::string_view bytes) {
  if (step_ == Step::header) {
    std::int64_t count = 0;
    bool valid = false;
    switch (length_line(bytes, count, valid)) {
      case Line::need_more:
        return need_more(bytes.size() + 1);
      case Line::too_long:
        return fail("too big mbulk count string");
      case Line::ready:
        break;
    }
    if (!valid || count > static_cast<std::int64_t>(trusted_.max_arguments)) {
      return fail("invalid multibulk length");
    }
    if (count > static_cast<std::int64_t>(limits_.max_arguments)) {
      return fail("unauthenticated multibulk length");
    }
    if (count <= 0) return State::command;  // Empty; count_ is 0.
    expected_ = static_cast<std::size_t>(count);
    step_ = Step::bulk_header;
  }
  return parse_bulks(bytes);
}

CommandParser::State CommandParser::parse_bulks(std::string_view bytes) {
  while (count_ < expected_) {
    if (step_ == Step::bulk_header) {
      if (pos_ == bytes.size()) return need_more(pos_ + 1);
      std::int64_t size = 0;
      bool valid = false;
      const std::size_t at = pos_;
      switch (length_line(bytes, size, valid)) {
        case Line::need_more:
          return need_more(bytes.size() + 1);
        case Line::too_long:
          return fail("too big bulk count string");
        case Line::ready:
          break;
      }
      if (bytes[at] != '$') {
        const char c = bytes[at];
        return fail(fmt::format("expected '$', got '{}'", c == '\r' || c == '\n' || c == '\0' ? ' ' : c));
      }
      if (!valid || size < 0 || size > static_cast<std::int64_t>(trusted_.max_bulk_bytes)) {
        return fail("invalid bulk length");
      }
      if (size > static_cast<std::int64_t>(limits_.max_bulk_bytes)) {
        return fail("unauthenticated bulk length");
      }
      bulk_size_ = static_cast<std::size_t>(size);
      if (pos_ + bulk_size_ + 2 - begin_ > limits_.max_command_bytes) return fail("too big command");
      step_ = Step::bulk_body;
    }
    if (bytes.size() - pos_ < bulk_size_ + 2) return need_more(pos_ + bulk_size_ + 2);
    add(pos_, bulk_size_);
    pos_ += bulk_size_ + 2;
    step_ = Step::bulk_header;
  }
  base_ = bytes.data();
  raw_ = bytes.substr(begin_, pos_ - begin_);
  return State::command;
}

CommandParser::State CommandParser::parse_inline(std::string_view bytes) {
  const auto* end =
      static_cast<const char*>(std::memchr(bytes.data() + scanned_, '\n', bytes.size() - scanned_));
  if (end == nullptr) {
    scanned_ = bytes.size();
    if (bytes.size() - begin_ > limits_.max_inline_bytes) return fail("too big inline request");
    return need_more(bytes.size() + 1);
  }
  const auto at = static_cast<std::size_t>(end - bytes.data());
  if (at - begin_ > limits_.max_inline_bytes) return fail("too big inline request");
  std::string_view line = bytes.substr(begin_, at - begin_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  pos_ = scanned_ = at + 1;
  if (!split_inline(line)) return fail("unbalanced quotes in request");
  return State::command;
}

bool CommandParser::split_inline(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    while (!line.empty() && is_space(line[0])) line.remove_prefix(1);
    if (line.empty() || line[0] == '\0') break;
    auto word = next_word(line);
    if (!word) return false;
    words.push_back(std::move(*word));
  }
  inline_ = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) {
    inline_ += fmt::format("${}\r\n", word.size());
    add(inline_.size(), word.size());
    inline_ += word;
    inline_ += "\r\n";
  }
  base_ = inline_.data();
  raw_ = inline_;
  return true;
}

}  // namespace ringshift::protocol::resp
