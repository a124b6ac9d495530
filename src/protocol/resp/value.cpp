#include "protocol/resp/value.h"

#include <charconv>

namespace ringshift::protocol::resp {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::int64_t kMaxBulk = 512LL << 20;
constexpr std::int64_t kMaxItems = 64LL << 20;
constexpr std::size_t kMaxLengthDigits = 30;  // As the framer has it.

enum class Step { done, more };

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  Result<Step> decode(Value& out, int depth) {
    if (depth > kMaxDepth) return fail(ErrorKind::invalid, "RESP reply nests deeper than 32 levels");
    if (at_ >= bytes_.size()) return Step::more;
    const char kind = bytes_[at_];
    const std::size_t end = bytes_.find("\r\n", at_);
    if (end == std::string_view::npos) return Step::more;
    const std::string_view line = bytes_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 2;
    switch (kind) {
      case '+':
        out.type = Value::Type::simple;
        out.text = line;
        return Step::done;
      case '-':
        out.type = Value::Type::error;
        out.text = line;
        return Step::done;
      case ',':
        out.type = Value::Type::real;
        out.text = line;
        return Step::done;
      case '(':
        out.type = Value::Type::big_number;
        out.text = line;
        return Step::done;
      case '_':
        out.type = Value::Type::null;
        return Step::done;
      case '#':
        out.type = Value::Type::boolean;
        out.integer = line == "t" ? 1 : 0;
        return Step::done;
      case ':':
        out.type = Value::Type::integer;
        return number(line, out.integer);
      case '$':
        return bulk(line, Value::Type::bulk, out);
      case '!':
        return bulk(line, Value::Type::error, out);
      case '=':
        return bulk(line, Value::Type::verbatim, out);
      case '*':
        return items(line, Value::Type::array, 1, out, depth);
      case '~':
        return items(line, Value::Type::set, 1, out, depth);
      case '>':
        return items(line, Value::Type::push, 1, out, depth);
      case '%':
        return items(line, Value::Type::map, 2, out, depth);
      case '|': {
        Value ignored;
        Result<Step> attribute = items(line, Value::Type::map, 2, ignored, depth);
        if (!attribute || *attribute == Step::more) return attribute;
        return decode(out, depth + 1);
      }
      default:
        return fail(ErrorKind::invalid, std::string("not a RESP reply: first byte 0x") + hex(kind));
    }
  }

  [[nodiscard]] std::size_t consumed() const noexcept { return at_; }

 private:
  static std::string hex(char c) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return {kDigits[byte >> 4], kDigits[byte & 15]};
  }

  static Result<Step> number(std::string_view line, std::int64_t& out) {
    if (!line.empty() && line.front() == '+') line.remove_prefix(1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
    if (error != std::errc() || end != line.data() + line.size()) {
      return fail(ErrorKind::invalid, "RESP number '" + std::string(line.substr(0, 32)) + "' is none");
    }
    return Step::done;
  }

  static Result<Step> length(std::string_view line, std::int64_t& out) {
    if (line.size() > kMaxLengthDigits) {
      return fail(ErrorKind::invalid, "a RESP length of more than 30 characters");
    }
    return number(line, out);
  }

  Result<Step> bulk(std::string_view line, Value::Type type, Value& out) {
    std::int64_t size = 0;
    if (Result<Step> parsed = length(line, size); !parsed) return parsed;
    if (size == -1) {
      out.type = Value::Type::null;
      return Step::done;
    }
    if (size < 0 || size > kMaxBulk)
      return fail(ErrorKind::invalid, "RESP bulk length " + std::to_string(size) + " is out of range");
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes_.size() - at_ < bytes + 2) return Step::more;
    if (bytes_.substr(at_ + bytes, 2) != "\r\n")
      return fail(ErrorKind::invalid, "RESP bulk does not end with CR LF");
    out.type = type;
    out.text = bytes_.substr(at_, bytes);
    if (type == Value::Type::verbatim && out.text.size() >= 4) out.text.erase(0, 4);
    at_ += bytes + 2;
    return Step::done;
  }

  Result<Step> items(std::string_view line, Value::Type type, std::int64_t factor, Value& out, int depth) {
    std::int64_t count = 0;
    if (Result<Step> parsed = length(line, count); !parsed) return parsed;
    if (count == -1) {
      out.type = Value::Type::null;
      return Step::done;
    }
    if (count < 0 || count > kMaxItems)
      return fail(ErrorKind::invalid, "RESP array length " + std::to_string(count) + " is out of range");
    out.type = type;
    for (std::int64_t i = 0; i < count * factor; ++i) {
      Value item;
      Result<Step> step = decode(item, depth + 1);
      if (!step || *step == Step::more) return step;
      out.items.push_back(std::move(item));
    }
    return Step::done;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::optional<Decoded>> decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Decoded decoded;
  Result<Step> step = decoder.decode(decoded.value, 0);
  if (!step) return std::unexpected(step.error());
  if (*step == Step::more) return std::nullopt;
  decoded.size = decoder.consumed();
  return decoded;
}

void append_command(std::string& out, std::span<const std::string_view> arguments) {
  out += '*';
  out += std::to_string(arguments.size());
  out += "\r\n";
  for (const std::string_view argument : arguments) {
    out += '$';
    out += std::to_string(argument.size());
    out += "\r\n";
    out += argument;
    out += "\r\n";
  }
}

void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
  append_command(out, std::span(arguments.begin(), arguments.size()));
}

}  // namespace ringshift::protocol::resp
