#include "cli/membership.h"

#include "cli/spec_file.h"

namespace ringshift::cli {
namespace {

Result<std::unique_ptr<discovery::Source>> make_source_of_spec(const topology::DiscoverySource& words,
                                                               const discovery::Surroundings& around) {
  auto options = source_options(words, "");
  if (!options) return std::unexpected(options.error());
  return discovery::make_source(*std::move(options), around);
}

}  // namespace

std::unique_ptr<membership::Runner> start_membership(coord::Coordinator& coordinator,
                                                     const RegistryFlags& registry, std::string controller_id,
                                                     std::shared_ptr<const backend::MemberAccess> access) {
  const discovery::Surroundings around{&coordinator, registry.name_space, registry.cluster};
  return std::make_unique<membership::Runner>(
      coordinator, registry.keys(), membership::Runner::Options{std::move(controller_id), std::move(access)},
      [around](const topology::DiscoverySource& words) { return make_source_of_spec(words, around); });
}

void show_membership(admin::Listener* listener, const membership::Runner& runner,
                     const std::string& cluster) {
  if (listener == nullptr) return;
  listener->collect([&runner, cluster](telemetry::Exposition& page) { runner.collect(page, cluster); });
}

}  // namespace ringshift::cli
