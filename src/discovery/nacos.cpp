#include "discovery/nacos.h"

#include <fmt/format.h>

#include "base/retry_thread.h"
#include "discovery/http_ask.h"
#include "discovery/nacos_session.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNacosPoll{3000};

class NacosSource final : public Source {
 public:
  explicit NacosSource(Options options)
      : options_(std::move(options)),
        poll_(options_.poll.count() > 0 ? options_.poll : kNacosPoll),
        session_(options_.urls, options_.ca_file, options_.auth_file,
                 options_.timeout.count() > 0 ? options_.timeout : kNacosTimeout) {}
  ~NacosSource() override {
    thread_.stop([this] { session_.cancel(); });
  }
  NacosSource(const NacosSource&) = delete;
  NacosSource& operator=(const NacosSource&) = delete;

  Status start(Sink& sink) override {
    thread_.start([this, &sink] { run(sink); });
    return {};
  }
  std::string describe() const override {
    return fmt::format("Nacos service {}@@{} at {}", group(), options_.service,
                       fmt::join(options_.urls, ", "));
  }

 private:
  std::string group() const { return options_.group.empty() ? "DEFAULT_GROUP" : options_.group; }

  void run(Sink& sink) {
    Teller teller(sink);
    while (!thread_.stopping()) {
      auto seen = look();
      if (thread_.stopping()) return;
      if (!seen) {
        teller.trouble(seen.error());
        thread_.back_off();
        continue;
      }
      thread_.done();
      teller.saw(*std::move(seen));
      thread_.wait(poll_);
    }
  }

  std::string path() const {
    std::string path = fmt::format("/{}/ns/instance/list?serviceName={}&groupName={}&healthyOnly=false",
                                   options_.api.empty() ? "v1" : options_.api,
                                   percent_encoded(options_.service), percent_encoded(group()));
    if (!options_.name_space.empty()) path += "&namespaceId=" + percent_encoded(options_.name_space);
    if (!options_.clusters.empty()) {
      const std::string_view parameter = options_.api == "v2" ? "clusterName" : "clusters";
      path += fmt::format("&{}={}", parameter,
                          percent_encoded(fmt::format("{}", fmt::join(options_.clusters, ","))));
    }
    return path;
  }

  Result<Seen> look() {
    auto reply = session_.ask("GET", path());
    if (!reply) return std::unexpected(std::move(reply.error()));
    return parse_nacos_list(reply->body, options_);
  }

  const Options options_;
  const milliseconds poll_;
  NacosSession session_;

  base::RetryThread thread_{kRetryFirst, kRetryMax};  // Last: its thread uses all above.
};

}  // namespace

std::unique_ptr<Source> make_nacos_source(Options options) {
  return std::make_unique<NacosSource>(std::move(options));
}

}  // namespace ringshift::discovery
