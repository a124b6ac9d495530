#include "cli/admin_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/access.h"
#include "cli/server.h"
#include "net/tls.h"
#include "proxy/proxy.h"
#include "resize/controller.h"

namespace ringshift::cli {
namespace {

constexpr std::chrono::seconds kPredecessorLetsGo{10};
constexpr std::chrono::milliseconds kLookAgain{50};

void collect_certificate(telemetry::Exposition& page, std::string_view use, const net::TlsContext* tls) {
  if (tls == nullptr) return;
  if (const auto expires = tls->certificate_expires()) {
    page.gauge("ringshift_tls_certificate_expiry_timestamp_seconds",
               "When our certificate runs out, in Unix seconds, as it was read last",
               static_cast<double>(*expires), {{"use", use}});
  }
}

}  // namespace

void AdminFlags::add_to(CLI::App& command, const std::string& default_listen) {
  listen = default_listen;
  command
      .add_option(
          "--admin-listen", listen,
          "Where metrics and health are served over HTTP, on loopback; port 0 takes any free one; 'none': "
          "nowhere")
      ->type_name("HOST:PORT|none")
      ->envname("RINGSHIFT_ADMIN_LISTEN")
      ->capture_default_str();
}

Result<std::unique_ptr<admin::Listener>> AdminFlags::open() const {
  if (!wanted()) return nullptr;
  const auto address = http::parse_host_port(listen);
  if (!address) return fail(address.error().kind, "--admin-listen: " + address.error().message);
  admin::Listener::Options options;
  options.host = address->host;
  options.port = address->port;
  auto listener = admin::Listener::start(options);
  if (!listener && listen == kAdminDefault) {
    return fail(listener.error().kind,
                listener.error().message + "; '--admin-listen none' goes without an admin port");
  }
  return listener;
}

std::unique_ptr<admin::Listener> AdminFlags::open_after_predecessor() const {
  const auto give_up = std::chrono::steady_clock::now() + kPredecessorLetsGo;
  while (true) {
    auto listener = open();
    if (listener) return std::move(*listener);
    if (std::chrono::steady_clock::now() > give_up) {
      base::log(base::LogLevel::error, "serving without an admin port: {}", listener.error().message);
      return nullptr;
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

void announce_admin(const admin::Listener* listener) {
  if (listener != nullptr) announce("admin", listener->url());
}

void show_proxy(admin::Listener* listener, proxy::Proxy& proxy) {
  if (listener == nullptr) return;
  listener->collect([&proxy](telemetry::Exposition& page) { proxy.collect(page); });
  // A proxy serves from the moment it was started.
  listener->ready_if([] { return Status{}; });
}

void show_controller(admin::Listener* listener, const resize::Controller& controller,
                     const std::string& cluster) {
  if (listener == nullptr) return;
  listener->collect(
      [&controller, cluster](telemetry::Exposition& page) { controller.collect(page, cluster); });
  listener->ready_if([&controller] { return controller.ready(); });
}

void show_certificates(admin::Listener* listener, const net::TlsContext* clients,
                       const backend::MemberAccess* members) {
  if (listener == nullptr) return;
  listener->collect([clients, members](telemetry::Exposition& page) {
    collect_certificate(page, "clients", clients);
    collect_certificate(page, "members", members == nullptr ? nullptr : members->tls());
  });
}

}  // namespace ringshift::cli
