// Inside of the registry: what its endpoints share. The table of them is in server.cpp; those over keys,
// leases and watches are in verbs.cpp, those over tokens, audit and backup in access_verbs.cpp.
//
// Thread: the HTTP server's alone, but for the counters.
#pragma once
#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"
#include "net/tls.h"
#include "registry/answer.h"
#include "registry/request.h"
#include "registry/server.h"
#include "registry/token_book.h"
#include "registry/watch_hub.h"
#include "store/store.h"

namespace ringshift::registry {

inline constexpr char kJson[] = "application/json";
inline constexpr char kText[] = "text/plain; charset=utf-8";
inline constexpr std::string_view kBackupCopy = ".backup";  // Beside the database, while one is made.
inline constexpr char kEtcdVersion[] = "3.4.0";             // The API level that we speak.

// Of /metrics. The routes name them by their place.
inline constexpr std::array<std::string_view, 19> kVerbs = {
    "range",           "put",          "delete_range",     "txn",          "compaction",   "lease_grant",
    "lease_keepalive", "lease_revoke", "lease_timetolive", "lease_leases", "status",       "watch",
    "authenticate",    "token_create", "token_list",       "token_rotate", "token_revoke", "audit",
    "backup"};
inline constexpr std::size_t kWatchVerb = 11;
inline constexpr std::size_t kBackupVerb = 18;
// Refused: what was asked is wrong, or not so (any more). Failed: we could not.
inline constexpr std::array<std::string_view, 3> kOutcomes = {"ok", "refused", "failed"};
inline constexpr std::array<std::string_view, 3> kDenials = {"no_token", "role", "limit"};

[[nodiscard]] std::int64_t unix_seconds_now();  // What tokens and certificates end by.

// Who asks. Without authentication `who` is null, and everything is allowed.
struct Caller {
  std::shared_ptr<const Identity> who;
  std::string secret_hash;
  std::string peer;
  std::int64_t ends = 0;  // Unix seconds: of the certificate that says who it is; 0: a token does.
};

struct Server::Impl {
  // Gives the answer, or sets the error.
  using Verb = std::string (Impl::*)(const std::string& body, const Caller& caller, ErrorAnswer& error);
  // What is no plain question and answer.
  using Whole = void (Impl::*)(const http::Request& request, http::Exchange& exchange, const Caller& caller);
  enum class Disk { read, written, untouched };  // What a verb does there.
  struct Route {
    std::string_view method, path;
    Need need;
    Verb verb;         // Or
    Whole whole;       // this.
    std::size_t name;  // In kVerbs; kVerbs.size(): not counted.
    Disk disk = Disk::read;
  };
  // An answer to a write that is not on the disk yet.
  struct Waiting {
    std::unique_ptr<http::Deferred> exchange;
    std::size_t name;
    ErrorAnswer error;
    std::string body;
  };
  static constexpr std::size_t kGroupMax = 256;
  static const std::vector<Route>& table();

  Options options;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<TokenBook> book;  // Null without authentication.
  std::string admin_token_file;
  std::shared_ptr<net::TlsContext> tls;
  std::unique_ptr<WatchHub> hub;
  std::optional<RateLimit> limit;
  RateLimit denied_rows{5};  // Of the audit, a second.
  std::uint64_t denied_unsaid = 0;
  bool expiry_failing = false;
  struct Sending;  // A backup on its way.
  std::list<std::shared_ptr<Sending>> sending;
  // Written by the server's thread, read by any.
  std::array<std::array<std::atomic<std::uint64_t>, kOutcomes.size()>, kVerbs.size()> answered{};
  std::array<std::atomic<std::uint64_t>, kDenials.size()> denied{};
  std::atomic<std::size_t> watches{0};
  std::vector<Waiting> waiting;
  bool group_open = false;
  std::unique_ptr<http::Server> http;  // Last: its thread uses all above.

  [[nodiscard]] Header header(store::Revision revision) const { return {store->cluster_id(), revision}; }
  void count(std::size_t verb, int status);
  // Writes that are asked for at the same time share an fsync: the first begins a group, and it ends when the
  // loop has seen to all that was there, or somebody wants to read.
  [[nodiscard]] bool begin_group();
  void end_group();

  // Parses, asks `permit`, runs. `permit(identity, request)` is asked when there is authentication, and has
  // no default: an endpoint that forgets it does not compile.
  template <class Request, class Permit, class Run>
  std::string ask(const Result<Request>& request, const Caller& caller, ErrorAnswer& error, Permit permit,
                  Run run) {
    if (!request) {
      error = to_answer(request.error());
      return {};
    }
    if (caller.who != nullptr) {
      if (const Status allowed = permit(*caller.who, *request); !allowed) {
        error = to_answer(allowed.error());
        return {};
      }
    }
    const Result<std::string> answer = run(*request);
    if (!answer) {
      error = to_answer(answer.error());
      log_failure(answer.error());
      return {};
    }
    return *answer;
  }
  static void log_failure(const Error& error);

  // verbs.cpp
  std::string range(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string put(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string remove(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string txn(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string compaction(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string grant(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string keep_alive(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string revoke(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string time_to_live(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string leases(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string status(const std::string& body, const Caller& caller, ErrorAnswer& error);
  void open_watch(const http::Request& request, http::Exchange& exchange, const Caller& caller);
  [[nodiscard]] Status permit_put(const Identity& who, const store::PutRequest& request);
  [[nodiscard]] Status permit_remove(const Identity& who, const store::DeleteRequest& request);
  [[nodiscard]] Status permit_grant(const Identity& who);
  [[nodiscard]] Status permit_lease(const Identity& who, store::LeaseId id);
  [[nodiscard]] Status room_under(const Identity& who, store::LeaseId id, const std::string& key);
  [[nodiscard]] Status permit_key(const Identity& who, const std::string& key);
  [[nodiscard]] Status permit_txn(const Identity& who, const store::TxnRequest& request);

  // access_verbs.cpp
  std::string authenticate(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string token_create(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string token_list(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string token_rotate(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string token_revoke(const std::string& body, const Caller& caller, ErrorAnswer& error);
  std::string read_audit(const std::string& body, const Caller& caller, ErrorAnswer& error);
  void backup(const http::Request& request, http::Exchange& exchange, const Caller& caller);
  void forget_sent();
  void audit_denied(const Caller& caller, std::string_view path, std::string_view why);
  [[nodiscard]] Status open_book();
  [[nodiscard]] Status make_admin_token();

  // admission.cpp
  // Who asks, or why not.
  [[nodiscard]] std::optional<ErrorAnswer> admit(const http::Request& request, const Route& route,
                                                 Caller& caller);
  // By its token, or without one by its certificate. An error's message is for the audit.
  [[nodiscard]] Status identify(const http::Request& request, Caller& caller) const;
  [[nodiscard]] Status identify_by_certificate(const http::Request& request, Caller& caller) const;
  [[nodiscard]] bool may_go_on(const WatchHub::Owner& owner) const;

  // server.cpp
  void health(const http::Request& request, http::Exchange& exchange, const Caller& caller);
  void version(const http::Request& request, http::Exchange& exchange, const Caller& caller);
  void handle(const http::Request& request, http::Exchange& exchange);
  void answer(const http::Request& request, http::Exchange& exchange, const Route& route,
              const Caller& caller);
  void refuse(http::Exchange& exchange, std::size_t name, const ErrorAnswer& error);
  [[nodiscard]] bool from_elsewhere(const http::Request& request) const;
  void tick();
  Status open();
  Status open_state();  // All but the socket and its timers.
};

}  // namespace ringshift::registry
