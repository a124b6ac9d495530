// Who asks: the token of a request, or without one the name in its client's certificate.
//
// A token that is sent is what counts, good or bad: a certificate neither mends a wrong token nor adds to a
// right one. A certificate alone names an entry of the token book that was made for that ("ringshift token
// create NAME --certificate"), by the URI ringshift:NAME among its names; one without such a name, or without
// an entry, is nobody.
#include <fmt/format.h>
#include <strings.h>

#include <chrono>

#include "base/encoding.h"
#include "registry/server_impl.h"

namespace ringshift::registry {
namespace {

constexpr std::string_view kIdentityName = "URI:ringshift:";
constexpr std::string_view kNoToken = "no token";  // As the audit has it, as the next.
constexpr std::string_view kBadToken = "a token that is not known, or has ended";

// What the client is told; etcd's own words where its clients compare them.
std::string_view told(std::string_view why) {
  if (why == kBadToken) return "etcdserver: invalid auth token";
  if (why != kNoToken) return why;
  return "this registry asks for a token: send 'Authorization: Bearer TOKEN' (--registry-auth-file of "
         "our own commands)";
}

// "Bearer T", or T alone as etcd's clients send it.
std::string token_of(std::string header) {
  constexpr std::string_view kScheme = "bearer ";
  if (header.size() > kScheme.size() && strncasecmp(header.c_str(), kScheme.data(), kScheme.size()) == 0) {
    header.erase(0, header.find_first_not_of(' ', kScheme.size()));
  }
  return header;
}

}  // namespace

std::int64_t unix_seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A connection outlives the hour in which its certificate ends, so that is looked at again here.
Status Server::Impl::identify_by_certificate(const http::Request& request, Caller& caller) const {
  const auto certificate = request.certificate ? request.certificate() : std::nullopt;
  if (!certificate) return fail(ErrorKind::denied, std::string(kNoToken));
  std::string name;
  int names = 0;
  for (const std::string& one : certificate->names) {
    if (!one.starts_with(kIdentityName)) continue;
    if (++names > 1)
      return fail(ErrorKind::denied,
                  "the certificate names more than one ringshift:NAME: issue one for each");
    name = one.substr(kIdentityName.size());
  }
  if (name.empty()) return fail(ErrorKind::denied, std::string(kNoToken));
  const std::string shown = base::printable(name, kNameBytesMax);
  const std::int64_t now = unix_seconds_now();
  if (now < certificate->begins || now >= certificate->ends)
    return fail(ErrorKind::denied, fmt::format("the certificate of '{}' is out of date: renew it", shown));
  // A browser shows its certificate for any page that asks it to.
  if (request.header("Origin"))
    return fail(ErrorKind::denied, "a web page needs a token: a certificate is for programs alone");
  caller.who = book->find_certified(name);
  if (caller.who == nullptr) {
    return fail(
        ErrorKind::denied,
        fmt::format("the certificate names '{0}', which has no entry here (any more): 'ringshift token "
                    "create {0} --certificate' makes one",
                    shown));
  }
  caller.secret_hash = TokenBook::mark_of_certified(name);
  caller.ends = certificate->ends;
  return {};
}

Status Server::Impl::identify(const http::Request& request, Caller& caller) const {
  const std::string token = token_of(request.header("Authorization").value_or(""));
  if (token.empty()) return identify_by_certificate(request, caller);
  caller.who = book->find(token);
  if (caller.who == nullptr) return fail(ErrorKind::denied, std::string(kBadToken));
  caller.secret_hash = TokenBook::hash_of(token);
  return {};
}

std::optional<ErrorAnswer> Server::Impl::admit(const http::Request& request, const Route& route,
                                               Caller& caller) {
  if (book == nullptr || route.need == Need::nothing) return std::nullopt;
  if (const Status known = identify(request, caller); !known) {
    denied[0].fetch_add(1, std::memory_order_relaxed);
    audit_denied(caller, route.path, known.error().message);
    return error_answer(401, 16, told(known.error().message));
  }
  if (!limit->take(caller.who->name, std::chrono::steady_clock::now())) {
    denied[2].fetch_add(1, std::memory_order_relaxed);
    return error_answer(429, 8,
                        fmt::format("token '{}' asks more than {:g} times a second, its limit: try again "
                                    "later",
                                    caller.who->name, options.requests_per_second));
  }
  // Said here as well as by each verb: one that forgot would not be open.
  if (route.need == Need::admin) {
    if (const Status allowed = may_administer(*caller.who, route.path); !allowed) {
      denied[1].fetch_add(1, std::memory_order_relaxed);
      audit_denied(caller, route.path, allowed.error().message);
      return to_answer(allowed.error());
    }
  }
  return std::nullopt;
}

bool Server::Impl::may_go_on(const WatchHub::Owner& owner) const {
  return (owner.ends == 0 || unix_seconds_now() < owner.ends) && book->alive(owner.name, owner.secret_hash);
}

}  // namespace ringshift::registry
