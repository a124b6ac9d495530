#include "import/haproxy_rules.h"

#include "import/draft.h"

namespace ringshift::importing {
namespace {

// These send a request past the hash.
constexpr std::string_view kOverrides =
    "use-server stick cookie dispatch appsession server-template use_backend transparent ";

// These do not decide which server a key has.
constexpr std::string_view kIgnored =
    "acl backlog bind capture clitcpka-cnt clitcpka-idle clitcpka-intvl compression declare "
    "default_backend description email-alert enabled errorfile errorfiles errorloc errorloc302 "
    "errorloc303 external-check filter force-be-switch force-persist fullconn guid "
    "hash-preserve-affinity http-after-response http-check http-error http-request http-response "
    "http-reuse http-send-name-header id ignore-persist load-server-state-from-file log log-format "
    "log-format-sd log-tag max-keep-alive-queue max-session-srv-conns maxconn mode monitor "
    "monitor-uri option persist rate-limit redirect retries retry-on server-state-file-name source "
    "srvtcpka-cnt srvtcpka-idle srvtcpka-intvl stats stick-table tcp-check tcp-request tcp-response "
    "timeout unique-id-format unique-id-header errorlog no ";

std::string_view why(const HaproxyLine& words) {
  const std::string& first = words[0].text;
  if (first == "bind")
    return "is where HAProxy listened: give it to ringshift as --listen, once HAProxy is stopped";
  if (first == "timeout") return "is not in a spec: `ringshift proxy --request-timeout-ms` bounds a request";
  if (first == "retries" || (words.size() > 1 && words[1].text == "redispatch"))
    return "no request is sent to another member: keys that HAProxy redispatched stay where they are, "
           "unread";
  if (first == "load-server-state-from-file" || first == "server-state-file-name")
    return "weights and states in that file win over these lines in HAProxy: see that they are the same";
  return "is not in a spec";
}

}  // namespace

bool listed(std::string_view list, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  for (auto at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    if ((at == 0 || list[at - 1] == ' ') && list.substr(at + word.size()).starts_with(' ')) return true;
  }
  return false;
}

std::string joined(const HaproxyLine& words) {
  std::string out;
  for (const HaproxyWord& word : words) out += (out.empty() ? "" : " ") + word.text;
  return out;
}

Status read_haproxy_rule(const HaproxyLine& words, HaproxyRules& rules, std::string_view place) {
  const std::string& first = words.front().text;
  if (first == "balance") {
    rules.balance = words;
  } else if (first == "hash-type") {
    rules.hash_type = words;
  } else if (first == "hash-balance-factor") {
    rules.balance_factor = words;
  } else if (first == "default-server") {
    // Options add up over several lines.
    auto& options = rules.default_server;
    options.insert(options.end(), words.begin() + 1, words.end());
    constexpr std::size_t kMaxOptions = 200;
    if (options.size() > kMaxOptions)
      return refuse(place, words.front().mark, "more options than HAProxy has");
  } else if (first == "disabled") {
    rules.disabled = true;
  } else if (listed(kOverrides, first)) {
    rules.past_hash = words.front();
  } else if (!listed(kIgnored, first)) {
    rules.unknown = words.front();
  } else {
    if (words.size() > 1 && first == "option" && words[1].text == "redis-check") rules.redis = true;
    if (words.size() > 1 && first == "option" && words[1].text == "transparent")
      rules.past_hash = words.front();
    if (rules.notes.size() <= kMaxNotes)
      rules.notes.push_back({words.front().mark, joined(words), std::string(why(words))});
  }
  return {};
}

}  // namespace ringshift::importing
