#include "proxy/split.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Handling;

// Takes the number of a header line such as ":12\r\n" or "*3\r\n" from the front of `bytes`.
bool take_header(std::string_view& bytes, char type, std::int64_t& value) {
  if (bytes.empty() || bytes[0] != type) return false;
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) return false;
  const auto [at, error] = std::from_chars(bytes.data() + 1, bytes.data() + end, value);
  if (error != std::errc() || at != bytes.data() + end) return false;
  bytes.remove_prefix(end + 2);
  return true;
}

// Takes one element of an MGET reply, a bulk or a nil, from the front; empty when it is neither.
std::string_view take_element(std::string_view& bytes) {
  const std::string_view all = bytes;
  if (bytes.starts_with("_\r\n")) {
    bytes.remove_prefix(3);
    return all.substr(0, 3);
  }
  std::int64_t size = 0;
  if (!take_header(bytes, '$', size)) return {};
  if (size >= 0) {
    const auto body = static_cast<std::size_t>(size) + 2;
    if (body > bytes.size()) return {};
    bytes.remove_prefix(body);
  }
  return all.substr(0, all.size() - bytes.size());
}

}  // namespace

void Split::expect(std::size_t parts, std::vector<std::uint32_t> part_of_key) {
  remaining_ = parts;
  if (command_.handling == Handling::split_mget) {
    part_of_key_ = std::move(part_of_key);
    replies_.resize(parts);
  }
}

void Split::on_reply(std::uint64_t tag, std::string_view raw) {
  if (raw.starts_with('-')) {
    session_.worker().counters().add(telemetry::Counter::errors_member);
    if (error_.empty()) error_ = raw;
    return part_done();
  }
  ++executed_;
  if (command_.handling == Handling::split_mget) {
    replies_[tag] = raw;
  } else if (command_.handling == Handling::split_count) {
    std::int64_t n = 0;
    if ((!take_header(raw, ':', n) || __builtin_add_overflow(sum_, n, &sum_)) && error_.empty()) {
      error_ = kBadReply;
    }
  } else if (!raw.starts_with("+OK") && error_.empty()) {
    error_ = kBadReply;
  }
  part_done();
}

void Split::on_failure(std::uint64_t, const backend::Failure& failure) {
  session_.count_failure(failure.kind);
  // "May have been executed" says more than "was not".
  const bool worse =
      failure.kind == backend::Failure::Kind::unknown && failure_kind_ != backend::Failure::Kind::unknown;
  if (!failed_ || worse) {
    failed_ = true;
    failure_kind_ = failure.kind;
    failure_member_ = failure.member;
    failure_reason_ = failure.reason;
  }
  part_done();
}

bool Split::writes() const noexcept { return command_.key_use == protocol::resp::KeyUse::write; }

std::string Split::failure_text() const {
  backend::Failure failure{failure_kind_, failure_member_, failure_reason_};
  // A write of which another part was executed must not be called "not executed".
  if (writes() && executed_ > 0) failure.kind = backend::Failure::Kind::unknown;
  return failure_reply(failure);
}

void Split::part_done() {
  if (--remaining_ > 0) return;
  std::string answer;
  if (failed_) {
    answer = failure_text();
  } else if (!error_.empty()) {
    answer = std::move(error_);
  } else if (command_.handling == Handling::split_mget) {
    answer = weave();
  } else if (command_.handling == Handling::split_count) {
    append_integer(answer, sum_);
  } else {
    answer = "+OK\r\n";
  }
  session_.task_done(number_, answer);  // Destroys this.
}

std::string Split::weave() const {
  std::vector<std::string_view> rest(replies_.begin(), replies_.end());
  std::size_t size = 16;
  for (std::string_view& part : rest) {
    size += part.size();
    std::int64_t count = 0;
    if (!take_header(part, '*', count)) return std::string(kBadReply);
  }
  std::string answer;
  answer.reserve(size);
  append_header(answer, '*', part_of_key_.size());
  for (const std::uint32_t part : part_of_key_) {
    const std::string_view element = take_element(rest[part]);
    if (element.empty()) return std::string(kBadReply);
    answer += element;
  }
  return answer;
}

// --- SplitScratch ----------------------------------------------------------------------------------------

namespace {

constexpr std::uint32_t kNoPart = ~std::uint32_t{0};
constexpr std::size_t kKeptBytes = 64U << 10;  // Of a part's text, between two commands.

}  // namespace

void SplitScratch::begin() { used_ = clusters_used_ = 0; }

std::uint32_t SplitScratch::next() {
  if (used_ == parts_.size()) parts_.emplace_back();
  Part& part = parts_[used_];
  if (part.text.capacity() > kKeptBytes) std::string().swap(part.text);
  part.text.assign(kHeaderRoom, ' ');
  part.arguments = 0;
  return static_cast<std::uint32_t>(used_++);
}

std::uint32_t SplitScratch::part_of(Upstream& upstream, topology::MemberIndex member) {
  std::size_t at = 0;
  while (at < clusters_used_ && clusters_[at].upstream != &upstream) ++at;
  if (at == clusters_used_) {
    if (at == clusters_.size()) clusters_.emplace_back();
    clusters_[at].upstream = &upstream;
    clusters_[at].of_member.assign(upstream.snapshot().members().size(), kNoPart);
    ++clusters_used_;
  }
  std::uint32_t& part = clusters_[at].of_member[member];
  if (part == kNoPart) {
    part = next();
    parts_[part].upstream = &upstream;
    parts_[part].member = member;
  }
  return part;
}

std::uint32_t SplitScratch::lone_part(Upstream& upstream, std::size_t key) {
  const std::uint32_t part = next();
  parts_[part].upstream = &upstream;
  parts_[part].member = topology::kNoMember;
  parts_[part].key = key;
  return part;
}

void SplitScratch::add_argument(std::uint32_t part, std::string_view argument) {
  Part& to = parts_[part];
  char digits[24];
  digits[0] = '$';
  char* end = std::to_chars(digits + 1, digits + 22, argument.size()).ptr;
  *end++ = '\r';
  *end++ = '\n';
  to.text.append(digits, end);
  to.text.append(argument);
  to.text.append("\r\n", 2);
  ++to.arguments;
}

std::string_view SplitScratch::command(std::uint32_t part, std::string_view name) {
  Part& of = parts_[part];
  const std::string header = fmt::format("*{}\r\n${}\r\n{}\r\n", of.arguments + 1, name.size(), name);
  const std::size_t start = kHeaderRoom - header.size();  // Names are short: the longest has 6 letters.
  header.copy(of.text.data() + start, header.size());
  return std::string_view(of.text).substr(start);
}

}  // namespace ringshift::proxy
