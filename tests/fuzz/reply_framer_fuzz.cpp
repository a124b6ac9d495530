// Any bytes, in any pieces: the framer finds the same ends as in one piece, never reads past what it was
// given, and agrees with decode() about every reply that decode() accepts.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "protocol/resp/reply_framer.h"
#include "protocol/resp/value.h"

namespace {

using ringshift::protocol::resp::decode;
using ringshift::protocol::resp::ReplyFramer;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  std::vector<std::size_t> ends;
  bool broken = false;
  bool operator==(const Outcome&) const = default;
};

// Shows `bytes` in steps of `step`, each in a block of exactly that size.
Outcome frame_all(std::string_view bytes, std::size_t step) {
  Outcome out;
  ReplyFramer framer;
  std::size_t begin = 0, seen = 0;
  while (seen < bytes.size()) {
    seen = std::min(bytes.size(), seen + step);
    while (begin < seen) {
      const std::string_view part = bytes.substr(begin, seen - begin);
      const std::unique_ptr<char[]> block(new char[part.size()]);
      std::copy(part.begin(), part.end(), block.get());
      const ReplyFramer::Frame frame = framer.next({block.get(), part.size()});
      if (frame.state == ReplyFramer::State::broken) {
        out.broken = true;
        return out;
      }
      if (frame.state == ReplyFramer::State::more) break;
      require(frame.size > 0 && frame.size <= part.size());
      begin += frame.size;
      out.ends.push_back(begin);
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t step = 1 + data[0] % 32;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome whole = frame_all(bytes, bytes.size());
  require(whole == frame_all(bytes, step));
  std::size_t begin = 0;
  for (const std::size_t end : whole.ends) {
    const auto decoded = decode(bytes.substr(begin));
    if (decoded) require(decoded->has_value() && (*decoded)->size == end - begin);
    begin = end;
  }
  return 0;
}
