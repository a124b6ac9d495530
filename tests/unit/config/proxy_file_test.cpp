// The proxy's file: the documentation's example, and every error with its place.
#include "config/proxy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

namespace ringshift::config {
namespace {

using proxy::LimitRule;
using testing::HasSubstr;
using testing::StartsWith;

Result<std::string> no_files(const std::string& path) {
  return fail(ErrorKind::not_found, path + ": not there");
}

Result<std::string> users_acl(const std::string& path) {
  if (path != "/etc/rs/users.acl") return no_files(path);
  return std::string("# more\nuser guest on nopass ~guest:* +get\n");
}

Result<ProxyFile> parse(std::string_view text, const ReadFile& read = no_files) {
  return parse_proxy_file(text, "/etc/rs/proxy.yaml", read);
}

// The error without the file's name.
std::string error_of(std::string_view text, const ReadFile& read = no_files) {
  const auto file = parse(text, read);
  if (file) return "(no error)";
  const std::string& message = file.error().message;
  EXPECT_THAT(message, StartsWith("/etc/rs/proxy.yaml:"));
  return message.substr(std::string("/etc/rs/proxy.yaml:").size());
}

TEST(ProxyFile, TheDocumentationsExample) {
  std::ifstream in(RINGSHIFT_SOURCE_DIR "/docs/proxy.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = text.find("```yaml\n") + 8;
  const auto file = parse(text.substr(begin, text.find("```", begin) - begin), users_acl);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->listen, (std::vector<std::string>{"127.0.0.1:6380", "unix:/run/ringshift/proxy.sock"}));
  EXPECT_EQ(file->threads, 4U);
  EXPECT_EQ(file->id, "edge-1");
  EXPECT_EQ(file->allow_flush, false);
  EXPECT_EQ(file->slow_log, std::chrono::milliseconds(0));
  EXPECT_TRUE(file->rules.protected_mode);
  EXPECT_EQ(file->hold_timeout, std::chrono::seconds(10));
  EXPECT_EQ(file->max_in_flight, 1024U);
  ASSERT_EQ(file->clusters.size(), 2U);
  EXPECT_EQ(file->clusters[0].spec, "/etc/rs/pages.yaml");
  EXPECT_EQ(file->clusters[1].name_there, "orders-eu");
  const access::Users& users = file->rules.users;
  EXPECT_FALSE(users.default_user().enabled());
  EXPECT_NE(users.authenticate("reports", "a password with spaces"), nullptr);
  EXPECT_NE(users.authenticate("shop", "correct-horse"), nullptr);
  EXPECT_NE(users.find("guest"), nullptr);
  EXPECT_EQ(file->rules.routes.cluster_of("order:1"), 1U);
  EXPECT_EQ(file->rules.routes.cluster_of("page:1"), 0U);
  EXPECT_EQ(file->rules.user_routes.at("tenant").cluster_of("order:1"), 0U);
  ASSERT_EQ(file->rules.limits.size(), 5U);
  EXPECT_EQ(file->rules.limits[0].burst, 100);
  EXPECT_EQ(file->rules.limits[4].scope, LimitRule::Scope::cluster);
  EXPECT_EQ(file->rules.limits[4].burst_bytes, 50000000);
}

TEST(ProxyFile, SaysNothingItWasNotTold) {
  const auto file = parse("threads: 2\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->listen.empty() && file->clusters.empty() && !file->id && !file->max_clients);
  EXPECT_FALSE(file->rules.users.restrict());
  EXPECT_EQ(file->rules.routes.cluster_of("any"), 0U);
}

const std::string kTwo = "clusters: [{name: a, spec: a.yaml}, {name: beta, spec: b.yaml}]\n";

TEST(ProxyFile, EveryErrorHasItsPlace) {
  struct Case {
    std::string text, error;
  };
  const Case cases[] = {
      {"threads: 1\nlisten: [\n", "3:1: not YAML: "},
      {"- a\n", "1:1: the file is not a map of listen, threads"},
      {"threads: 1\n  listn: x\n", "2:"},
      {"listn: x\n", "1:1: the file has no field 'listn'; did you mean 'listen'?"},
      {"zzz: x\n", "1:1: the file has no field 'zzz'; it has listen, threads"},
      {"listen: []\n", "1:9: listen names no address"},
      {"listen: nowhere\n", "1:9: listen: "},
      {"listen: {a: 1}\n", "1:9: listen is not a text"},
      {"threads: many\n", "1:10: threads is 'many', not a whole number from 0 to 256"},
      {"threads: 257\n", "1:10: threads is '257'"},
      {"allow_flush: maybe\n", "1:14: allow_flush is 'maybe', neither true nor false"},
      {"timeouts: {request_m: 5}\n", "1:12: timeouts has no field 'request_m'; did you mean 'request_ms'?"},
      {"timeouts:\n  connect_ms: 0\n", "2:15: connect_ms is '0', not a whole number from 1 to 3600000"},
      {"bounds:\n  clients: -1\n", "2:12: clients is '-1'"},
      {"bounds: 5\n", "1:9: bounds is not a map of clients"},
      {"tls: {cert: x}\n", "1:6: tls: certificates are named by flags"},
      {"listen: ['127.0.0.1:1', '127.0.0.1:1']\n", "1:9: listen: 127.0.0.1:1 is there twice"},
      {"id: 'a b'\n", "1:5: id: members see it"},
      {"id: \"a\\nb\"\n", "1:5: id: members see it"},
      {"handover: ''\n", "1:11: handover: "},
      {"handover: /" + std::string(120, 'x') + "\n", "1:11: handover: "},
      {"clusters: [{name: a, registry: nonsense}]\n", "1:12: registry: 'nonsense' is no URL"},
      {kTwo + "routes: []\n", "2:9: routes: without any"},
      {"users: {a: b}\n", "1:8: users is not a list"},
      {"users:\n  - {name: al}\n", "2:5: a user has a name and rules, or else it is a file"},
      {"users:\n  - {name: al, rule: on}\n", "2:16: a user has no field 'rule'; did you mean 'rules'?"},
      {"users:\n  - {name: al, rules: \"on +gett\"}\n", "2:23: rule '+gett': unknown command or category"},
      {"users:\n  - {name: al, rules: \"(~x\"}\n", "2:23: rule '(~x': its parenthesis is not closed"},
      {"users:\n  - {name: al, rules: on}\n  - {name: al, rules: on}\n", "3:12: user 'al' is there already"},
      {"users: [{file: none.acl}]\n", "1:16: /etc/rs/none.acl: not there"},
      {"clusters: []\n", "1:11: clusters names none"},
      {"clusters: [{name: a}]\n", "1:12: a cluster has either a spec (a file) or a registry"},
      {"clusters: [{spec: a.yaml}]\n", "1:12: a cluster has no name"},
      {"clusters: [{name: a, spec: x, registry: y}]\n", "1:12: a cluster has either"},
      {"clusters: [{name: a, spec: x, namespace: y}]\n", "1:12: namespace and cluster are of a registry"},
      {"clusters: [{name: a, spec: x}, {name: a, spec: y}]\n", "1:32: cluster 'a' is there already"},
      {kTwo, "1:1: there are several clusters: say by routes"},
      {kTwo + "routes: [{prefix: x}]\n", "2:10: a route has no cluster"},
      {kTwo + "routes: [{cluster: bet}]\n", "2:20: there is no cluster 'bet'; did you mean 'beta'?"},
      {kTwo + "routes: [{cluster: a, user: al}]\n", "2:29: there is no user 'al'"},
      {kTwo + "routes: [{cluster: a}, {cluster: beta}]\n", "2:24: prefix '' has a route already"},
      {kTwo + "routes: [{cluster: a, user: [default, default]}]\n",
       "2:10: prefix '' has a route already for user 'default'"},
      {"limits: [{user: \"*\"}]\n", "1:10: a limit has requests_per_second, bytes_per_second, or both"},
      {"limits: [{requests_per_second: 5}]\n", "1:10: a limit is for one of these: user, client"},
      {"limits: [{user: default, client: true, requests_per_second: 5}]\n", "1:10: a limit is for one of"},
      {"limits: [{user: nobody, requests_per_second: 5}]\n", "1:17: there is no user 'nobody'"},
      {"limits: [{client: false, requests_per_second: 5}]\n", "1:19: client: true is for each connection"},
      {"limits: [{client: true, requests_per_second: 0}]\n",
       "1:46: requests_per_second is '0', not a number"},
      {"limits: [{client: true, requests_per_second: nan}]\n", "1:46: requests_per_second is 'nan'"},
      {"limits: [{client: true, bytes_per_second: 1, burst: 1}]\n", "1:10: burst is of requests_per_second"},
      {"limits: [{cluster: x, requests_per_second: 1}]\n", "1:20: there is no cluster 'x'"},
      {"limits:\n- {prefix: x, requests_per_second: 1}\n- {prefix: x, requests_per_second: 2}\n",
       "3:3: there is a limit for the same already"},
  };
  for (const Case& c : cases) EXPECT_THAT(error_of(c.text), StartsWith(c.error)) << c.text;
}

TEST(ProxyFile, ErrorsInAFileOfUsersNameBothPlaces) {
  const auto broken = [](const std::string&) -> Result<std::string> { return "user a on\nuser b +nope\n"; };
  EXPECT_EQ(error_of("users: [{file: /x/users}]\n", broken),
            "1:16: /x/users:2: user 'b': rule '+nope': unknown command or category");
  const auto twice = [](const std::string&) -> Result<std::string> { return "user al on\n"; };
  EXPECT_THAT(error_of("users:\n  - {name: al, rules: on}\n  - file: u\n", twice),
              HasSubstr("3:11: /etc/rs/u: user 'al' is there already"));
}

}  // namespace
}  // namespace ringshift::config
