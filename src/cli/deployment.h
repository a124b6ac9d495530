// A whole cluster's control and data plane in this process: registry, controller and proxy.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ringshift/error.h"
#include "ringshift/topology.h"

namespace ringshift::cli {

struct DeploymentOptions {
  std::string data_dir;         // For the registry's database.
  std::string registry_listen;  // host:port
  std::string proxy_listen;
  unsigned proxy_threads = 1;
  std::string cluster;
};

struct ResizeStatus {
  std::string state;  // idle | preparing | running | paused | rolling_back | finished | failed
  std::uint64_t step = 0, steps = 0;
  std::uint64_t keys_moved = 0, keys_to_move = 0;
  double hold_ms_max = 0;
  double keys_per_second = 0;
  double eta_seconds = 0;
  std::string last_error;
  std::string phase;
};

class Deployment {
 public:
  static Result<std::unique_ptr<Deployment>> start(DeploymentOptions options, const topology::Spec& first);
  ~Deployment();
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  [[nodiscard]] std::string registry_url() const;
  [[nodiscard]] std::vector<std::string> proxy_addresses() const;
  [[nodiscard]] Status start_resize(const topology::Spec& target, std::vector<double> steps_percent);
  [[nodiscard]] Result<ResizeStatus> status();

 private:
  struct Impl;
  explicit Deployment(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::cli
