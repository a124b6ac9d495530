#include "drill/trace.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "base/encoding.h"

namespace ringshift::drill {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::size_t kShownOfLine = 40;

std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlank));
  rest.remove_prefix(word.size());
  return word;
}

bool is_word(std::string_view text, std::string_view upper) {
  if (text.size() != upper.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & ~0x20) != upper[i]) return false;
  }
  return true;
}

std::unexpected<Error> bad_line(std::string_view line, std::string_view what) {
  return fail(ErrorKind::invalid, fmt::format("'{}': {}; a line is KEY, GET KEY or SET KEY BYTES",
                                              base::printable(line, kShownOfLine), what));
}

}  // namespace

Result<std::optional<TraceLine>> parse_trace_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > kMaxTraceLine) return bad_line(line, fmt::format("longer than {} bytes", kMaxTraceLine));
  std::array<std::string_view, 4> words;
  std::size_t count = 0;
  for (std::string_view rest = line; count < words.size(); ++count) {
    words[count] = next_word(rest);
    if (words[count].empty()) break;
  }
  if (count == 0 || words[0].starts_with('#')) return std::nullopt;
  TraceLine out;
  if (count == 1) {
    out.key = words[0];
  } else if (count == 2 && is_word(words[0], "GET")) {
    out.key = words[1];
  } else if (count == 3 && is_word(words[0], "SET")) {
    out.key = words[1];
    out.bytes = base::parse_u64(words[2]);
    if (!out.bytes || *out.bytes > kMaxTraceBody)
      return bad_line(line, fmt::format("the size is no number up to {}", kMaxTraceBody));
  } else {
    return bad_line(line, "not understood");
  }
  if (out.key.size() > kMaxTraceKey)
    return bad_line(line, fmt::format("a key longer than {} bytes", kMaxTraceKey));
  return out;
}

Result<Trace> read_trace(std::istream& in, std::string_view place) {
  Trace trace;
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::size_t key_bytes = 0, number = 0;
  // One more than a line may have, so that a longer one is seen as such and never held.
  std::string line(kMaxTraceLine + 2, '\0');
  while (in.getline(line.data(), static_cast<std::streamsize>(line.size())) || in.gcount() > 0) {
    ++number;
    const bool whole = !in.fail();
    const auto got = static_cast<std::size_t>(in.gcount());
    // gcount counts the line end, which the last line may lack.
    const std::string_view text(line.data(), whole && !in.eof() ? got - 1 : got);
    const auto parsed =
        whole ? parse_trace_line(text) : bad_line(text, fmt::format("longer than {} bytes", kMaxTraceLine));
    if (!parsed)
      return fail(ErrorKind::invalid, fmt::format("{}:{}: {}", place, number, parsed.error().message));
    if (!*parsed) continue;
    const TraceLine& asked = **parsed;
    auto found = numbers.find(std::string(asked.key));
    const bool fresh = found == numbers.end();
    if (trace.requests.size() == kMaxTraceRequests ||
        (fresh && (trace.keys.size() == kMaxTraceKeys || key_bytes + asked.key.size() > kMaxTraceKeyBytes))) {
      trace.cut = true;
      break;
    }
    if (fresh) {
      found = numbers.emplace(asked.key, static_cast<std::uint32_t>(trace.keys.size())).first;
      trace.keys.emplace_back(asked.key);
      trace.bytes.push_back(0);
      key_bytes += asked.key.size();
    }
    if (asked.bytes && trace.bytes[found->second] == 0)
      trace.bytes[found->second] = static_cast<std::uint32_t>(*asked.bytes);
    trace.requests.push_back(found->second << 1 | (asked.bytes ? 1U : 0U));
  }
  if (trace.requests.empty())
    return fail(ErrorKind::invalid,
                fmt::format("{} has no request: a line is KEY, GET KEY or SET KEY BYTES", place));
  return trace;
}

}  // namespace ringshift::drill
