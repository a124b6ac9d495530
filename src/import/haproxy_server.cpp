#include "import/haproxy_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "import/haproxy_rules.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

using topology::shown;

// Options that say nothing of where a key lies: those with a value after them, and those without.
constexpr std::string_view kValued =
    "addr agent-addr agent-inter agent-port agent-send alpn ca-file check-alpn check-proto check-sni "
    "ciphers ciphersuites cookie crl-file crt downinter error-limit fall fastinter guid init-addr "
    "init-state inter interface log-bufsize log-proto maxconn maxqueue max-reuse minconn namespace "
    "npn observe on-error on-marked-down on-marked-up pool-low-conn pool-max-conn pool-purge-delay "
    "port proto resolve-net resolve-opts resolve-prefer resolvers rise shard slowstart sni socks4 "
    "source ssl-max-ver ssl-min-ver tcp-ut track verify verifyhost ws usesrc ";
constexpr std::string_view kBare =
    "agent-check allow-0rtt check check-send-proxy check-ssl check-via-socks4 enabled force-sslv3 "
    "force-tlsv10 force-tlsv11 force-tlsv12 force-tlsv13 non-stick send-proxy send-proxy-v2 "
    "send-proxy-v2-ssl send-proxy-v2-ssl-cn ssl ssl-reuse stick tfo tls-tickets verify-none ";

std::string_view why(std::string_view option) {
  if (option == "ssl") return "the proxy speaks to members without TLS";
  if (option.starts_with("send-proxy")) return "the proxy sends no PROXY header: turn it off at the server";
  if (option == "check" || option == "observe" || option == "agent-check")
    return "no member is ejected: keys that HAProxy sent elsewhere while a server was down stay there unread";
  return "is not in a spec";
}

Status refuse_option(const HaproxyWord& word, std::string_view place) {
  return refuse(
      place, word.mark,
      fmt::format("{} is not known as an option of a server: remove it, if it does not decide which server "
                  "has a key",
                  shown(word.text)));
}

}  // namespace

Status read_haproxy_options(std::span<const HaproxyWord> words, HaproxyServer& server, Draft& draft,
                            std::string_view place) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const HaproxyWord& word = words[i];
    const bool last = i + 1 == words.size();
    const auto value = [&]() -> std::string_view { return words[i + 1].text; };
    const auto is = [&](std::string_view name) { return word.text == name; };
    if (is("disabled") || is("backup")) {
      (is("disabled") ? server.disabled : server.backup) = true;
    } else if (is("enabled") || is("no-backup") || is("no-disabled")) {
      (is("no-backup") ? server.backup : server.disabled) = false;
    } else if (is("weight") || is("id") || is("hash-key") || listed(kValued, word.text)) {
      if (last) return refuse(place, word.mark, fmt::format("{} needs a value after it", word.text));
      const auto number = base::parse_u64(value());
      if (is("weight")) {
        if (!number || *number > 256)
          return refuse(place, words[i + 1].mark,
                        fmt::format("weight {} is not from 0 to 256", shown(value())));
        server.weight = *number;
      } else if (is("id")) {
        constexpr std::uint64_t kMaxId = 0x7fffffff;
        if (!number || *number == 0 || *number > kMaxId)
          return refuse(place, words[i + 1].mark,
                        fmt::format("id {} is not from 1 to {}", shown(value()), kMaxId));
        server.id = *number;
      } else if (is("hash-key") && value() != "id") {
        return refuse(
            place, word.mark,
            fmt::format("hash-key {}: only hash-key id, which every HAProxy has, is known", shown(value())));
      } else if (!is("hash-key")) {
        draft.note(word.mark, fmt::format("{} {} of {}", word.text, value(), server.name.text),
                   std::string(why(word.text)));
      }
      ++i;
    } else if (listed(kBare, word.text) || word.text.starts_with("no-")) {
      draft.note(word.mark, fmt::format("{} of {}", word.text, server.name.text),
                 std::string(why(word.text)));
    } else {
      return refuse_option(word, place);
    }
  }
  return {};
}

Status read_haproxy_server(std::span<const HaproxyWord> words, HaproxyServer& server, Draft& draft,
                           std::string_view place) {
  if (words.size() < 3)
    return refuse(place, words[0].mark, "a server has a name and an address: server NAME HOST:PORT");
  server.name = words[1];
  server.mark = words[0].mark;
  std::string_view text = words[2].text;
  const auto bad = [&](std::string_view what) {
    return refuse(
        place, words[2].mark,
        fmt::format("address {} {}: write HOST:PORT, [V6]:PORT or unix@/path", shown(words[2].text), what));
  };
  if (text.find('$') != std::string_view::npos) return bad("has a variable of the environment in it");
  if (text.starts_with("unix@")) text.remove_prefix(5);
  if (text.starts_with("ipv4@") || text.starts_with("ipv6@") || text.starts_with("tcp4@") ||
      text.starts_with("tcp6@"))
    text.remove_prefix(5);
  if (text.find('@') != std::string_view::npos) return bad("is of a kind that is not known here");
  if (text.starts_with('/')) {
    server.address = "unix:" + std::string(text);
  } else {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || text.ends_with(']')) return bad("has no port");
    if (text[std::min(colon + 1, text.size() - 1)] == '+' ||
        text[std::min(colon + 1, text.size() - 1)] == '-')
      return bad("has a port relative to the client's");
    const std::string port = plain_port(text.substr(colon + 1));
    if (port.empty() || colon == 0) return bad(port.empty() ? "has no port from 1 to 65535" : "has no host");
    server.address = address_of(text.substr(0, colon), port);
  }
  return read_haproxy_options(words.subspan(3), server, draft, place);
}

}  // namespace ringshift::importing
