#include "discovery/static.h"

#include <fmt/format.h>

#include "discovery/instances.h"
#include "discovery/loop.h"

namespace ringshift::discovery {
namespace {

class StaticSource final : public Source {
 public:
  explicit StaticSource(Options options) : options_(std::move(options)) {}

  Status start(Sink& sink) override {
    loop_.start([this, &sink] { Teller(sink).saw({options_.instances, {}}); });
    return {};
  }
  std::string describe() const override {
    return fmt::format("a list of {} instance{}", options_.instances.size(),
                       options_.instances.size() == 1 ? "" : "s");
  }

 private:
  const Options options_;
  Loop loop_;
};

}  // namespace

std::unique_ptr<Source> make_static_source(Options options) {
  return std::make_unique<StaticSource>(std::move(options));
}

}  // namespace ringshift::discovery
