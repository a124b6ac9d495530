#include "discovery/dns.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "base/retry_thread.h"
#include "discovery/dns_query.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDnsTimeout{2000};
// An empty answer is looked at again soon: it may be a mistake that somebody mends.
constexpr milliseconds kAbsentLook{5000};

class DnsSource final : public Source {
 public:
  explicit DnsSource(Options options)
      : options_(std::move(options)),
        port_(static_cast<std::uint16_t>(base::parse_u64(options_.port).value_or(0))),
        most_(options_.poll.count() > 0 ? options_.poll : kTtlMost),
        query_(options_.servers, options_.timeout.count() > 0 ? options_.timeout : kDnsTimeout) {}
  ~DnsSource() override {
    thread_.stop([this] { query_.cancel(); });
  }
  DnsSource(const DnsSource&) = delete;
  DnsSource& operator=(const DnsSource&) = delete;

  Status start(Sink& sink) override {
    thread_.start([this, &sink] { run(sink); });
    return {};
  }
  std::string describe() const override {
    return port_ == 0 ? fmt::format("DNS {} {}", options_.record, options_.name)
                      : fmt::format("DNS {} {}:{}", options_.record, options_.name, port_);
  }

 private:
  void run(Sink& sink) {
    Teller teller(sink);
    while (!thread_.stopping()) {
      const Result<DnsAnswer> answer = look();
      if (thread_.stopping()) return;
      if (!answer) {
        teller.trouble(answer.error());
        thread_.back_off();
        continue;
      }
      thread_.done();
      const bool absent = answer->addresses.empty() && answer->services.empty();
      teller.saw(dns_instances(*answer, port_));
      thread_.wait(absent ? std::min(most_, kAbsentLook)
                          : std::clamp<milliseconds>(answer->ttl, std::min(kTtlLeast, most_), most_));
    }
  }

  std::vector<RecordType> types() const {
    if (options_.record == "srv") return {RecordType::srv};
    if (options_.record == "a") return {RecordType::a};
    if (options_.record == "aaaa") return {RecordType::aaaa};
    return {RecordType::a, RecordType::aaaa};
  }

  Result<DnsAnswer> look() {
    DnsAnswer all;
    bool any = false;
    for (const RecordType type : types()) {
      const Result<std::string> bytes = query_.ask(options_.name, type);
      if (!bytes) return std::unexpected(bytes.error());
      if (bytes->empty()) continue;
      const Result<DnsAnswer> part = parse_dns_answer(*bytes, type);
      if (!part) return part;
      if (part->addresses.empty() && part->services.empty()) continue;
      all.ttl = any ? std::min(all.ttl, part->ttl) : part->ttl;
      any = true;
      all.addresses.insert(all.addresses.end(), part->addresses.begin(), part->addresses.end());
      all.services.insert(all.services.end(), part->services.begin(), part->services.end());
    }
    return all;
  }

  const Options options_;
  const std::uint16_t port_;
  const milliseconds most_;
  DnsQuery query_;
  base::RetryThread thread_{kRetryFirst, kRetryMax};  // Last: its thread uses all above.
};

}  // namespace

std::unique_ptr<Source> make_dns_source(Options options) {
  return std::make_unique<DnsSource>(std::move(options));
}

}  // namespace ringshift::discovery
