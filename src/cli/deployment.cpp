#include "cli/deployment.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/admin_api.h"
#include "cli/admin_flags.h"
#include "cli/membership.h"
#include "cli/registry_router.h"
#include "cli/requests.h"
#include "http/server.h"
#include "registry/server.h"
#include "resize/controller.h"

namespace ringshift::cli {
namespace {
constexpr std::chrono::seconds kFirstTopology{10};
constexpr std::chrono::seconds kAnswer{15};
}  // namespace

// In the order of dependence: destroyed from the last to the first.
struct Deployment::Impl {
  std::unique_ptr<registry::Server> registry;
  RegistryFlags flags;
  std::unique_ptr<coord::Coordinator> coordinator;
  std::unique_ptr<resize::Controller> controller;
  std::unique_ptr<membership::Runner> membership;
  std::unique_ptr<RegistryRouter> router;
  std::unique_ptr<proxy::Proxy> proxy;
  std::shared_ptr<const backend::MemberAccess> access;
  std::unique_ptr<admin::Api> api;

  [[nodiscard]] coord::ClusterKeys keys() const { return flags.keys(); }
};

Deployment::Deployment(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Deployment::~Deployment() {
  if (impl_->router) impl_->router->detach();
  if (impl_->proxy) impl_->proxy->stop();
}

Result<std::unique_ptr<Deployment>> Deployment::start(DeploymentOptions options,
                                                      const topology::Spec& first) {
  auto impl = std::make_unique<Impl>();
  const auto address = http::parse_host_port(options.registry_listen);
  if (!address) return std::unexpected(address.error());
  registry::Options registry_options;
  registry_options.listen_host = address->host;
  registry_options.port = address->port;
  registry_options.database = options.data_dir + "/registry.db";
  auto registry = registry::Server::start(registry_options);
  if (!registry)
    return fail(registry.error().kind, "registry (--registry-listen): " + registry.error().message);
  impl->registry = std::move(*registry);
  impl->flags.registry = impl->registry->url();
  impl->flags.cluster = options.cluster;
  auto coordinator = impl->flags.connect();
  if (!coordinator) return std::unexpected(coordinator.error());
  impl->coordinator = std::move(*coordinator);

  const coord::ClusterKeys keys = impl->keys();
  const auto applied =
      impl->coordinator->transact({{keys.spec(), coord::Compare::Target::create_revision, 0}},
                                  {{coord::Op::Kind::put, keys.spec(), topology::to_json(first), 0}});
  if (!applied) return std::unexpected(applied.error());

  const std::string id = fmt::format("serve-{}", getpid());
  resize::ControllerOptions controller_options;
  controller_options.id = unique_id(id + "-controller");
  controller_options.member_access = options.proxy.member_access;
  impl->controller = std::make_unique<resize::Controller>(*impl->coordinator, keys, controller_options);
  impl->membership = start_membership(*impl->coordinator, impl->flags, controller_options.id,
                                      controller_options.member_access);
  proxy::Options proxy_options = options.proxy;
  proxy_options.listen = options.proxy_listen;
  proxy_options.threads = options.proxy_threads;
  proxy_options.router_id = unique_id(id + "-proxy");
  auto router = RegistryRouter::start(impl->flags, proxy_options.router_id, kFirstTopology);
  if (!router) return std::unexpected(router.error());
  impl->router = std::move(*router);
  auto proxy = proxy::Proxy::start(proxy_options, impl->router->holder(), impl->router.get());
  if (!proxy) return std::unexpected(proxy.error());
  impl->proxy = std::move(*proxy);
  impl->access = options.proxy.member_access;
  impl->router->attach(*impl->proxy);
  return std::unique_ptr<Deployment>(new Deployment(std::move(impl)));
}

std::string Deployment::registry_url() const { return impl_->registry->url(); }

std::vector<std::string> Deployment::proxy_addresses() const { return {impl_->proxy->address()}; }

const std::vector<proxy::Options::Listen>& Deployment::listening() const { return impl_->proxy->listening(); }

void Deployment::show(admin::Listener* listener) {
  if (listener == nullptr) return;
  listener->collect([this](telemetry::Exposition& page) { impl_->registry->collect(page); });
  show_controller(listener, *impl_->controller, impl_->flags.cluster);
  show_membership(listener, *impl_->membership, impl_->flags.cluster);
  show_proxy(listener, *impl_->proxy);
}

void Deployment::show_api(admin::Listener* listener, std::string role, std::optional<admin::Tokens> tokens) {
  impl_->api = cli::show_api(listener, *impl_->coordinator, impl_->flags, std::move(role), impl_->access,
                             std::move(tokens));
}

void Deployment::end_actions() noexcept {
  if (impl_->api) impl_->api->stop();
}

Status Deployment::start_resize(const topology::Spec& target, std::vector<double> steps_percent) {
  resize::Request request;
  request.spec = target;
  request.steps = std::move(steps_percent);
  return start_resize(std::move(request));
}

Status Deployment::start_resize(resize::Request request) {
  request.action = resize::Request::Action::start;
  return ask_controller(*impl_->coordinator, impl_->keys(), std::move(request), kAnswer);
}

Result<ResizeStatus> Deployment::status() { return read_status(*impl_->coordinator, impl_->keys()); }

}  // namespace ringshift::cli
