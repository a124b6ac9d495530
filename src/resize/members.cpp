#include "resize/members.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "resize/observer.h"
#include "transfer/steps.h"

namespace ringshift::resize {

using backend::SyncClient;
using protocol::resp::Value;
using topology::Member;

namespace {

constexpr std::chrono::milliseconds kConnectTimeout{1000};
constexpr std::chrono::milliseconds kRequestTimeout{2000};
constexpr std::string_view kScanCount = "1000";

std::unexpected<Error> about(const Member& member, const Error& error) {
  return fail(error.kind, fmt::format("member {} ({}): {}", member.id, member.address, error.message));
}

// The number of a database other than 0 that has keys, from INFO keyspace ("db7:keys=1,..."); "" when none
// has.
std::string other_database(std::string_view keyspace) {
  while (!keyspace.empty()) {
    const std::size_t end = std::min(keyspace.find('\n'), keyspace.size() - 1);
    const std::string_view line = keyspace.substr(0, end);
    keyspace.remove_prefix(end + 1);
    const std::size_t colon = line.find(':');
    if (!line.starts_with("db") || colon == std::string_view::npos) continue;
    if (const std::string_view number = line.substr(2, colon - 2); number != "0") return std::string(number);
  }
  return "";
}

}  // namespace

Result<SyncClient*> Members::client(const Member& member) {
  Connection& connection = connections_[member.id];
  if (connection.client != nullptr && connection.address == member.address) return connection.client.get();
  backend::SyncOptions options;
  options.connect_timeout = kConnectTimeout;
  options.request_timeout = kRequestTimeout;
  options.name = name_;
  options.access = access_;
  auto made = SyncClient::connect(member.address, options);
  if (!made) return about(member, made.error());
  connection = {member.address, std::move(*made)};
  return connection.client.get();
}

Result<Value> Members::call_raw(const Member& member, const std::string& command) {
  Result<SyncClient*> connected = client(member);
  if (!connected) return std::unexpected(connected.error());
  return settle(member, (*connected)->pipeline(command, 1));
}

Result<Value> Members::settle(const Member& member, Result<std::vector<Value>> replies) {
  if (!replies) {
    connections_.erase(member.id);
    return about(member, replies.error());
  }
  if (replies->front().is_error()) {
    return about(member, Error{ErrorKind::retryable, replies->front().text});
  }
  return std::move(replies->front());
}

std::vector<Result<Value>> Members::call_each(const std::vector<Member>& members,
                                              const std::vector<std::string>& commands) {
  std::vector<Status> sent;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Result<SyncClient*> connected = client(members[i]);
    sent.push_back(connected ? (*connected)->send(commands[i]) : std::unexpected(connected.error()));
    if (connected && !sent.back()) {
      connections_.erase(members[i].id);
      sent.back() = about(members[i], sent.back().error());
    }
  }
  std::vector<Result<Value>> answers;
  for (std::size_t i = 0; i < members.size(); ++i) {
    answers.push_back(sent[i] ? settle(members[i], connections_[members[i].id].client->receive(1))
                              : std::unexpected(sent[i].error()));
  }
  return answers;
}

Result<Value> Members::call(const Member& member, std::initializer_list<std::string_view> arguments) {
  std::string command;
  protocol::resp::append_command(command, arguments);
  return call_raw(member, command);
}

std::string info_field(std::string_view info, std::string_view field) {
  std::size_t at = 0;
  while (at < info.size()) {
    std::size_t end = info.find("\r\n", at);
    if (end == std::string_view::npos) end = info.size();
    const std::string_view line = info.substr(at, end - at);
    if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':') {
      return std::string(line.substr(field.size() + 1));
    }
    at = end + 2;
  }
  return "";
}

Result<std::string> Members::info(const Member& member, std::string_view section, std::string_view field) {
  const Result<Value> reply = call(member, {"INFO", section});
  if (!reply) return std::unexpected(reply.error());
  return info_field(reply->text, field);
}

Result<std::string> Members::run_id(const Member& member) {
  Result<std::string> id = info(member, "server", "run_id");
  if (id && id->empty()) return about(member, Error{ErrorKind::invalid, "INFO server has no run_id"});
  return id;
}

Result<RunIds> Members::run_ids(const std::vector<Member>& members) {
  RunIds ids;
  for (const Member& member : members) {
    Result<std::string> id = run_id(member);
    if (!id) return std::unexpected(id.error());
    ids[member.id] = std::move(*id);
  }
  return ids;
}

Status Members::set_stamps(const std::vector<Member>& members, const topology::Fence& fence, Gate gate) {
  std::vector<std::string> commands;
  for (const Member& member : members) {
    transfer::append_set_stamp(commands.emplace_back(), fence,
                               gate == Gate::open   ? transfer::open_stamp(fence, member.id)
                               : gate == Gate::done ? transfer::done_stamp(fence, member.id)
                                                    : transfer::closed_stamp(fence, member.id));
  }
  const std::vector<Result<Value>> replies = call_each(members, commands);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!replies[i]) return std::unexpected(replies[i].error());
    if (replies[i]->text == "STALE") {
      return about(members[i], Error{ErrorKind::stale,
                                     "has the stamp of another step, or lost it: another controller is at "
                                     "work, or the member evicts its keys"});
    }
  }
  return {};
}

Result<std::string> Members::stamp(const Member& member) {
  Result<Value> reply = call(member, {"GET", transfer::kStampKey});
  if (!reply) return std::unexpected(reply.error());
  return std::move(reply->text);
}

std::vector<ClientEntry> parse_client_list(std::string_view text) {
  std::vector<ClientEntry> entries;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ClientEntry entry;
    while (!line.empty()) {
      const std::size_t space = line.find(' ');
      const std::string_view field = line.substr(0, space);
      line = space == std::string_view::npos ? std::string_view{} : line.substr(space + 1);
      const std::size_t equals = field.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = field.substr(0, equals);
      const std::string_view value = field.substr(equals + 1);
      if (name == "id") entry.id = value;
      if (name == "name") entry.name = value;
      if (name == "addr") entry.address = value;
      if (name == "flags") entry.flags = value;
      if (name == "cmd") entry.command = value;
    }
    if (!entry.id.empty()) entries.push_back(std::move(entry));
  }
  return entries;
}

bool is_foreign(const ClientEntry& entry) {
  if (entry.flags.find_first_of("SMO") != std::string::npos) return false;  // Replication, MONITOR.
  if (entry.name.starts_with("sentinel-") &&
      (entry.name.ends_with("-cmd") || entry.name.ends_with("-pubsub"))) {
    return false;
  }
  return !entry.name.starts_with(transfer::kReservedPrefix);
}

Result<std::vector<ClientEntry>> Members::clients(const Member& member) {
  const Result<Value> reply = call(member, {"CLIENT", "LIST"});
  if (!reply) return std::unexpected(reply.error());
  return parse_client_list(reply->text);
}

Result<std::uint64_t> Members::fence(const std::vector<Member>& members,
                                     const std::set<std::string>& allowed) {
  std::string command;
  protocol::resp::append_command(command, std::initializer_list<std::string_view>{"CLIENT", "LIST"});
  const std::vector<Result<Value>> lists =
      call_each(members, std::vector<std::string>(members.size(), command));
  std::uint64_t killed = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!lists[i]) return std::unexpected(lists[i].error());
    const Result<std::uint64_t> here = kill_others(members[i], lists[i]->text, allowed);
    if (!here) return std::unexpected(here.error());
    killed += *here;
  }
  return killed;
}

Result<std::uint64_t> Members::kill_others(const Member& member, std::string_view client_list,
                                           const std::set<std::string>& allowed) {
  const std::string own_id = std::to_string(connections_[member.id].client->client_id());
  std::uint64_t killed = 0;
  for (const ClientEntry& entry : parse_client_list(client_list)) {
    if (!entry.name.starts_with(transfer::kReservedPrefix) || entry.name == kObserverName) continue;
    // Of our own name only this connection may live on: any other is one that we, or our mover, gave up, and
    // the member may yet execute what it had sent there (I3).
    const bool ours = entry.name == name_;
    if (ours ? entry.id == own_id : allowed.contains(entry.name)) continue;
    const Result<Value> reply = call(member, {"CLIENT", "KILL", "ID", entry.id});
    if (!reply) return std::unexpected(reply.error());
    if (!ours) killed += static_cast<std::uint64_t>(reply->integer);  // 0 when it left by itself.
  }
  return killed;
}

Result<std::uint64_t> Members::key_count(const Member& member) {
  const Result<Value> reply = call(member, {"DBSIZE"});
  if (!reply) return std::unexpected(reply.error());
  return static_cast<std::uint64_t>(reply->integer);
}

Status Members::check(const Member& member, bool allow_foreign, const std::set<std::string>* routers) {
  // Whatever fails after this one fails because the member does not allow it, not because it is away.
  if (const Result<std::string> there = run_id(member); !there) return std::unexpected(there.error());
  const Result<Value> eval =
      call(member, {"EVAL", "return {redis.call('DUMP',KEYS[1])}", "1", transfer::kStampKey});
  if (!eval) {
    return fail(ErrorKind::denied,
                eval.error().message + "; a resize needs EVAL, DUMP and RESTORE on every member");
  }
  const Result<Value> keyspace = call(member, {"INFO", "keyspace"});
  if (!keyspace) return std::unexpected(keyspace.error());
  if (const std::string db = other_database(keyspace->text); !db.empty()) {
    return fail(ErrorKind::invalid,
                fmt::format("member {} ({}): database {} has keys; a resize moves database 0 only: "
                            "empty or move the others first",
                            member.id, member.address, db));
  }
  const Result<std::vector<ClientEntry>> entries = clients(member);
  if (!entries) {
    return fail(ErrorKind::denied,
                entries.error().message + "; a strict resize needs CLIENT LIST and CLIENT KILL");
  }
  for (const ClientEntry& entry : *entries) {
    const bool a_router = entry.name.starts_with(transfer::kReservedPrefix) && entry.name != kObserverName &&
                          entry.name != name_;
    if (!allow_foreign && a_router && routers != nullptr && !routers->contains(entry.name)) {
      return fail(
          ErrorKind::invalid,
          fmt::format("member {} ({}): {} from {} is connected, a router of another cluster, whose keys "
                      "would be taken: one server serves one cluster; --allow-foreign if that one is "
                      "no more",
                      member.id, member.address, entry.name, entry.address));
    }
    if (allow_foreign || !is_foreign(entry)) continue;
    return fail(
        ErrorKind::invalid,
        fmt::format("member {} ({}): client {} from {} is not ours (last command {}); a client that writes "
                    "around the proxies loses data in a resize: disconnect it, or say --allow-foreign",
                    member.id, member.address, entry.id, entry.address, entry.command));
  }
  return {};
}

Result<std::uint64_t> Members::purge(const Member& member, const topology::Snapshot& snapshot,
                                     const topology::SliceSet& spared) {
  const topology::MemberIndex self = snapshot.index_of(member.id);
  std::uint64_t purged = 0;
  std::string cursor = "0";
  do {
    const Result<Value> page = call(member, {"SCAN", cursor, "COUNT", kScanCount});
    if (!page) return std::unexpected(page.error());
    if (page->items.size() != 2)
      return about(member, Error{ErrorKind::internal, "SCAN answered what is no page"});
    cursor = page->items[0].text;
    std::vector<std::string_view> leftovers = {"UNLINK"};
    for (const Value& key : page->items[1].items) {
      if (key.text.starts_with(transfer::kReservedPrefix)) continue;
      if (topology::contains(spared, snapshot.slice(key.text))) continue;
      if (snapshot.owner_after(key.text) == self && snapshot.owner_before(key.text) != self)
        leftovers.push_back(key.text);
    }
    if (leftovers.size() == 1) continue;
    std::string command;
    protocol::resp::append_command(command, leftovers);
    const Result<Value> reply = call_raw(member, command);
    if (!reply) return std::unexpected(reply.error());
    purged += static_cast<std::uint64_t>(reply->integer);
  } while (cursor != "0");
  return purged;
}

}  // namespace ringshift::resize
