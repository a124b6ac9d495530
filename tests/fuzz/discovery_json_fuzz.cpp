// Any text as an answer of Consul, Nacos or Kubernetes, or as an agent's record; the first byte says whose.
// What comes out is instances within their bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "discovery/consul.h"
#include "discovery/kubernetes.h"
#include "discovery/nacos.h"
#include "discovery/registry.h"

namespace {

using namespace ringshift::discovery;  // NOLINT(google-build-using-namespace)

void expect_sound(const Seen& seen) {
  if (seen.left_out.size() > Seen::kToldMax) std::abort();
  for (const Instance& instance : seen.all)
    if (!check_instance(instance).empty() || instance.labels.size() > kLabelsMax) std::abort();
}

const Options& options_of(const char* kind) {
  static const auto make = [](const char* name, Fields fields) {
    fields["service"] = "cache";
    return *read_options(name, fields);
  };
  static const Options kConsul = make("consul", {{"id_label", "id"}}),
                       kNacos = make("nacos", {{"id_label", "id"}}), kKubernetes = make("kubernetes", {});
  return *kind == 'c' ? kConsul : *kind == 'n' ? kNacos : kKubernetes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 6) {
    case 0:
      if (const auto seen = parse_consul_health(text, options_of("consul"))) expect_sound(*seen);
      break;
    case 1:
      if (const auto seen = parse_nacos_list(text, options_of("nacos"))) expect_sound(*seen);
      break;
    case 2:
      if (const auto token = parse_nacos_login(text); token && token->token.empty()) std::abort();
      break;
    case 3:
      if (auto page = parse_slice_list(text, options_of("kubernetes"))) {
        SliceSet set;
        set.reset(std::move(page->slices));
        expect_sound(set.seen());
      }
      break;
    case 4: {
      // A watch: a line an event.
      SliceSet set;
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (auto event = parse_slice_event(text.substr(begin, end - begin), options_of("kubernetes")))
          set.apply(*std::move(event));
        begin = end + 1;
      }
      expect_sound(set.seen());
      break;
    }
    default:
      if (const auto instance = parse_agent_record("cache-1", text); instance && instance->id != "cache-1")
        std::abort();
  }
  return 0;
}
