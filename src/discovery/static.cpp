#include "discovery/static.h"

#include <fmt/format.h>

#include "base/retry_thread.h"
#include "discovery/instances.h"

namespace ringshift::discovery {
namespace {

class StaticSource final : public Source {
 public:
  explicit StaticSource(Options options) : options_(std::move(options)) {}

  Status start(Sink& sink) override {
    thread_.start([this, &sink] { Teller(sink).saw({options_.instances, {}}); });
    return {};
  }
  std::string describe() const override {
    return fmt::format("a list of {} instance{}", options_.instances.size(),
                       options_.instances.size() == 1 ? "" : "s");
  }

 private:
  const Options options_;
  base::RetryThread thread_{kRetryFirst, kRetryMax};
};

}  // namespace

std::unique_ptr<Source> make_static_source(Options options) {
  return std::make_unique<StaticSource>(std::move(options));
}

}  // namespace ringshift::discovery
