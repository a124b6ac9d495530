// Consul: PUT /v1/agent/service/register with a TTL check, beats by check/pass and check/fail, maintenance
// while it drains. https://developer.hashicorp.com/consul/api-docs/agent/service and .../agent/check.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/catalog.h"
#include "base/log.h"
#include "discovery/http_ask.h"
#include "http/server.h"

namespace ringshift::agent {
namespace {

using discovery::HttpAsk;
using discovery::HttpReply;
using discovery::percent_encoded;
using std::chrono::milliseconds;

constexpr milliseconds kConsulTimeout{3000};
constexpr std::chrono::seconds kDeregisterLeast{60};  // Consul takes no shorter one.
constexpr std::size_t kMetaKeyBytes = 128, kMetaValueBytes = 512;
constexpr std::string_view kConsulFix = "give a token with service:write on this service by token_file";

// Consul's own rule for the names of a service's Meta.
bool fits_meta(std::string_view name, std::string_view value) {
  return !name.empty() && name.size() <= kMetaKeyBytes && value.size() <= kMetaValueBytes &&
         !name.starts_with("consul-") && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                  c == '_';
         });
}

class ConsulCatalog final : public Catalog {
 public:
  ConsulCatalog(discovery::Options options, std::chrono::seconds ttl)
      : options_(std::move(options)),
        ttl_(ttl),
        timeout_(options_.timeout.count() > 0 ? options_.timeout : kConsulTimeout),
        http_(options_.urls, options_.ca_file) {}

  Status put(const Record& record) override {
    const auto place = http::parse_host_port(record.address);
    if (!place) return std::unexpected(place.error());
    nlohmann::json meta = {{"protocol", record.protocol}};
    for (const auto& [name, value] : record.labels) {
      if (fits_meta(name, value)) {
        meta[name] = value;
      } else if (!warned_) {
        base::log(base::LogLevel::warning,
                  "agent: Consul's metadata does not take label '{}': letters, digits, - and _ alone", name);
      }
    }
    warned_ = true;
    nlohmann::json body = {{"ID", record.id},
                           {"Name", options_.service},
                           {"Address", place->host},
                           {"Port", place->port},
                           {"Meta", std::move(meta)},
                           {"Check",
                            {{"TTL", fmt::format("{}s", ttl_.count())},
                             {"DeregisterCriticalServiceAfter",
                              fmt::format("{}s", std::max(kDeregisterLeast, 4 * ttl_).count())}}}};
    if (!options_.tag.empty()) body["Tags"] = {options_.tag};
    if (const auto done = ask("/v1/agent/service/register?replace-existing-checks=true",
                              body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        !done)
      return std::unexpected(done.error());
    maintenance_ = std::nullopt;  // Consul keeps it, or has forgotten it.
    return {};
  }

  Result<bool> beat(const Record& record) override {
    // A drain first: the check may pass for as long as it lasts.
    const bool draining = record.state == State::draining;
    if (maintenance_ != draining) {
      const auto done =
          ask(fmt::format("/v1/agent/service/maintenance/{}?enable={}{}", percent_encoded(record.id),
                          draining, draining ? "&reason=draining" : ""),
              "");
      if (!done) return forgotten(done.error());
      maintenance_ = draining;
    }
    const bool sick = record.state == State::unhealthy;
    std::string path =
        fmt::format("/v1/agent/check/{}/service%3A{}", sick ? "fail" : "pass", percent_encoded(record.id));
    if (sick && !record.reason.empty()) path += "?note=" + percent_encoded(record.reason);
    if (const auto done = ask(path, ""); !done) return forgotten(done.error());
    return true;
  }

  Status remove(const Record& record) override {
    const auto done = ask("/v1/agent/service/deregister/" + percent_encoded(record.id), "");
    if (!done && done.error().kind != ErrorKind::not_found) return std::unexpected(done.error());
    return {};
  }

  milliseconds every() const override { return std::chrono::duration_cast<milliseconds>(ttl_) / 3; }
  std::string describe() const override {
    return fmt::format("Consul service {} at {}", options_.service, http_.url());
  }
  void cancel() override { http_.cancel(); }

 private:
  Result<HttpReply> ask(std::string path, std::string body) {
    http::Call call;
    call.method = "PUT";
    call.timeout = timeout_;
    call.body = std::move(body);
    if (!options_.token_file.empty()) {
      const auto token = discovery::read_secret(options_.token_file);
      if (!token) return std::unexpected(token.error());
      call.headers = {"X-Consul-Token: " + *token};
    }
    if (!options_.name_space.empty())
      path += (path.find('?') == std::string::npos ? "?ns=" : "&ns=") + percent_encoded(options_.name_space);
    auto reply = http_.ask(std::move(call), path);
    if (!reply || reply->status == 200) return reply;
    Error error = discovery::status_error(*reply, http_.url(), kConsulFix);
    // Older ones answer 500 for a check or a service that they do not know.
    if (reply->body.find("nknown check") != std::string::npos ||
        reply->body.find("nknown service") != std::string::npos)
      error.kind = ErrorKind::not_found;
    return std::unexpected(std::move(error));
  }

  static Result<bool> forgotten(const Error& error) {
    if (error.kind == ErrorKind::not_found) return false;
    return std::unexpected(error);
  }

  const discovery::Options options_;
  const std::chrono::seconds ttl_;
  const milliseconds timeout_;
  HttpAsk http_;
  std::optional<bool> maintenance_;  // As we last told it.
  bool warned_ = false;
};

}  // namespace

std::unique_ptr<Catalog> make_consul_catalog(discovery::Options options, std::chrono::seconds ttl) {
  return std::make_unique<ConsulCatalog>(std::move(options), ttl);
}

}  // namespace ringshift::agent
