// A whole cluster's control and data plane in this process: registry, controller and proxy.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/tokens.h"
#include "proxy/proxy.h"
#include "resize/status.h"
#include "ringshift/error.h"
#include "ringshift/topology.h"

namespace ringshift::admin {
class Listener;
}

namespace ringshift::cli {

using resize::ResizeStatus;

struct DeploymentOptions {
  std::string data_dir;  // For the registry's database.
  std::string registry_listen = "127.0.0.1:7379";
  std::string proxy_listen = "127.0.0.1:6380";
  unsigned proxy_threads = 1;
  std::string cluster;  // Must be the spec's.
  // The rest of the proxy's settings; listen and threads come from above. Its member_access is the
  // controller's, too.
  proxy::Options proxy;
};

class Deployment {
 public:
  // Serves when it returns. `first` is applied unless the registry has a spec of this cluster already; then
  // that one counts.
  [[nodiscard]] static Result<std::unique_ptr<Deployment>> start(DeploymentOptions options,
                                                                 const topology::Spec& first);
  ~Deployment();
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  [[nodiscard]] std::string registry_url() const;
  [[nodiscard]] std::vector<std::string> proxy_addresses() const;
  [[nodiscard]] const std::vector<proxy::Options::Listen>& listening() const;
  // Returns when the controller has accepted or refused it.
  [[nodiscard]] Status start_resize(const topology::Spec& target, std::vector<double> steps_percent);
  [[nodiscard]] Status start_resize(resize::Request request);
  [[nodiscard]] Result<ResizeStatus> status();
  // On the admin port, which must end before this does; null: there is none.
  void show(admin::Listener* listener);
  // The JSON API there. `role` is serve or up; without tokens it takes no actions.
  void show_api(admin::Listener* listener, std::string role, std::optional<admin::Tokens> tokens);
  // No action waits for the controller any more: so that the admin port can end.
  void end_actions() noexcept;

 private:
  struct Impl;
  explicit Deployment(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::cli
