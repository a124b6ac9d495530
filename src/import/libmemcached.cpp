// libmemcached's configuration string, as 1.1.4 obeys it: options are carried out one by one, so their order
// counts. Each of these was seen with the real library:
//
// - a ring is built when servers or the distribution are given, with the hash known by then: a --HASH after
// that
//   changes the keys' hash and not the ring's (which no placement of ours can state: refused);
// - weights make a weighted ring only if a weight above 1 comes after --DISTRIBUTION=consistent; else a plain
// one;
// - the hash after the comma of --DISTRIBUTION=consistent,HASH changes nothing;
// - the label of a socket is its path and port 0; a weight within a socket's quotes belongs to the path.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "import/draft.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

using topology::shown;

constexpr auto kHashes = std::to_array<std::string_view>(
    {"md5", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins"});

struct Ignored {
  std::string_view name;
  bool valued;
  std::string_view why;
};
constexpr std::string_view kClientSide =
    "is the client's own: keep it there, with the proxy as its one server";
constexpr Ignored kIgnored[] = {
    {"verify-key", false, kClientSide},
    {"binary-protocol", false, kClientSide},
    {"buffer-requests", false, kClientSide},
    {"connect-timeout", true, kClientSide},
    {"fetch-version", false, kClientSide},
    {"io-bytes-watermark", true, kClientSide},
    {"io-key-prefetch", true, kClientSide},
    {"io-msg-watermark", true, kClientSide},
    {"noreply", false, kClientSide},
    {"number-of-replicas", true, "copies on other servers are neither written nor read any more"},
    {"poll-timeout", true, kClientSide},
    {"pool-min", true, kClientSide},
    {"pool-max", true, kClientSide},
    {"randomize-replica-read", false, "copies on other servers are neither written nor read any more"},
    {"rcv-timeout", true, kClientSide},
    {"remove-failed-servers", true,
     "no member is ejected: keys that lie elsewhere since one failed stay there unread"},
    {"retry-timeout", true, kClientSide},
    {"snd-timeout", true, kClientSide},
    {"socket-recv-size", true, kClientSide},
    {"socket-send-size", true, kClientSide},
    {"support-cas", false, kClientSide},
    {"tcp-nodelay", false, kClientSide},
    {"tcp-keepalive", false, kClientSide},
    {"tcp-keepidle", false, kClientSide},
    {"use-udp", false, "members are spoken to by TCP"},
    {"user-data", false, kClientSide},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return out;
}

struct Option {
  Mark mark;
  std::string words;        // As written.
  std::string name, value;  // Without dashes, in small letters; the value as written, quotes taken off.
  std::string tail;         // After a quoted value: "/?2".
  bool valued = false;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  Result<Draft> read() {
    draft_.source = "libmemcached";
    draft_.spec.placement = peer_placement("libmemcached");
    draft_.protocol(topology::Protocol::memcached);
    while (skip_space()) {
      Result<Option> option = next();
      if (!option) return std::unexpected(option.error());
      if (option->name == "end") break;
      if (Status done = apply(*option); !done) return std::unexpected(done.error());
    }
    if (Status done = settle(); !done) return std::unexpected(done.error());
    return std::move(draft_);
  }

 private:
  // False at the end.
  bool skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#' && mark_.column == 1) {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t') {
        step();
      } else {
        return true;
      }
    }
    return false;
  }
  void step() {
    mark_ = text_[at_] == '\n' ? Mark{mark_.line + 1, 1} : Mark{mark_.line, mark_.column + 1};
    ++at_;
  }
  bool in_word() const {
    return at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) == std::string_view::npos;
  }

  Result<Option> next() {
    Option option;
    option.mark = mark_;
    const std::size_t begin = at_;
    std::string name;
    while (in_word() && text_[at_] != '=') {
      name += text_[at_];
      step();
    }
    name = lower(name);
    if (name == "end") {
      option.name = name;
      return option;
    }
    if (!name.starts_with("--"))
      return refuse(place_, option.mark,
                    fmt::format("{} is no option of a libmemcached configuration: options "
                                "are --NAME or --NAME=VALUE, with a space between them",
                                shown(name)));
    option.name = name.substr(2);
    if (in_word()) {
      option.valued = true;
      step();
      if (in_word() && text_[at_] == '"') {
        step();
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
          option.value += text_[at_];
          step();
        }
        if (at_ == text_.size() || text_[at_] != '"')
          return refuse(place_, option.mark, fmt::format("the quotes of --{} are not closed", option.name));
        step();
        while (in_word()) {
          option.tail += text_[at_];
          step();
        }
      } else {
        while (in_word()) {
          option.value += text_[at_];
          step();
        }
      }
    }
    option.words = text_.substr(begin, at_ - begin);
    return option;
  }

  Status apply(const Option& option) {
    if (option.name == "server") return server(option);
    if (option.name == "socket") return socket(option);
    if (option.name == "distribution") return distribution(option);
    if (option.name == "hash") return hash(option);
    if (option.name == "namespace") {
      namespace_ = option;
      return {};
    }
    if (option.name == "hash-with-namespace") {
      hash_with_namespace_ = true;
      return {};
    }
    if (option.name == "sort-hosts") {
      sort_ = option;
      return {};
    }
    if (option.name == "configure-file") {
      return refuse(
          place_, option.mark,
          fmt::format("the configuration is in another file, {}: import that one", shown(option.value)));
    }
    const auto found = std::ranges::find(kIgnored, option.name, &Ignored::name);
    if (found == std::end(kIgnored)) {
      return refuse(
          place_, option.mark,
          fmt::format("--{} is no option of libmemcached 1.1.4: remove it, if it does not decide which "
                      "server has a key",
                      base::printable(option.name, 60)));
    }
    if (found->valued != option.valued) {
      return refuse(place_, option.mark,
                    fmt::format("--{} {}", option.name,
                                found->valued ? "needs a value: --NAME=VALUE" : "takes no value"));
    }
    draft_.note(option.mark, option.words, std::string(found->why));
    return {};
  }

  // "/?N" or nothing.
  Result<double> weight(const Option& option, std::string_view text) {
    if (text.empty()) return 1.0;
    const auto number = text.starts_with("/?") ? base::parse_u64(text.substr(2)) : std::nullopt;
    if (!number)
      return refuse(place_, option.mark, fmt::format("{}: the weight is written /?N", shown(option.words)));
    return std::max(static_cast<double>(*number), 1.0);  // As the library takes 0.
  }

  Status add(const Option& option, topology::Member member, double weight) {
    if (weight > 1 && consistent_) weighted_ = true;
    member.weight = weight;
    draft_.member(option.mark, std::move(member));
    ring_hash_ = draft_.spec.placement.hash;
    return {};
  }

  Status server(const Option& option) {
    std::string_view rest = option.value;
    const auto slash = std::min(rest.find('/'), rest.size());
    const auto parsed = weight(option, rest.substr(slash));
    if (!parsed) return std::unexpected(parsed.error());
    rest = rest.substr(0, slash);
    const auto colon = rest.find(':');
    const std::string_view host = rest.substr(0, colon);
    const std::string port = colon == std::string_view::npos ? "11211" : plain_port(rest.substr(colon + 1));
    if (host.empty() || port.empty() || !option.tail.empty())
      return refuse(place_, option.mark,
                    fmt::format("{}: a server is written --SERVER=host:port/?weight, with "
                                "the port (11211) and the weight (1) as one likes",
                                shown(option.words)));
    topology::Member member;
    member.address = address_of(host, port);
    return add(option, std::move(member), *parsed);
  }

  Status socket(const Option& option) {
    const auto parsed = weight(option, option.tail);
    if (!parsed) return std::unexpected(parsed.error());
    if (!option.value.starts_with('/') || option.value.find("/?") != std::string::npos) {
      return refuse(place_, option.mark,
                    fmt::format("{}: a socket is written --SOCKET=\"/path\" or --SOCKET=\"/path\"/?weight: "
                                "libmemcached takes a weight within the quotes as part of the path",
                                shown(option.words)));
    }
    topology::Member member;
    member.address = "unix:" + option.value;
    member.label = option.value + ":0";
    return add(option, std::move(member), *parsed);
  }

  Status distribution(const Option& option) {
    const std::string value = lower(option.value);
    const auto comma = std::min(value.find(','), value.size());
    const std::string name = value.substr(0, comma);
    if (name == "random")
      return refuse(place_, option.mark, "random is no placement: a key would have no owner");
    if (name != "consistent" && name != "modula") {
      return refuse(
          place_, option.mark,
          fmt::format("{}: libmemcached's configuration takes consistent and modula", shown(option.words)));
    }
    if (distribution_given_)
      return refuse(place_, option.mark, "--DISTRIBUTION is given twice: keep the last one");
    distribution_given_ = true;
    if (comma < value.size()) {
      const std::string after = value.substr(comma + 1);
      if (std::ranges::find(kHashes, after) == kHashes.end())
        return refuse(place_, option.mark,
                      fmt::format("{}: {} is no hash of libmemcached's", shown(option.words), shown(after)));
      draft_.note(
          option.mark, option.words,
          fmt::format("the hash after the comma changes nothing in libmemcached 1.1.4: keys and ring go by "
                      "--HASH ({})",
                      draft_.spec.placement.hash));
    }
    consistent_ = name == "consistent";
    draft_.spec.placement.options["distribution"] = name;
    draft_.marks["placement.distribution"] = option.mark;
    ring_hash_ = draft_.spec.placement.hash;
    return {};
  }

  Status hash(const Option& option) {
    const std::string value = lower(option.value);
    if (std::ranges::find(kHashes, value) == kHashes.end()) {
      return refuse(place_, option.mark,
                    fmt::format("{}: libmemcached's configuration takes {}", shown(option.words),
                                "md5, crc, fnv1_64, fnv1a_64, fnv1_32, fnv1a_32, hsieh, murmur and jenkins"));
    }
    if (hash_mark_) return refuse(place_, option.mark, "--HASH is given twice: libmemcached takes it once");
    hash_mark_ = option.mark;
    draft_.spec.placement.hash = value;
    draft_.marks["placement.hash"] = option.mark;
    return {};
  }

  // What only the whole string tells.
  Status settle() {
    auto& members = draft_.spec.members;
    if (namespace_ && !hash_with_namespace_) {
      return refuse(
          place_, namespace_->mark,
          fmt::format("{}: libmemcached puts the namespace before each key but hashes the key without it, "
                      "and a proxy sees only the whole: such keys cannot be found by it",
                      shown(namespace_->words)));
    }
    if (namespace_)
      draft_.note(namespace_->mark, namespace_->words, "keys have it before them: keep it in the clients");
    if (sort_ && !std::ranges::is_sorted(members, {}, &topology::Member::address)) {
      return refuse(
          place_, sort_->mark,
          "--SORT-HOSTS changes the servers' order: write them sorted by host and port and remove it");
    }
    if (consistent_ && !weighted_ && ring_hash_ != draft_.spec.placement.hash && hash_mark_) {
      return refuse(
          place_, *hash_mark_,
          fmt::format("--HASH comes after the servers and --DISTRIBUTION, so libmemcached built its ring "
                      "with the hash {} and looks keys up with {}: no placement is that. Import this string "
                      "only if it is not what your clients run; put --HASH first to make it one",
                      ring_hash_, draft_.spec.placement.hash));
    }
    if (!weighted_) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (members[i].weight == 1) continue;
        draft_.note(draft_.servers[i], fmt::format("weight {} of {}", members[i].weight, members[i].address),
                    consistent_ ? "libmemcached ignores weights that come before --DISTRIBUTION=consistent: 1"
                                : "libmemcached's modula ignores weights: 1");
        members[i].weight = 1;
      }
    }
    return {};
  }

  std::string_view text_, place_;
  std::size_t at_ = 0;
  Mark mark_;
  Draft draft_;
  std::optional<Option> namespace_, sort_;
  std::optional<Mark> hash_mark_;
  std::string ring_hash_ = "default";
  bool hash_with_namespace_ = false, consistent_ = false, weighted_ = false, distribution_given_ = false;
};

}  // namespace

Drafts read_libmemcached(std::string_view text, const Request& request) {
  Result<Draft> draft = Reader(text, request.place).read();
  if (!draft) return std::unexpected(draft.error());
  std::vector<Draft> out;
  if (request.pool.empty() || request.pool == draft->source) out.push_back(std::move(*draft));
  return out;
}

}  // namespace ringshift::importing
