#include "cli/tls_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "cli/server.h"

namespace ringshift::cli {
namespace {

constexpr const char* kPasswordVariable = "RINGSHIFT_MEMBER_PASSWORD";
constexpr const char* kMembers = "Members";
constexpr const char* kClients = "Clients";

}  // namespace

void MemberFlags::add_to(CLI::App& command) {
  command.add_flag("--tls-members", tls, "Connect to the members with TLS")->group(kMembers);
  const auto of_tls = [&](const char* flag, std::string& value, const char* text) {
    return command.add_option(flag, value, text)->group(kMembers)->needs("--tls-members");
  };
  of_tls("--tls-members-ca", ca, "Who signs their certificates [the system's CAs]")->type_name("FILE");
  of_tls("--tls-members-cert", certificate, "Our own certificate, when they ask for one")->type_name("FILE");
  of_tls("--tls-members-key", key, "The key of that certificate")->type_name("FILE");
  of_tls("--tls-members-name", name, "What their certificates must name [the host of each address]");
  command
      .add_flag("--tls-members-insecure", insecure,
                "Accept any certificate: whoever is in between reads and changes everything")
      ->group(kMembers)
      ->needs("--tls-members");
  command.add_option("--member-user", user, "Their ACL user [the default user]")->group(kMembers);
  command
      .add_option("--member-password-file", password_file,
                  fmt::format("Its password, the file's first line [the variable {}]", kPasswordVariable))
      ->type_name("FILE")
      ->group(kMembers);
}

Result<std::shared_ptr<backend::MemberAccess>> MemberFlags::open() const {
  backend::MemberAccess::Options options;
  if (tls) options.tls = net::TlsContext::Client{ca, certificate, key, name, insecure};
  options.user = user;
  options.password_file = password_file;
  if (const char* password = std::getenv(kPasswordVariable); password != nullptr && password_file.empty()) {
    options.password = password;
  }
  if (insecure) {
    base::log(base::LogLevel::warning, "--tls-members-insecure: the members' certificates are not checked");
  }
  if (!options.tls && options.user.empty() && options.password.empty() && password_file.empty()) {
    return nullptr;
  }
  return backend::MemberAccess::open(std::move(options));
}

void ListenFlags::add_to(CLI::App& command, const std::string& plain_default) {
  plain = {plain_default};
  plain_option =
      command
          .add_option("--listen", plain, "Where clients connect; port 0 takes any free one; may be repeated")
          ->type_name("HOST:PORT|unix:PATH")
          ->type_size(1)
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->envname("RINGSHIFT_LISTEN")
          ->capture_default_str();
  command
      .add_option("--tls-listen", tls,
                  "Where clients connect with TLS; may be repeated; without a --listen there is no plain one")
      ->type_name("HOST:PORT|unix:PATH")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kClients);
  const auto of_tls = [&](const char* flag, std::string& value, const char* text) {
    return command.add_option(flag, value, text)->group(kClients)->needs("--tls-listen");
  };
  of_tls("--tls-cert", certificate, "Certificate with its chain (PEM); SIGHUP reads it anew")
      ->type_name("FILE");
  of_tls("--tls-key", key, "Its key (PEM, not encrypted)")->type_name("FILE");
  of_tls("--tls-ca", ca, "Who signs the clients' certificates")->type_name("FILE");
  of_tls("--tls-auth-clients", clients, "Whether clients must show a certificate of --tls-ca")
      ->check(CLI::IsMember({"no", "optional", "yes"}))
      ->capture_default_str();
  command
      .add_option("--unix-permissions", permissions, "Of unix sockets, in octal: 0770 [as the umask says]")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool octal = !text.empty() && text.size() <= 4 &&
                               text.find_first_not_of("01234567") == std::string::npos &&
                               std::stoul(text, nullptr, 8) <= 0777 && std::stoul(text, nullptr, 8) != 0;
            return octal ? std::string() : text + " is no permission in octal, as 0770 is";
          },
          "OCTAL"))
      ->group(kClients);
}

Result<std::shared_ptr<net::TlsContext>> ListenFlags::apply(proxy::Options& options) const {
  if (!permissions.empty()) {
    options.unix_permissions = static_cast<unsigned>(std::stoul(permissions, nullptr, 8));
  }
  std::vector<proxy::Options::Listen> all;
  if (plain_option->count() != 0 || tls.empty()) {
    for (const std::string& address : plain) all.push_back({address, false});
  }
  for (const std::string& address : tls) all.push_back({address, true});
  options.listen = all.front().address;
  options.listen_tls = all.front().tls;
  options.also_listen.assign(all.begin() + 1, all.end());
  if (tls.empty()) return nullptr;
  if (certificate.empty() || key.empty()) {
    return fail(ErrorKind::invalid, "--tls-listen needs --tls-cert FILE and --tls-key FILE");
  }
  net::TlsContext::Server files{certificate, key, ca, net::TlsContext::ClientCertificates::none};
  if (clients == "optional") files.clients = net::TlsContext::ClientCertificates::optional;
  if (clients == "yes") files.clients = net::TlsContext::ClientCertificates::required;
  if (clients == "no" && !ca.empty()) {
    return fail(ErrorKind::invalid,
                "--tls-ca is for checking clients: say --tls-auth-clients yes or optional, too");
  }
  if (clients != "no" && ca.empty()) {
    return fail(ErrorKind::invalid, "--tls-auth-clients " + clients + " needs --tls-ca FILE");
  }
  auto context = net::TlsContext::server(std::move(files));
  if (context) options.tls = *context;
  return context;
}

void reload_secrets(std::string_view who, net::TlsContext* listeners, backend::MemberAccess* members) {
  const auto tell = [&](std::string_view what, const Status& done) {
    if (done) {
      base::log(base::LogLevel::info, "{}: {} read anew", who, what);
    } else {
      base::log(base::LogLevel::error, "{}: {} stay as they were: {}", who, what, done.error().message);
    }
  };
  if (listeners != nullptr) tell("certificates for clients", listeners->reload());
  if (members != nullptr) tell("certificates and password for members", members->reload());
}

void announce_listeners(const std::string& name, const std::vector<proxy::Options::Listen>& listeners) {
  announce(name, listeners.front().address);
  for (std::size_t i = 1; i < listeners.size(); ++i) {
    announce(name + (listeners[i].tls ? "-tls" : "-plain"), listeners[i].address);
  }
}

}  // namespace ringshift::cli
