// Nacos: an ephemeral instance by POST /v1/ns/instance, and beats. Nacos judges by beats alone, so what is
// there and not well is taken out of use (enabled=false) and says so in its metadata.
// https://nacos.io/en/docs/open-api.html
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/catalog.h"
#include "base/log.h"
#include "discovery/nacos.h"
#include "discovery/nacos_session.h"
#include "http/server.h"

namespace ringshift::agent {
namespace {

using discovery::percent_encoded;
using std::chrono::milliseconds;

// Nacos calls an instance unhealthy 15 s after its last beat, and drops it after 30.
constexpr milliseconds kBeat{5000}, kBeatLeast{1000};
constexpr int kBeatUnknown = 20404;
constexpr std::string_view kReserved = "preserved.";  // Metadata that rules Nacos itself.

// What a label says need be no UTF-8.
std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class NacosCatalog final : public Catalog {
 public:
  explicit NacosCatalog(discovery::Options options)
      : options_(std::move(options)),
        session_(options_.urls, options_.ca_file, options_.auth_file,
                 options_.timeout.count() > 0 ? options_.timeout : discovery::kNacosTimeout) {}

  Status put(const Record& record) override { return tell("POST", record); }

  Result<bool> beat(const Record& record) override {
    if (told_ != words_of(record)) {
      if (const Status told = tell("PUT", record); !told) return std::unexpected(told.error());
    }
    const auto place = http::parse_host_port(record.address);
    if (!place) return std::unexpected(place.error());
    const nlohmann::json words = {{"serviceName", group() + "@@" + options_.service},
                                  {"ip", place->host},
                                  {"port", place->port},
                                  {"cluster", cluster()},
                                  {"weight", 1.0},
                                  {"scheduled", true},
                                  {"metadata", metadata(record)}};
    const auto reply = session_.ask("PUT", "/v1/ns/instance/beat",
                                    form(record) + "&beat=" + percent_encoded(text_of(words)));
    if (!reply) return std::unexpected(reply.error());
    const auto answer = nlohmann::json::parse(reply->body, nullptr, false);
    if (!answer.is_object()) return fail(ErrorKind::retryable, "Nacos's answer to a beat is none");
    const auto number = [&](const char* name) {
      const auto found = answer.find(name);
      return found != answer.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
    };
    if (const auto interval = number("clientBeatInterval"); interval > 0)
      every_ = std::clamp(milliseconds(interval), kBeatLeast, kBeat);
    return number("code") != kBeatUnknown;
  }

  Status remove(const Record& record) override {
    const auto done = session_.ask("DELETE", "/v1/ns/instance?" + form(record));
    if (!done && done.error().kind != ErrorKind::not_found) return std::unexpected(done.error());
    return {};
  }

  milliseconds every() const override { return every_; }
  std::string describe() const override {
    return fmt::format("Nacos service {}@@{} at {}", group(), options_.service, options_.urls.front());
  }
  void cancel() override { session_.cancel(); }

 private:
  std::string group() const { return options_.group.empty() ? "DEFAULT_GROUP" : options_.group; }
  std::string cluster() const { return options_.clusters.empty() ? "DEFAULT" : options_.clusters.front(); }

  nlohmann::json metadata(const Record& record) {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [name, value] : record.labels) {
      if (!name.starts_with(kReserved)) {
        out[name] = value;
      } else if (!warned_) {
        base::log(base::LogLevel::warning, "agent: label '{}' would rule Nacos itself: not told there", name);
      }
    }
    warned_ = true;
    out["id"] = record.id;
    out["protocol"] = record.protocol;
    if (record.state != State::ready) out[std::string(discovery::kNacosState)] = name(record.state);
    return out;
  }

  // Which instance of which service.
  std::string form(const Record& record) const {
    const auto place = http::parse_host_port(record.address);
    std::string out =
        fmt::format("serviceName={}&groupName={}&clusterName={}&ephemeral=true&ip={}&port={}",
                    percent_encoded(options_.service), percent_encoded(group()), percent_encoded(cluster()),
                    percent_encoded(place ? place->host : ""), place ? place->port : 0);
    if (!options_.name_space.empty()) out += "&namespaceId=" + percent_encoded(options_.name_space);
    return out;
  }

  // Everything that a change of makes another telling.
  std::string words_of(const Record& record) {
    return fmt::format("{}&weight=1&healthy=true&enabled={}&metadata={}", form(record),
                       record.state == State::ready, percent_encoded(text_of(metadata(record))));
  }

  Status tell(std::string_view method, const Record& record) {
    std::string words = words_of(record);
    const auto done = session_.ask(method, "/v1/ns/instance", words);
    if (!done) return std::unexpected(done.error());
    told_ = std::move(words);
    return {};
  }

  const discovery::Options options_;
  discovery::NacosSession session_;
  milliseconds every_{kBeat};
  std::string told_;
  bool warned_ = false;
};

}  // namespace

std::unique_ptr<Catalog> make_nacos_catalog(discovery::Options options) {
  return std::make_unique<NacosCatalog>(std::move(options));
}

}  // namespace ringshift::agent
