// `backend` and `listen` sections of HAProxy with `balance` by a hash, with what `defaults` sections before
// them say.
//
// The defaults that are easily forgotten: no hash-type is `map-based sdbm`; `hash-type consistent` alone is
// sdbm with avalanche, and with a function named it is without. A server's id, which the ring hashes, is its
// `id` or the next free number from its place in the section on. Servers that get no key (disabled, backup,
// weight 0) still have a place.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "import/draft.h"
#include "import/haproxy_rules.h"
#include "import/haproxy_server.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::importing {
namespace {

using topology::shown;
using Words = HaproxyLine;
using Rules = HaproxyRules;

constexpr std::string_view kSections =
    "global defaults frontend backend listen userlist peers resolvers mailers cache program "
    "http-errors ring log-forward log-profile fcgi-app crt-store traces acme ";

constexpr std::string_view kNoHash =
    "roundrobin static-rr leastconn first random source sticky log-hash log-sticky ";

class Section {
 public:
  Section(const HaproxyWord& name, const Rules& rules, std::string_view place)
      : rules_(rules), place_(place) {
    draft_.source = name.text;
    draft_.mark = name.mark;
    draft_.spec.placement = peer_placement("haproxy");
  }

  Status line(const Words& words) {
    const std::string& first = words.front().text;
    if (first == "server") {
      if (servers_.size() >= topology::kMaxMembers) {
        return refuse(
            place_, words.front().mark,
            fmt::format("more than the {} servers that one cluster may have", topology::kMaxMembers));
      }
      HaproxyServer server;
      server.name.text = words.size() > 1 ? words[1].text : "";
      const auto& defaults = rules_.default_server;
      Draft told;  // Its notes are for the first server only.
      const bool fresh = defaults_told_ != defaults.size();
      if (Status done = read_haproxy_options(defaults, server, fresh ? draft_ : told, place_); !done)
        return done;
      defaults_told_ = defaults.size();
      if (Status done = read_haproxy_server(words, server, draft_, place_); !done) return done;
      servers_.push_back(std::move(server));
      return {};
    }
    return read_haproxy_rule(words, rules_, place_);
  }

  [[nodiscard]] bool has_servers() const { return !servers_.empty(); }

  Result<Draft> settle() {
    draft_.notes.insert(draft_.notes.end(), rules_.notes.begin(), rules_.notes.end());
    Status done = check_rules();
    if (done) done = balance();
    if (done) done = hash_type();
    if (done) done = members();
    if (!done) return std::unexpected(done.error());
    protocol();
    return std::move(draft_);
  }

 private:
  Status check_rules() {
    if (rules_.disabled)
      return refuse(place_, draft_.mark, fmt::format("{} is disabled", shown(draft_.source)));
    if (rules_.past_hash) {
      return refuse(
          place_, rules_.past_hash->mark,
          fmt::format(
              "{} sends requests past the hash, so a key may lie on any server: remove it in HAProxy, "
              "let the cache fill, then import",
              rules_.past_hash->text));
    }
    if (rules_.unknown) {
      return refuse(
          place_, rules_.unknown->mark,
          fmt::format("{} is not known here: remove it, if it does not decide which server has a key",
                      shown(rules_.unknown->text)));
    }
    if (!rules_.balance_factor.empty() &&
        (rules_.balance_factor.size() < 2 || rules_.balance_factor[1].text != "0")) {
      return refuse(
          place_, rules_.balance_factor[0].mark,
          fmt::format(
              "{}: servers above it give their keys to others, so a key may lie on any: set it to 0 in "
              "HAProxy, let the cache fill, then import",
              joined(rules_.balance_factor)));
    }
    return {};
  }

  Status balance() {
    if (rules_.balance.size() < 2) {
      return refuse(
          place_, draft_.mark,
          fmt::format(
              "{} has no balance, so its method is round robin, by which a key has no owner: choose the "
              "backend to import by --pool",
              shown(draft_.source)));
    }
    const HaproxyWord& method = rules_.balance[1];
    const std::string name = method.text.substr(0, method.text.find('('));
    if (listed(kNoHash, name)) {
      return refuse(place_, method.mark,
                    fmt::format("balance {} of {}: {}: choose the backend to import by --pool", name,
                                shown(draft_.source),
                                name == "source" ? "places clients by their address, not keys"
                                                 : "is no hash, so a key has no owner"));
    }
    if (name != "uri" && name != "url_param" && name != "hdr" && name != "rdp-cookie" && name != "hash")
      return refuse(place_, method.mark, fmt::format("balance {} is not known", shown(name)));
    for (std::size_t i = 2; i < rules_.balance.size(); ++i) {
      const HaproxyWord& word = rules_.balance[i];
      if (word.text != "len" && word.text != "depth" && word.text != "use_domain_only") continue;
      return refuse(
          place_, word.mark,
          fmt::format("balance {} {}: only a part is hashed, which no placement can state", name, word.text));
    }
    draft_.note(method.mark, joined(rules_.balance),
                "HAProxy hashed that part of a request; ringshift hashes the key that a client asks for. "
                "Owners are the "
                "same where the two are");
    return {};
  }

  Status hash_type() {
    auto& placement = draft_.spec.placement;
    placement.options["method"] = "map-based";
    placement.options["avalanche"] = "false";
    const Words& words = rules_.hash_type;
    if (words.empty()) return {};
    draft_.marks["placement.hash"] = words.size() > 2 ? words[2].mark : words[0].mark;
    if (words.size() < 2 || (words[1].text != "consistent" && words[1].text != "map-based")) {
      const HaproxyWord& wrong = words[words.size() < 2 ? 0 : 1];
      return refuse(place_, wrong.mark,
                    fmt::format("hash-type {} is neither consistent nor map-based", shown(wrong.text)));
    }
    placement.options["method"] = words[1].text;
    if (words.size() == 2) {
      if (words[1].text == "consistent") placement.options["avalanche"] = "true";
      return {};
    }
    placement.hash = words[2].text;
    if (words.size() > 3) {
      if (words[3].text != "avalanche" || words.size() > 4)
        return refuse(place_, words[words.size() > 4 ? 4 : 3].mark,
                      "only avalanche is known after the hash function");
      placement.options["avalanche"] = "true";
    }
    return {};
  }

  // Numbers the servers as HAProxy does, then leaves out those that get no key.
  Status members() {
    std::set<std::uint64_t> ids;
    std::set<std::string_view> names;
    for (const HaproxyServer& server : servers_) {
      if (server.id && !ids.insert(*server.id).second)
        return refuse(place_, server.mark, fmt::format("id {} is another server's too", *server.id));
      if (!names.insert(server.name.text).second)
        return refuse(place_, server.name.mark,
                      fmt::format("a server {} is defined before", shown(server.name.text)));
    }
    std::uint64_t next = 1, all = 0, used = 0;
    const bool consistent = draft_.spec.placement.options["method"] == "consistent";
    const HaproxyServer* first_out = nullptr;
    for (std::size_t i = 0; i < servers_.size(); ++i, ++next) {
      HaproxyServer& server = servers_[i];
      if (!server.id) {
        while (!ids.insert(next).second) ++next;
        server.id = next;
      }
      all = std::gcd(all, server.weight);
      const bool out = server.disabled || server.backup || server.weight == 0;
      if (out) {
        if (first_out == nullptr) first_out = &server;
        draft_.note(server.mark, fmt::format("server {}", server.name.text),
                    server.disabled ? "is disabled, so others have its keys, here too: left out"
                    : server.backup ? "is a backup, which gets keys only when no other server is up: left out"
                                    : "has weight 0 and gets no key: left out");
        continue;
      }
      used = std::gcd(used, server.weight);
      topology::Member member;
      member.id = server.name.text;
      member.address = server.address;
      member.weight = static_cast<double>(server.weight);
      if (consistent) member.label = std::to_string(*server.id);
      draft_.member(server.mark, std::move(member));
    }
    // The table's length comes from all weights' common divisor, of those left out too.
    if (!consistent && first_out != nullptr && all != used) {
      return refuse(
          place_, first_out->mark,
          fmt::format(
              "server {} gets no key but its weight counts in HAProxy's table: delete its line in HAProxy "
              "too, or give it another server's weight",
              shown(first_out->name.text)));
    }
    return {};
  }

  // HAProxy does not know what its servers speak.
  void protocol() {
    const auto& members = draft_.spec.members;
    const bool usual_port =
        !members.empty() && std::ranges::all_of(members, [](const topology::Member& member) {
          return member.address.ends_with(":11211");
        });
    const bool memcached = usual_port && !rules_.redis;
    draft_.protocol(memcached ? topology::Protocol::memcached : topology::Protocol::redis);
    draft_.note(draft_.mark, draft_.source,
                rules_.redis ? "option redis-check: protocol redis"
                : memcached  ? "all servers have port 11211: protocol memcached is assumed"
                             : "a backend does not say what its servers speak: protocol redis is assumed");
  }

  Rules rules_;
  std::string_view place_;
  Draft draft_;
  std::vector<HaproxyServer> servers_;
  std::size_t defaults_told_ = 0;
};

class File {
 public:
  explicit File(const Request& request) : request_(request) {}

  Status line(std::string_view text, std::uint32_t number) {
    const Result<Words> words = haproxy_words(text, number, request_.place);
    if (!words) return std::unexpected(words.error());
    if (words->empty()) return {};
    const std::string& first = words->front().text;
    if (listed(kSections, first)) return begin(*words);
    if (section_) return section_->line(*words);
    if (in_defaults_) return read_haproxy_rule(*words, defaults_[current_defaults_], request_.place);
    return {};
  }

  Status finish_section() {
    if (!section_) return {};
    Section section = std::move(*section_);
    section_.reset();
    // A `listen` without servers sends to backends of its own.
    if (listen_ && !section.has_servers() && request_.pool.empty()) return {};
    Result<Draft> draft = section.settle();
    if (!draft) return std::unexpected(draft.error());
    drafts_.push_back(std::move(*draft));
    return {};
  }

  std::vector<Draft> take() { return std::move(drafts_); }

 private:
  Status begin(const Words& words) {
    if (Status done = finish_section(); !done) return done;
    const std::string& kind = words.front().text;
    in_defaults_ = kind == "defaults";
    if (in_defaults_) {
      current_defaults_ = words.size() > 1 && words[1].text != "from" ? words[1].text : "";
      Rules inherited;
      if (Status done = from(words, inherited); !done) return done;
      defaults_[current_defaults_] = inherited;
      latest_ = current_defaults_;
      return {};
    }
    if (kind != "backend" && kind != "listen") return {};
    if (words.size() < 2)
      return refuse(request_.place, words[0].mark, fmt::format("this {} has no name", kind));
    if (!request_.pool.empty() && words[1].text != request_.pool) return {};
    Rules rules = defaults_[latest_];
    if (Status done = from(words, rules); !done) return done;
    listen_ = kind == "listen";
    section_.emplace(words[1], rules, request_.place);
    return {};
  }

  // "backend NAME from DEFAULTS"
  Status from(const Words& words, Rules& rules) {
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      if (words[i].text != "from") continue;
      const auto found = defaults_.find(words[i + 1].text);
      if (found == defaults_.end())
        return refuse(request_.place, words[i + 1].mark,
                      fmt::format("there is no defaults {} before", shown(words[i + 1].text)));
      rules = found->second;
    }
    return {};
  }

  const Request& request_;
  std::map<std::string, Rules, std::less<>> defaults_;
  std::string current_defaults_, latest_;
  bool in_defaults_ = false, listen_ = false;
  std::optional<Section> section_;
  std::vector<Draft> drafts_;
};

}  // namespace

Drafts read_haproxy(std::string_view text, const Request& request) {
  File file(request);
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    if (Status done = file.line(text.substr(0, end), number); !done) return std::unexpected(done.error());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (Status done = file.finish_section(); !done) return std::unexpected(done.error());
  return file.take();
}

}  // namespace ringshift::importing
