#include "check/value.h"

#include "base/encoding.h"

namespace ringshift::check {
namespace {

// Differs from byte to byte and from token to token, so that a piece of another value shows.
char filler(std::size_t at, std::size_t salt) {
  return static_cast<char>('a' + (at * 7 + salt + at / 251) % 26);
}

std::size_t salt_of(std::string_view token) {
  std::size_t salt = 0;
  for (const char c : token) salt = salt * 31 + static_cast<unsigned char>(c);
  return salt % 65521;
}

}  // namespace

std::string long_value(std::string_view token, std::size_t size) {
  std::string out = std::string(token) + "/" + std::to_string(size) + "/";
  if (out.size() > size) return std::string(token);
  const std::size_t salt = salt_of(token);
  const std::size_t begin = out.size();
  out.resize(size);
  for (std::size_t i = begin; i < size; ++i) out[i] = filler(i, salt);
  return out;
}

std::string token_of(std::string value) {
  const std::size_t first = value.find('/');
  if (first == std::string::npos) return value;
  const std::size_t second = value.find('/', first + 1);
  const auto corrupt = [&](const char* how) {
    return "corrupt " + value.substr(0, first) + " (" + how + ", " + std::to_string(value.size()) + " bytes)";
  };
  if (second == std::string::npos) return corrupt("cut off");
  const auto size = base::parse_u64(std::string_view(value).substr(first + 1, second - first - 1));
  if (!size) return corrupt("its size is no number");
  if (*size != value.size()) return corrupt("not its size");
  const std::size_t salt = salt_of(std::string_view(value).substr(0, first));
  for (std::size_t i = second + 1; i < value.size(); ++i) {
    if (value[i] != filler(i, salt)) return corrupt("other bytes inside");
  }
  value.resize(first);
  return value;
}

}  // namespace ringshift::check
