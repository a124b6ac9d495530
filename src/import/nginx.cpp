// `upstream` blocks of nginx, wherever they stand in a configuration.
//
// With `hash KEY consistent` nginx hashes each server as it is written: host and port apart, no port when
// none is written (though it then connects to port 80). Without `consistent` only order and weights count.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/encoding.h"
#include "import/draft.h"
#include "import/nginx_words.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

using topology::shown;
using Kind = NginxWord::Kind;

struct Method {
  std::string_view name, what;
};
// Directives that choose the server otherwise.
constexpr Method kMethods[] = {
    {"ip_hash", "places clients by their address, not keys"},
    {"least_conn", "sends a request to the least busy server"},
    {"least_time", "sends a request to the fastest server"},
    {"random", "sends a request to any server"},
    {"sticky", "binds clients to servers, not keys"},
    {"fair", "sends a request to the least busy server"},
};
struct Ignored {
  std::string_view name, why;
};
constexpr Ignored kIgnoredDirectives[] = {
    {"zone", "is nginx's own"},
    {"keepalive", "is not in a spec: each proxy thread keeps one pipelined connection a member"},
    {"keepalive_requests", "is not in a spec"},
    {"keepalive_time", "is not in a spec"},
    {"keepalive_timeout", "is not in a spec"},
    {"queue", "is not in a spec"},
    {"ntlm", "is not in a spec"},
    {"resolver", "is not in a spec: host names are resolved by the system"},
    {"resolver_timeout", "is not in a spec"},
    {"check", "is not in a spec: no member is ejected"},
};
constexpr Ignored kIgnoredParameters[] = {
    {"max_fails", "no member is ejected: keys that nginx sent elsewhere after failures stay there unread"},
    {"fail_timeout", "no member is ejected"},
    {"max_conns", "is not in a spec: each proxy thread keeps one connection a member"},
    {"slow_start", "is not in a spec"},
    {"route", "is not in a spec"},
    {"resolve", "the name is resolved by the system when the proxy connects"},
};

bool is_address(std::string_view host) {
  return host.starts_with('[') || host.find_first_not_of("0123456789.") == std::string_view::npos;
}

class Upstream {
 public:
  Upstream(Draft& draft, std::string_view place) : draft_(draft), place_(place) {
    draft_.spec.placement = peer_placement("nginx");
  }

  // One directive: its words, without what ends it.
  Status directive(const std::vector<NginxWord>& words) {
    const NginxWord& first = words.front();
    if (first.text == "server") return server(words);
    if (first.text == "hash") return hash(words);
    for (const Method& method : kMethods) {
      if (first.text != method.name) continue;
      return refuse(
          place_, first.mark,
          fmt::format("upstream {} uses {}, which {}: only `hash` gives a key an owner; choose the upstream "
                      "to import by --pool",
                      shown(draft_.source), first.text, method.what));
    }
    if (first.text == "include" || first.text == "state") {
      return refuse(place_, first.mark,
                    fmt::format("servers of upstream {} are in another file: put them in this one",
                                shown(draft_.source)));
    }
    const auto found = std::ranges::find(kIgnoredDirectives, first.text, &Ignored::name);
    if (found == std::end(kIgnoredDirectives)) {
      return refuse(
          place_, first.mark,
          fmt::format(
              "{} is not known in an upstream: remove it, if it does not decide which server has a key",
              shown(first.text)));
    }
    draft_.note(first.mark, joined(words), std::string(found->why));
    return {};
  }

  Status settle() {
    if (!hashed_) {
      return refuse(
          place_, draft_.mark,
          fmt::format("upstream {} has no `hash`, so its method is round robin, by which a key has no owner: "
                      "choose the upstream to import by --pool",
                      shown(draft_.source)));
    }
    return {};
  }

 private:
  static std::string joined(const std::vector<NginxWord>& words) {
    std::string out;
    for (const NginxWord& word : words) out += (out.empty() ? "" : " ") + word.text;
    return out;
  }

  Status hash(const std::vector<NginxWord>& words) {
    if (hashed_) return refuse(place_, words[0].mark, "hash is given twice: keep the last one");
    hashed_ = true;
    if (words.size() < 2) return refuse(place_, words[0].mark, "hash names no key: hash KEY [consistent]");
    if (words.size() > 3 || (words.size() == 3 && words[2].text != "consistent"))
      return refuse(
          place_, words[2].mark,
          fmt::format("{} is not known after hash KEY: consistent or nothing", shown(words[2].text)));
    const bool consistent = words.size() == 3;
    draft_.spec.placement.options["consistent"] = consistent ? "true" : "false";
    if (words[1].text != "$memcached_key") {
      draft_.note(
          words[1].mark, joined(words),
          fmt::format(
              "nginx hashed the value of {}; ringshift hashes the key that a client asks for. Owners are "
              "the same where the two are",
              words[1].text));
    }
    return {};
  }

  Status server(const std::vector<NginxWord>& words) {
    if (words.size() < 2) return refuse(place_, words[0].mark, "server names no address: server HOST:PORT");
    topology::Member member;
    if (Status done = endpoint(words[1], member); !done) return done;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (Status done = parameter(words[i], words[1], member); !done) return done;
    }
    draft_.member(words[1].mark, std::move(member));
    return {};
  }

  Status endpoint(const NginxWord& word, topology::Member& member) {
    const std::string_view text = word.text;
    if (text.starts_with("unix:")) {
      member.address = text;
      return {};
    }
    const auto bad = [&](std::string_view what) {
      return refuse(place_, word.mark,
                    fmt::format("server {} {}: write HOST:PORT, [V6]:PORT or unix:/path", shown(text), what));
    };
    if (text.find('$') != std::string_view::npos) return bad("has a variable in it");
    const auto colon = text.rfind(':');
    const bool has_port = colon != std::string_view::npos && !text.ends_with(']');
    const std::string_view host = text.substr(0, has_port ? colon : text.size());
    const std::string port = has_port ? plain_port(text.substr(colon + 1)) : "80";
    if (host.empty()) return bad("has no host");
    if (port.empty()) return bad("has no port from 1 to 65535 after the last colon");
    member.address = fmt::format("{}:{}", host, port);
    if (member.address != text) member.label = text;  // What nginx hashes.
    if (!has_port) draft_.note(word.mark, text, "has no port, which is port 80 to nginx");
    if (!is_address(host)) {
      draft_.note(word.mark, text,
                  "is taken as one server. If the name has several addresses, nginx spreads its keys over "
                  "all of them: "
                  "then write each address as a server of its own, and compare before you import");
    }
    return {};
  }

  Status parameter(const NginxWord& word, const NginxWord& server, topology::Member& member) {
    const auto equals = word.text.find('=');
    const std::string name = word.text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.text.substr(equals + 1);
    if (name == "weight") {
      const auto weight = base::parse_u64(value);
      if (!weight || *weight == 0)
        return refuse(place_, word.mark,
                      fmt::format("{} of server {}: a weight is a whole number above 0", shown(word.text),
                                  shown(server.text)));
      member.weight = static_cast<double>(*weight);
      return {};
    }
    if (name == "down" || name == "drain") {
      return refuse(
          place_, word.mark,
          fmt::format("server {} is {}: nginx gives its keys to others by rules that no placement can state. "
                      "Bring it up, or delete its line in nginx too and let the cache fill again",
                      shown(server.text), name));
    }
    if (name == "backup") {
      return refuse(place_, word.mark,
                    fmt::format("server {} is a backup, which nginx does not allow with hash: "
                                "delete its line",
                                shown(server.text)));
    }
    const auto found = std::ranges::find(kIgnoredParameters, name, &Ignored::name);
    if (found == std::end(kIgnoredParameters)) {
      return refuse(
          place_, word.mark,
          fmt::format("{} of server {} is not known: remove it, if it does not decide which server has a key",
                      shown(word.text), shown(server.text)));
    }
    draft_.note(word.mark, fmt::format("{} of {}", word.text, server.text), std::string(found->why));
    return {};
  }

  Draft& draft_;
  std::string_view place_;
  bool hashed_ = false;
};

class File {
 public:
  File(std::string_view text, const Request& request) : words_(text), request_(request) {}

  Drafts read() {
    std::vector<NginxWord> statement;
    std::vector<Mark> open;
    while (true) {
      const Result<NginxWord> word = words_.next(request_.place);
      if (!word) return std::unexpected(word.error());
      if (word->kind == Kind::end) {
        if (!open.empty()) return refuse(request_.place, open.back(), "this { is not closed");
        break;
      }
      if (word->kind == Kind::word) {
        statement.push_back(*word);
        continue;
      }
      if (word->kind == Kind::close) {
        if (open.empty()) return refuse(request_.place, word->mark, "this } closes nothing");
        open.pop_back();
      } else if (word->kind == Kind::open && statement.size() == 2 && statement[0].text == "upstream") {
        if (Status done = upstream(statement[1]); !done) return std::unexpected(done.error());
      } else if (word->kind == Kind::open) {
        open.push_back(word->mark);
        if (!statement.empty() && statement.back().text.ends_with("_by_lua_block")) {
          words_.skip_block();
          open.pop_back();
        }
      } else if (statement.size() >= 2 && statement[0].text == "memcached_pass") {
        memcached_.insert(statement[1].text);
      }
      statement.clear();
    }
    for (Draft& draft : drafts_) protocol(draft);
    return std::move(drafts_);
  }

 private:
  Status upstream(const NginxWord& name) {
    const bool wanted = request_.pool.empty() || name.text == request_.pool;
    Draft draft;
    draft.source = name.text;
    draft.mark = name.mark;
    Upstream reader(draft, request_.place);
    std::vector<NginxWord> statement;
    while (true) {
      const Result<NginxWord> word = words_.next(request_.place);
      if (!word) return std::unexpected(word.error());
      if (word->kind == Kind::word) {
        statement.push_back(*word);
        continue;
      }
      if (word->kind == Kind::end)
        return refuse(request_.place, name.mark, "the { of this upstream is not closed");
      if (word->kind == Kind::open) {
        if (!statement.empty() && statement.back().text.ends_with("_by_lua_block"))
          return refuse(request_.place, statement.back().mark,
                        "a program chooses the server here: no placement states that");
        return refuse(request_.place, word->mark, "a block within an upstream is not known");
      }
      if (word->kind == Kind::close && !statement.empty())
        return refuse(request_.place, statement.back().mark, "this directive is not ended by ;");
      if (word->kind == Kind::close) break;
      if (wanted && !statement.empty()) {
        if (Status done = reader.directive(statement); !done) return done;
      }
      statement.clear();
    }
    if (!wanted) return {};
    if (Status done = reader.settle(); !done) return done;
    drafts_.push_back(std::move(draft));
    return {};
  }

  // An upstream does not say what its servers speak.
  void protocol(Draft& draft) const {
    const bool usual_port = std::ranges::all_of(draft.spec.members, [](const topology::Member& member) {
      return member.address.ends_with(":11211");
    });
    const bool passed = memcached_.contains(draft.source);
    const bool memcached = passed || usual_port;
    draft.protocol(memcached ? topology::Protocol::memcached : topology::Protocol::redis);
    draft.note(draft.mark, draft.source,
               passed       ? "memcached_pass names it: protocol memcached"
               : usual_port ? "all servers have port 11211: protocol memcached is assumed"
                            : "an upstream does not say what its servers speak: protocol redis is assumed");
  }

  NginxWords words_;
  const Request& request_;
  std::vector<Draft> drafts_;
  std::set<std::string, std::less<>> memcached_;
};

}  // namespace

Drafts read_nginx(std::string_view text, const Request& request) { return File(text, request).read(); }

}  // namespace ringshift::importing
