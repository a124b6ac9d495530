// The endpoints over keys, leases and watches: etcd's, each behind what its caller may do.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "registry/rights.h"
#include "registry/server_impl.h"
#include "store/errors.h"

namespace ringshift::registry {
namespace {

constexpr std::size_t kLeasesPerToken = 10'000;
constexpr std::size_t kKeysPerLease = 16;  // Of register-own: an agent and a router have one each.

// What the audit says of a write; null without authentication.
struct WriteActor {
  WriteActor(const Caller& caller, std::string_view verb) {
    if (caller.who == nullptr) return;
    actor = {caller.who->name, caller.peer, verb, &worth_auditing};
    given = &actor;
  }
  WriteActor(const WriteActor&) = delete;
  WriteActor& operator=(const WriteActor&) = delete;
  store::Actor actor;
  const store::Actor* given = nullptr;
};

}  // namespace

std::string Server::Impl::range(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_range(body), caller, error,
      [](const Identity& who, const store::RangeRequest& r) { return may_read(who, r.key, r.range_end); },
      [&](const store::RangeRequest& r) -> Result<std::string> {
        const auto result = store->range(r);
        if (!result) return std::unexpected(result.error());
        return to_json(header(result->revision), *result);
      });
}

std::string Server::Impl::put(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_put(body), caller, error,
      [this](const Identity& who, const store::PutRequest& r) { return permit_put(who, r); },
      [&](const store::PutRequest& r) -> Result<std::string> {
        const WriteActor by(caller, "put");
        const auto result = store->put(r, by.given);
        if (!result) return std::unexpected(result.error());
        return to_json(header(result->revision), *result);
      });
}

std::string Server::Impl::remove(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_delete(body), caller, error,
      [this](const Identity& who, const store::DeleteRequest& r) { return permit_remove(who, r); },
      [&](const store::DeleteRequest& r) -> Result<std::string> {
        const WriteActor by(caller, "delete");
        const auto result = store->remove(r, by.given);
        if (!result) return std::unexpected(result.error());
        return to_json(header(result->revision), *result);
      });
}

std::string Server::Impl::txn(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_txn(body), caller, error,
      [this](const Identity& who, const store::TxnRequest& r) { return permit_txn(who, r); },
      [&](const store::TxnRequest& r) -> Result<std::string> {
        const WriteActor by(caller, "txn");
        const auto result = store->txn(r, by.given);
        if (!result) return std::unexpected(result.error());
        return to_json(header(result->revision), *result);
      });
}

std::string Server::Impl::compaction(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_compaction(body), caller, error,
      [](const Identity& who, store::Revision) { return may_administer(who, "compaction"); },
      [&](store::Revision r) -> Result<std::string> {
        const auto done = store->compact(r);
        if (!done) return std::unexpected(done.error());
        if (caller.who != nullptr) {
          store::AuditRow row;
          row.who = caller.who->name;
          row.peer = caller.peer;
          row.verb = "compaction";
          row.revision = r;
          row.outcome = "ok";
          if (const Status told = store->append_audit(row); !told) log_failure(told.error());
        }
        return to_json(header(store->revision()), "");
      });
}

std::string Server::Impl::grant(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_lease(body), caller, error,
      [this](const Identity& who, const LeaseRequest&) { return permit_grant(who); },
      [&](const LeaseRequest& r) -> Result<std::string> {
        const auto lease = store->grant(r.ttl_seconds, r.id, caller.who == nullptr ? "" : caller.who->name);
        if (!lease) return std::unexpected(lease.error());
        return to_json(header(store->revision()),
                       number_field("ID", lease->id) + number_field("TTL", lease->granted_seconds));
      });
}

std::string Server::Impl::keep_alive(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_lease(body), caller, error,
      [this](const Identity& who, const LeaseRequest& r) { return permit_lease(who, r.id); },
      [&](const LeaseRequest& r) -> Result<std::string> {
        const auto lease = store->keep_alive(r.id);
        if (!lease && lease.error().kind != ErrorKind::not_found) return std::unexpected(lease.error());
        // A lease that is gone is no error in etcd: the TTL is missing.
        const std::string inner =
            to_json(header(store->revision()),
                    number_field("ID", r.id) + (lease ? number_field("TTL", lease->remaining_seconds) : ""));
        return "{\"result\":" + inner + "}\n";
      });
}

std::string Server::Impl::revoke(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_lease(body), caller, error,
      [this](const Identity& who, const LeaseRequest& r) { return permit_lease(who, r.id); },
      [&](const LeaseRequest& r) -> Result<std::string> {
        const WriteActor by(caller, "lease revoke");
        const auto done = store->revoke(r.id, by.given);
        if (!done) return std::unexpected(done.error());
        return to_json(header(store->revision()), "");
      });
}

std::string Server::Impl::time_to_live(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_lease(body), caller, error,
      [this](const Identity& who, const LeaseRequest& r) { return permit_lease(who, r.id); },
      [&](const LeaseRequest& r) -> Result<std::string> {
        const auto lease = store->time_to_live(r.id, r.keys);
        if (!lease && lease.error().kind != ErrorKind::not_found) return std::unexpected(lease.error());
        if (!lease) {
          return to_json(header(store->revision()), number_field("ID", r.id) + number_field("TTL", -1));
        }
        return to_json(header(store->revision()),
                       number_field("ID", r.id) + number_field("TTL", lease->remaining_seconds) +
                           number_field("grantedTTL", lease->granted_seconds) + key_list(lease->keys));
      });
}

std::string Server::Impl::leases(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_lease(body), caller, error,
      [](const Identity& who, const LeaseRequest&) { return may_lease(who); },
      [&](const LeaseRequest&) -> Result<std::string> {
        std::string list;
        for (const store::LeaseId id : store->leases()) {
          if (caller.who != nullptr && !permit_lease(*caller.who, id)) continue;  // Others' are not shown.
          list += fmt::format("{}{{\"ID\":\"{}\"}}", list.empty() ? ",\"leases\":[" : ",", id);
        }
        return to_json(header(store->revision()), list.empty() ? list : list + "]");
      });
}

std::string Server::Impl::status(const std::string& body, const Caller& caller, ErrorAnswer& error) {
  return ask(
      parse_lease(body), caller, error, [](const Identity&, const LeaseRequest&) { return Status(); },
      [&](const LeaseRequest&) -> Result<std::string> {
        const auto bytes = store->bytes();
        if (!bytes) return std::unexpected(bytes.error());
        const store::Revision revision = store->revision();
        return to_json(
            header(revision),
            fmt::format(R"(,"version":"{}","dbSize":"{}","leader":"{}","raftIndex":"{}","raftTerm":"1",)"
                        R"("raftAppliedIndex":"{}","dbSizeInUse":"{}")",
                        kEtcdVersion, *bytes, store->cluster_id(), revision, revision, *bytes));
      });
}

void Server::Impl::open_watch(const http::Request& request, http::Exchange& exchange, const Caller& caller) {
  const auto commands = parse_watch(request.body);
  if (!commands) {
    count(kWatchVerb, 400);  // What etcd calls 500 here is the client's fault.
    const ErrorAnswer error = error_answer(500, 2, commands.error().message);
    return exchange.reply(error.status, kJson, error.body);
  }
  const std::size_t more = std::max<std::size_t>(commands->size(), 1);
  if (caller.who != nullptr) {
    for (const WatchCommand& command : *commands) {
      const auto* wanted = std::get_if<WatchCreate>(&command);
      if (wanted == nullptr) continue;
      const Status allowed = may_read(*caller.who, wanted->key, wanted->range_end);
      if (allowed) continue;
      audit_denied(caller, request.path, allowed.error().message);
      return refuse(exchange, kWatchVerb, to_answer(allowed.error()));
    }
    if (hub->size_of(caller.who->name) + more > options.watches_per_token) {
      denied[2].fetch_add(1, std::memory_order_relaxed);
      return refuse(exchange, kWatchVerb,
                    error_answer(429, 8,
                                 fmt::format("token '{}' has {} watches, its limit: close some",
                                             caller.who->name, options.watches_per_token)));
    }
  }
  if (std::max(hub->size(), hub->streams()) + more > kWatchesMax) {
    return refuse(
        exchange, kWatchVerb,
        error_answer(429, 8,
                     fmt::format("this registry serves at most {} watches: close some", kWatchesMax)));
  }
  count(kWatchVerb, 200);
  hub->add(exchange.stream(kJson), *commands,
           caller.who == nullptr ? WatchHub::Owner{}
                                 : WatchHub::Owner{caller.who->name, caller.secret_hash, caller.ends});
}

Status Server::Impl::permit_grant(const Identity& who) {
  if (const Status allowed = may_lease(who); !allowed) return allowed;
  if (store->leases_of(who.name) < kLeasesPerToken) return {};
  denied[2].fetch_add(1, std::memory_order_relaxed);
  return fail(ErrorKind::overloaded,
              fmt::format("token '{}' has {} leases, its limit: revoke some", who.name, kLeasesPerToken));
}

// A lease belongs to the token that was granted it. One that is gone is nobody's: the store says so.
Status Server::Impl::permit_lease(const Identity& who, store::LeaseId id) {
  if (const Status allowed = may_lease(who); !allowed) return allowed;
  if (who.role == Role::admin) return {};
  const auto owner = store->lease_owner(id);
  if (!owner || *owner == who.name) return {};
  return fail(ErrorKind::denied,
              fmt::format("permission denied: lease {} is not token '{}''s", id, who.name));
}

// Of register-own: an id with a token of its own is that one's, and what another token's lease holds is
// another's, whatever its id.
Status Server::Impl::permit_key(const Identity& who, const std::string& key) {
  if (who.role != Role::register_own) return {};
  const std::string id(id_in(key));
  if (book->of_another(who, id)) {
    return fail(ErrorKind::denied,
                fmt::format("permission denied: token '{}' may not touch {}: another token has this name",
                            who.name, base::printable(key, kKeyShown)));
  }
  store::RangeRequest request;
  request.key = key;
  const auto present = store->range(request);
  if (!present) return std::unexpected(present.error());
  if (present->kvs.empty() || present->kvs.front().lease == 0) return {};
  const auto owner = store->lease_owner(present->kvs.front().lease);
  if (!owner || *owner == who.name) return {};
  return fail(ErrorKind::denied,
              fmt::format("permission denied: token '{}' may not touch {}: another token's "
                          "lease holds it",
                          who.name, base::printable(key, kKeyShown)));
}

// Else one lease would hold as many records as the disk has room for.
Status Server::Impl::room_under(const Identity& who, store::LeaseId id, const std::string& key) {
  const auto lease = store->time_to_live(id, true);
  if (!lease) return {};  // It is gone: the store says so.
  if (lease->keys.size() < kKeysPerLease || std::ranges::find(lease->keys, key) != lease->keys.end())
    return {};
  return fail(ErrorKind::denied,
              fmt::format("permission denied: token '{}' has {} records under lease {}, as many "
                          "as it may",
                          who.name, lease->keys.size(), id));
}

Status Server::Impl::permit_put(const Identity& who, const store::PutRequest& request) {
  if (const Status allowed = may_put(who, request); !allowed) return allowed;
  if (request.lease != 0) {
    if (const Status own = permit_lease(who, request.lease); !own) return own;
  }
  if (who.role == Role::register_own) {
    if (const Status room = room_under(who, request.lease, request.key); !room) return room;
  }
  return permit_key(who, request.key);
}

Status Server::Impl::permit_remove(const Identity& who, const store::DeleteRequest& request) {
  if (const Status allowed = may_remove(who, request); !allowed) return allowed;
  return permit_key(who, request.key);
}

Status Server::Impl::permit_txn(const Identity& who, const store::TxnRequest& request) {
  // What a compare tells is what a read would.
  for (const store::Compare& compare : request.compares) {
    if (const Status allowed = may_read(who, compare.key, compare.range_end); !allowed) return allowed;
  }
  for (const auto* ops : {&request.success, &request.failure}) {
    for (const store::Op& op : *ops) {
      Status allowed;
      if (const auto* range = std::get_if<store::RangeRequest>(&op)) {
        allowed = may_read(who, range->key, range->range_end);
      } else if (const auto* put = std::get_if<store::PutRequest>(&op)) {
        allowed = permit_put(who, *put);
      } else {
        allowed = permit_remove(who, std::get<store::DeleteRequest>(op));
      }
      if (!allowed) return allowed;
    }
  }
  return {};
}

}  // namespace ringshift::registry
