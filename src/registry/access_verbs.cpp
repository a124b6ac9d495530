// The endpoints that are not etcd's: tokens, the audit, the backup; and etcd's way to exchange a name and a
// password for a token.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "base/log.h"
#include "registry/server_impl.h"

namespace ringshift::registry {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kAccessBodyMax = 64U << 10;
constexpr std::int64_t kAuditRowsAtOnce = 1'000;
constexpr std::int64_t kLifeMaxSeconds = 100LL * 365 * 86'400;
constexpr std::size_t kBackupsAtOnce = 2;
constexpr std::size_t kBackupPiece = 256U << 10;
constexpr std::size_t kWhyKept = 300;

Result<Json> parse_access_body(const std::string& body) {
  if (body.size() > kAccessBodyMax) return fail(ErrorKind::invalid, "the request is too large");
  Json json = Json::parse(body.empty() ? "{}" : body, nullptr, false);
  if (!json.is_object()) return fail(ErrorKind::invalid, "the request is not a JSON object");
  return json;
}

Result<std::string> text_of(const Json& json, const char* name, std::string otherwise = "") {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return otherwise;
  if (!found->is_string()) return fail(ErrorKind::invalid, fmt::format("field '{}' must be a string", name));
  return found->get<std::string>();
}

Result<std::int64_t> number_of(const Json& json, const char* name, std::int64_t max, std::int64_t otherwise) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return otherwise;
  if (!found->is_number_integer() || *found < 0 || *found > max) {
    return fail(ErrorKind::invalid, fmt::format("field '{}' must be a number from 0 to {}", name, max));
  }
  return found->get<std::int64_t>();
}

Result<bool> truth_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return false;
  if (!found->is_boolean())
    return fail(ErrorKind::invalid, fmt::format("field '{}' must be true or false", name));
  return found->get<bool>();
}

Result<std::vector<std::string>> list_of(const Json& json, const char* name) {
  std::vector<std::string> list;
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return list;
  const auto bad = [&] {
    return fail(ErrorKind::invalid, fmt::format("field '{}' must be a list of strings", name));
  };
  if (!found->is_array() || found->size() > kPatternsMax) return bad();
  for (const Json& one : *found) {
    if (!one.is_string()) return bad();
    list.push_back(one.get<std::string>());
  }
  return list;
}

struct NewToken {
  Identity identity;
  std::int64_t expires = 0;
  bool certificate = false;
};
Result<NewToken> parse_new_token(const std::string& body) {
  const auto json = parse_access_body(body);
  if (!json) return std::unexpected(json.error());
  const auto name = text_of(*json, "name"), role = text_of(*json, "role");
  const bool admin = role && *role == to_string(Role::admin);
  const auto name_space = text_of(*json, "namespace", admin ? std::string(kAllNamespaces) : "default");
  const auto ids = list_of(*json, "ids"), addresses = list_of(*json, "addresses");
  const auto life = number_of(*json, "expires_in_seconds", kLifeMaxSeconds, 0);
  const auto certificate = truth_of(*json, "certificate");
  for (const Error* error : {name ? nullptr : &name.error(), role ? nullptr : &role.error(),
                             name_space ? nullptr : &name_space.error(), ids ? nullptr : &ids.error(),
                             addresses ? nullptr : &addresses.error(), life ? nullptr : &life.error(),
                             certificate ? nullptr : &certificate.error()}) {
    if (error != nullptr) return std::unexpected(*error);
  }
  const auto known = role_of(*role);
  if (!known) {
    return fail(ErrorKind::invalid, fmt::format("role {}: write read, register-own, operate or admin",
                                                base::printable(*role, kNameBytesMax)));
  }
  return NewToken{{*name, *known, *name_space, *ids, *addresses},
                  *life == 0 ? 0 : unix_seconds_now() + *life,
                  *certificate};
}

struct NamedToken {
  std::string name;
  std::int64_t grace_seconds = 0;
};
Result<NamedToken> parse_named_token(const std::string& body) {
  const auto json = parse_access_body(body);
  if (!json) return std::unexpected(json.error());
  const auto name = text_of(*json, "name");
  if (!name) return std::unexpected(name.error());
  const auto grace = number_of(*json, "grace_seconds", kLifeMaxSeconds, 0);
  if (!grace) return std::unexpected(grace.error());
  return NamedToken{*name, *grace};
}

std::string dump_json(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json token_json(const TokenBook::Info& info) {
  Json json = {{"name", info.identity.name},
               {"role", to_string(info.identity.role)},
               {"namespace", info.identity.name_space},
               {"created", info.created},
               {"secrets", info.secrets}};
  if (!info.identity.ids.empty()) json["ids"] = info.identity.ids;
  if (!info.identity.addresses.empty()) json["addresses"] = info.identity.addresses;
  if (info.expires != 0) json["expires"] = info.expires;
  if (info.certificate) json["certificate"] = true;
  return json;
}

Json audit_json(const store::AuditRow& row) {
  Json json = {{"id", row.id},          {"at", row.at},     {"who", row.who},
               {"peer", row.peer},      {"verb", row.verb}, {"key", base::printable(row.key, 512)},
               {"outcome", row.outcome}};
  if (row.revision != 0) json["revision"] = row.revision;
  if (!row.before.empty()) json["before"] = row.before;
  if (!row.after.empty()) json["after"] = row.after;
  return json;
}

// Not on: the change of who may act needs somebody who acts.
std::unexpected<Error> not_enabled() {
  return fail(ErrorKind::invalid, "etcdserver: authentication is not enabled");
}

TokenBook::Change change_by(const Caller& caller) { return {caller.who->name, caller.peer}; }

}  // namespace

// etcd's clients send the token that this answers as they would etcd's own: it is the secret itself.
std::string Server::Impl::authenticate(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  const auto json = parse_access_body(body);
  const auto name = json ? text_of(*json, "name") : Result<std::string>(std::unexpected(json.error()));
  const auto password =
      json ? text_of(*json, "password") : Result<std::string>(std::unexpected(json.error()));
  if (!name || !password) {
    error = to_answer(!name ? name.error() : password.error());
    return {};
  }
  if (book == nullptr) {
    error = error_answer(400, 9, not_enabled().error().message);
    return {};
  }
  const auto who = book->find(*password);
  if (who == nullptr || who->name != *name) {
    denied[0].fetch_add(1, std::memory_order_relaxed);
    audit_denied(caller, "/v3/auth/authenticate", "no such name and password");
    error = error_answer(400, 3, "etcdserver: authentication failed, invalid user ID or password");
    return {};
  }
  return to_json(header(store->revision()), fmt::format(",\"token\":\"{}\"", *password));
}

std::string Server::Impl::token_create(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_new_token(body), caller, error,
      [](const Identity& who, const NewToken&) { return may_administer(who, "tokens"); },
      [&](const NewToken& wanted) -> Result<std::string> {
        if (book == nullptr) return not_enabled();
        if (wanted.certificate) {
          const Status made = book->create_certified(wanted.identity, wanted.expires, change_by(caller));
          if (!made) return std::unexpected(made.error());
          return dump_json(token_json({wanted.identity, unix_seconds_now(), wanted.expires, 0, true}));
        }
        const auto secret = book->create(wanted.identity, wanted.expires, change_by(caller));
        if (!secret) return std::unexpected(secret.error());
        Json answer = token_json({wanted.identity, unix_seconds_now(), wanted.expires, 1});
        answer["token"] = *secret;
        return dump_json(answer);
      });
}

std::string Server::Impl::token_list(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_access_body(body), caller, error,
      [](const Identity& who, const Json&) { return may_administer(who, "tokens"); },
      [&](const Json&) -> Result<std::string> {
        if (book == nullptr) return not_enabled();
        Json list = Json::array();
        for (const TokenBook::Info& info : book->list()) list.push_back(token_json(info));
        return dump_json({{"tokens", list}});
      });
}

std::string Server::Impl::token_rotate(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_named_token(body), caller, error,
      [](const Identity& who, const NamedToken&) { return may_administer(who, "tokens"); },
      [&](const NamedToken& wanted) -> Result<std::string> {
        if (book == nullptr) return not_enabled();
        const auto secret = book->rotate(wanted.name, wanted.grace_seconds, change_by(caller));
        if (!secret) return std::unexpected(secret.error());
        return dump_json(
            {{"name", wanted.name}, {"grace_seconds", wanted.grace_seconds}, {"token", *secret}});
      });
}

std::string Server::Impl::token_revoke(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_named_token(body), caller, error,
      [](const Identity& who, const NamedToken&) { return may_administer(who, "tokens"); },
      [&](const NamedToken& wanted) -> Result<std::string> {
        if (book == nullptr) return not_enabled();
        const Status done = book->revoke(wanted.name, change_by(caller));
        if (!done) return std::unexpected(done.error());
        // Now, and not when it is looked at again: there may be another of this name by then.
        hub->end_unless([this](const WatchHub::Owner& owner) { return may_go_on(owner); });
        return dump_json({{"name", wanted.name}});
      });
}

std::string Server::Impl::read_audit(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_access_body(body), caller, error,
      [](const Identity& who, const Json&) { return may_administer(who, "the audit"); },
      [&](const Json& json) -> Result<std::string> {
        const auto since = number_of(json, "since", INT64_MAX, 0),
                   after = number_of(json, "after", INT64_MAX, 0);
        if (!since || !after) return std::unexpected(!since ? since.error() : after.error());
        const auto rows = store->audit(*since, *after, kAuditRowsAtOnce);
        if (!rows) return std::unexpected(rows.error());
        Json list = Json::array();
        for (const store::AuditRow& row : *rows) list.push_back(audit_json(row));
        return dump_json({{"rows", list}, {"more", rows->size() == kAuditRowsAtOnce}});
      });
}

// One backup on its way to a client: a file without a name, sent as fast as it is taken.
struct Server::Impl::Sending {
  int fd = -1;
  std::unique_ptr<http::Stream> stream;
  bool done = false;

  ~Sending() {
    stream.reset();
    if (fd >= 0) close(fd);
  }
  void pump() {
    if (done) return;
    std::string piece(kBackupPiece, '\0');
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    // A file that ends too early is no database: whoever gets it checks it.
    if (got <= 0) {
      done = true;
      return;
    }
    stream->write(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
};

void Server::Impl::backup(const http::Request&, http::Exchange& exchange, const Caller& caller) {
  if (caller.who != nullptr) {
    if (const Status allowed = may_administer(*caller.who, "backup"); !allowed) {
      audit_denied(caller, "backup", allowed.error().message);
      return refuse(exchange, kBackupVerb, to_answer(allowed.error()));
    }
  }
  if (sending.size() >= kBackupsAtOnce) {
    return refuse(exchange, kBackupVerb,
                  error_answer(429, 8, "two backups are under way: wait for one to end"));
  }
  const std::string copy = options.database + std::string(kBackupCopy);
  const Status made = store->backup(copy);
  const int fd = made ? ::open(copy.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  ::unlink(copy.c_str());
  if (!made || fd < 0) {
    const Error error =
        made ? Error{ErrorKind::internal, fmt::format("the copy cannot be read: {}", std::strerror(errno))}
             : made.error();
    log_failure(error);
    return refuse(exchange, kBackupVerb, to_answer(error));
  }
  if (caller.who != nullptr) {
    store::AuditRow row;
    row.who = caller.who->name;
    row.peer = caller.peer;
    row.verb = "backup";
    row.revision = store->revision();
    row.outcome = "ok";
    if (const Status told = store->append_audit(row); !told) log_failure(told.error());
  }
  count(kBackupVerb, 200);
  auto one = std::make_shared<Sending>();
  one->fd = fd;
  one->stream = exchange.stream("application/vnd.sqlite3");
  one->stream->on_drained([raw = one.get()] { raw->pump(); });
  sending.push_back(one);
  one->pump();
}

void Server::Impl::forget_sent() {
  std::erase_if(sending, [](const auto& one) {
    return one->stream->closed() || (one->done && one->stream->backlog() == 0);
  });
}

void Server::Impl::audit_denied(const Caller& caller, std::string_view path, std::string_view why) {
  if (book == nullptr) return;
  if (!denied_rows.take("", std::chrono::steady_clock::now())) {
    ++denied_unsaid;
    return;
  }
  store::AuditRow row;
  row.who = caller.who == nullptr ? "" : caller.who->name;
  row.peer = caller.peer;
  row.verb = path;
  row.outcome = why.substr(0, kWhyKept);
  if (denied_unsaid != 0) row.outcome += fmt::format(" (and {} more since the last line)", denied_unsaid);
  denied_unsaid = 0;
  if (const Status told = store->append_audit(row); !told) log_failure(told.error());
}

Status Server::Impl::open_book() {
  auto opened = TokenBook::open(*store, unix_seconds_now);
  if (!opened) return std::unexpected(opened.error());
  book = *std::move(opened);
  if (book->has_admin() && !options.new_admin_token) return {};
  return make_admin_token();
}

// The file first: a token that nobody could read would lock everybody out.
Status Server::Impl::make_admin_token() {
  const std::string path = options.database + ".admin-token";
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return fail(ErrorKind::denied, fmt::format("the first admin's token cannot be written to {}: {}",
                                               temporary, std::strerror(errno)));
  }
  Identity admin;
  admin.name = book->has_admin() ? fmt::format("admin-{}", unix_seconds_now()) : "admin";
  admin.role = Role::admin;
  admin.name_space = kAllNamespaces;
  for (const TokenBook::Info& info : book->list()) {
    if (info.identity.name == admin.name) admin.name = fmt::format("admin-{}", unix_seconds_now());
  }
  const auto secret = book->create(admin, 0, {"the registry itself", ""});
  if (!secret) {
    ::close(fd);
    ::unlink(temporary.c_str());
    return std::unexpected(secret.error());
  }
  const std::string line = "token:" + *secret + "\n";
  const bool written =
      ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(fd) == 0;
  ::close(fd);
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return fail(ErrorKind::denied, fmt::format("the admin's token cannot be written to {}: {}; start with "
                                               "--new-admin-token when there is room",
                                               path, std::strerror(errno)));
  }
  admin_token_file = path;
  return {};
}

}  // namespace ringshift::registry
