#include "cli/requests.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <thread>

#include "cli/registry_router.h"

namespace ringshift::cli {
namespace {
constexpr std::chrono::milliseconds kPoll{20};
}

std::string who_asks() {
  char host[256] = "";
  static_cast<void>(gethostname(host, sizeof(host) - 1));
  const passwd* user = getpwuid(geteuid());  // One thread.
  return fmt::format("{}@{}", user != nullptr ? user->pw_name : std::to_string(geteuid()), host);
}

Result<resize::ResizeStatus> read_status(coord::Coordinator& coordinator, const coord::ClusterKeys& keys) {
  const auto kv = coordinator.get(keys.status());
  if (!kv) return std::unexpected(kv.error());
  if (!*kv) return resize::ResizeStatus{};
  return resize::parse_status((*kv)->value);
}

Status ask_controller(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                      resize::Request request, std::chrono::milliseconds patience) {
  request.id = unique_id("request");
  const auto written = coordinator.transact({{keys.request(), coord::Compare::Target::create_revision, 0}},
                                            {{coord::Op::Kind::put, keys.request(), to_json(request), 0}});
  if (!written) return std::unexpected(written.error());
  if (!*written) {
    return fail(ErrorKind::overloaded,
                "another request waits for the controller: try again when it is handled");
  }
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(kPoll);
    const Result<resize::ResizeStatus> status = read_status(coordinator, keys);
    if (!status) continue;  // A passing outage; the patience bounds it.
    if (status->request_id != request.id) continue;
    if (status->request_error.empty()) return {};
    return fail(ErrorKind::invalid, status->request_error);
  }
  // Take it back, so that it does not come to life when a controller starts tomorrow.
  const auto kv = coordinator.get(keys.request());
  if (kv && *kv && (*kv)->value == to_json(request)) {
    static_cast<void>(
        coordinator.transact({{keys.request(), coord::Compare::Target::mod_revision, (*kv)->mod_revision}},
                             {{coord::Op::Kind::remove, keys.request(), "", 0}}));
  }
  return fail(
      ErrorKind::retryable,
      fmt::format(
          "no controller answered within {} s: is 'ringshift controller' or 'ringshift serve' running "
          "for this cluster?",
          patience.count() / 1000));
}

}  // namespace ringshift::cli
