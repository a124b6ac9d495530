// What `redis-cli cluster nodes` prints, as a slot table: one node a line,
//   ID IP:PORT@BUS[,HOST] FLAGS MASTER PING PONG EPOCH LINK [SLOT | FIRST-LAST | [SLOT->-ID] |
//   [SLOT-<-ID]]...
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/encoding.h"
#include "import/draft.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

using topology::shown;

constexpr std::size_t kFields = 8;  // Before the slots.
constexpr std::size_t kSlots = 16'384;

struct Word {
  std::string_view text;
  Mark mark;
};

std::vector<Word> words_of(std::string_view line, std::uint32_t number) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < line.size();) {
    const auto first = line.find_first_not_of(" \t\r", at);
    if (first == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", first), line.size());
    words.push_back({line.substr(first, at - first), {number, static_cast<std::uint32_t>(first) + 1}});
  }
  return words;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  while (!flags.empty()) {
    const auto end = std::min(flags.find(','), flags.size());
    if (flags.substr(0, end) == flag) return true;
    flags.remove_prefix(std::min(end + 1, flags.size()));
  }
  return false;
}

struct Range {
  topology::SlotRange slots;
  std::size_t member = 0;
  Mark mark;
};

class Nodes {
 public:
  explicit Nodes(std::string_view place) : place_(place) {
    draft_.source = "cache";
    draft_.spec.placement.algorithm = "slots";
    draft_.spec.placement.hash = "crc16";
    draft_.spec.placement.hash_tag = "{}";
  }

  Status line(std::string_view text, std::uint32_t number) {
    const std::vector<Word> words = words_of(text, number);
    if (words.empty()) return {};
    if (words.size() < kFields) {
      return refuse(
          place_, words.front().mark,
          fmt::format("{} fields are fewer than the {} that a line of `redis-cli cluster nodes` has: ID "
                      "IP:PORT@BUS FLAGS MASTER PING PONG EPOCH LINK SLOTS...",
                      words.size(), kFields));
    }
    const std::string_view flags = words[2].text;
    const bool with_slots = words.size() > kFields;
    if (!has_flag(flags, "master")) {
      if (with_slots)
        return refuse(place_, words[kFields].mark, "a node that is no master has slots: is the line whole?");
      skipped(words, has_flag(flags, "slave")
                         ? "a replica: ringshift knows masters only; keep it replicating or stop it"
                         : "not part of the cluster yet");
      return {};
    }
    if (!with_slots) {
      skipped(words, "a master without slots: it owns no key");
      return {};
    }
    if (has_flag(flags, "fail") || has_flag(flags, "noaddr")) {
      return refuse(place_, words[2].mark,
                    fmt::format("master {} has slots and is marked {}: repair the cluster, then ask it again",
                                shown(words[1].text), shown(flags)));
    }
    if (has_flag(flags, "fail?"))
      draft_.note(words[2].mark, words[1].text, "marked fail?: see that it answers before you go on");
    return master(words);
  }

  Result<Draft> take() {
    if (Status done = table(); !done) return std::unexpected(done.error());
    draft_.note(draft_.mark, "cluster nodes",
                "servers in cluster mode refuse keys of slots that are not theirs, the proxy's own among "
                "them: restart "
                "each with cluster-enabled no (its RDB or AOF keeps the keys) before the proxy serves them");
    return std::move(draft_);
  }

  [[nodiscard]] bool empty() const { return draft_.spec.members.empty() && draft_.notes.empty(); }

 private:
  void skipped(const std::vector<Word>& words, std::string why) {
    draft_.note(words.front().mark, fmt::format("{} {}", words[1].text, words[2].text), std::move(why));
  }

  Status master(const std::vector<Word>& words) {
    std::string_view endpoint = words[1].text;
    endpoint = endpoint.substr(0, endpoint.find(','));
    endpoint = endpoint.substr(0, endpoint.find('@'));
    const auto colon = endpoint.rfind(':');
    const std::string port = colon == std::string_view::npos ? "" : plain_port(endpoint.substr(colon + 1));
    if (port.empty() || colon == 0) {
      return refuse(
          place_, words[1].mark,
          fmt::format("{} has no {}: ask the cluster from another machine (redis-cli -h HOST cluster nodes), "
                      "or set cluster-announce-ip",
                      shown(words[1].text), colon == 0 ? "host" : "port"));
    }
    topology::Member member;
    member.address = address_of(endpoint.substr(0, colon), port);
    const std::size_t index = draft_.spec.members.size();
    draft_.member(words[1].mark, std::move(member));
    for (std::size_t i = kFields; i < words.size(); ++i) {
      if (Status done = slots(words[i], index); !done) return done;
    }
    return {};
  }

  Status slots(const Word& word, std::size_t member) {
    if (word.text.starts_with('[')) {
      return refuse(
          place_, word.mark,
          fmt::format("{}: this slot is being moved, so its keys lie on two servers: finish that (redis-cli "
                      "--cluster fix), then ask again",
                      shown(word.text)));
    }
    const auto dash = word.text.find('-');
    const auto first = base::parse_u64(word.text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : base::parse_u64(word.text.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kSlots) {
      return refuse(place_, word.mark,
                    fmt::format("{} is no slot and no range of slots within 0-16383", shown(word.text)));
    }
    for (std::size_t slot = *first; slot <= *last; ++slot) {
      if (owned_[slot])
        return refuse(place_, word.mark,
                      fmt::format("slot {} belongs to a node before this one too: is this the answer of "
                                  "one node?",
                                  slot));
      owned_[slot] = true;
    }
    ranges_.push_back(
        {{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last), ""}, member, word.mark});
    return {};
  }

  Status table() {
    if (draft_.spec.members.empty()) return {};
    const auto gap = std::ranges::find(owned_, false);
    if (gap != owned_.end()) {
      const auto end = std::find(gap, owned_.end(), true);
      return refuse(
          place_, draft_.mark,
          fmt::format("slots {}-{} belong to no node here: the whole answer of `redis-cli cluster nodes` is "
                      "needed, of a cluster that covers all 16384",
                      gap - owned_.begin(), end - owned_.begin() - 1));
    }
    std::ranges::sort(ranges_, {}, [](const Range& range) { return range.slots.first; });
    for (Range& range : ranges_) {
      range.slots.member = std::to_string(range.member);  // As finish() expects it.
      draft_.spec.placement.slots.push_back(std::move(range.slots));
    }
    return {};
  }

  std::string_view place_;
  Draft draft_;
  std::array<bool, kSlots> owned_{};
  std::vector<Range> ranges_;
};

}  // namespace

Drafts read_redis_cluster(std::string_view text, const Request& request) {
  const auto nodes = std::make_unique<Nodes>(request.place);
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    if (Status done = nodes->line(text.substr(0, end), number); !done) return std::unexpected(done.error());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<Draft> out;
  if (nodes->empty()) return out;
  Result<Draft> draft = nodes->take();
  if (!draft) return std::unexpected(draft.error());
  if (request.pool.empty() || request.pool == draft->source) out.push_back(std::move(*draft));
  return out;
}

}  // namespace ringshift::importing
