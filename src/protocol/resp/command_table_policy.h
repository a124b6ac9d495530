// What Ringshift does with the commands for which the facts alone do not decide, each with its reason. Part
// of command_table.cpp; everything else with keys is routed, and a command that neither names keys nor stands
// here does not compile.
#pragma once
#include <string_view>

#include "protocol/resp/command_table.h"

namespace ringshift::protocol::resp {

struct Policy {
  std::string_view name;  // "acl|*": every subcommand that has no line of its own.
  Handling handling;
  std::string_view reason = {};
  LocalCommand local = LocalCommand::none;
  FanOut fan_out = FanOut::none;
};

constexpr Policy refuse(std::string_view name, std::string_view reason) {
  return {name, Handling::unsupported, reason};
}
constexpr Policy answer(std::string_view name, LocalCommand local, std::string_view reason = {}) {
  return {name, Handling::local, reason, local};
}
constexpr Policy spread(std::string_view name, FanOut how, std::string_view reason) {
  return {name, Handling::fan_out, reason, LocalCommand::none, how};
}
constexpr Policy as(std::string_view name, Handling handling, std::string_view reason = {}) {
  return {name, handling, reason};
}

inline constexpr std::string_view kAskMembers = "administer the members directly";
inline constexpr std::string_view kNotClustered =
    "answers as a server that is not in a Redis Cluster: clients need not know of the members";
inline constexpr std::string_view kDatabases =
    "of those that the cluster has (`databases` in its spec, 1 unless said); of several clusters the fewest. "
    "Not between WATCH and EXEC, nor between MULTI and EXEC";
inline constexpr std::string_view kToDatabase = "to one of the cluster's databases";
inline constexpr std::string_view kSplitWrite = "the members' parts are not one atomic step";
inline constexpr std::string_view kPublish =
    "to the channel's member; the answer counts this proxy's clients, and each worker of another proxy as "
    "one. "
    "Between MULTI and EXEC the channel is taken for a key. A script publishes on its own member, where the "
    "channel's subscribers are if its name has the keys' hash tag";
inline constexpr std::string_view kSubscribe =
    "at the channel's member; the channels of keyspace events at every member. A client is disconnected when "
    "a member of its channels breaks, so that it knows that it may have missed messages; not between MULTI "
    "and "
    "EXEC";
inline constexpr std::string_view kBlocking = "waits at the one member of its keys";
inline constexpr std::string_view kOwnClients = "of the proxy's own clients";
inline constexpr std::string_view kOwn = "of the proxy itself, not of its members";
inline constexpr std::string_view kMeasured =
    "from the wakeup that reads a command to the one that puts its answer out; off until "
    "slowlog-log-slower-than "
    "is 0 or more";
inline constexpr std::string_view kAllMembers = "on every member; the first error, if there is one";
inline constexpr std::string_view kAnyMember = "asks one member: all hold the same";
inline constexpr std::string_view kTracking =
    "only OFF: a member's invalidation messages do not pass through a proxy";
inline constexpr std::string_view kNoTracking = "as for a client without tracking";
inline constexpr std::string_view kUsersOfProxy = "of the proxy's own users";
inline constexpr std::string_view kUsersFile = "users are changed in the proxy's configuration";

inline constexpr Policy kPolicies[] = {
    // Several keys, one command a member.
    as("mget", Handling::split_mget, "a failed member makes the whole answer an error, never a nil"),
    as("mset", Handling::split_mset, kSplitWrite),
    as("del", Handling::split_count, kSplitWrite),
    as("unlink", Handling::split_count, kSplitWrite),
    as("exists", Handling::split_count, "the members are not read at one instant"),
    as("touch", Handling::split_count, kSplitWrite),

    // Routed by keys that their specification does not tell in full.
    as("sort", Handling::routed,
       "BY and GET with a pattern that names other keys are refused, as in Redis Cluster"),
    as("sort_ro", Handling::routed,
       "BY and GET with a pattern that names other keys are refused, as in Redis Cluster"),
    as("eval", Handling::routed, "touches only the keys that it names; without keys on any member"),
    as("eval_ro", Handling::routed, "touches only the keys that it names; without keys on any member"),
    as("evalsha", Handling::routed,
       "touches only the keys that it names; a script that the proxy has seen is given to a member that "
       "lacks it"),
    as("evalsha_ro", Handling::routed,
       "touches only the keys that it names; a script that the proxy has seen is given to a member that "
       "lacks it"),
    as("fcall", Handling::routed,
       "touches only the keys that it names; FUNCTION LOAD brings it to every member"),
    as("fcall_ro", Handling::routed,
       "touches only the keys that it names; FUNCTION LOAD brings it to every member"),
    as("msetnx", Handling::routed, "all keys on one member: it sets all or none"),

    // Connection.
    answer("ping", LocalCommand::ping, "the proxy's own answer; no member is asked"),
    answer("echo", LocalCommand::echo),
    answer("hello", LocalCommand::hello, "mode is standalone, role is master, there are no modules"),
    answer("quit", LocalCommand::quit),
    answer("reset", LocalCommand::reset),
    answer("auth", LocalCommand::auth, kUsersOfProxy),
    answer("select", LocalCommand::select, kDatabases),
    refuse("swapdb", "the members would not swap at one instant"),
    as("move", Handling::names_database, kToDatabase),
    as("copy", Handling::names_database, kToDatabase),
    answer("client|caching", LocalCommand::client, kNoTracking),
    answer("client|getredir", LocalCommand::client, kNoTracking),
    answer("client|tracking", LocalCommand::client, kTracking),
    answer("client|trackinginfo", LocalCommand::client, kNoTracking),
    answer("client|id", LocalCommand::client),
    answer("client|getname", LocalCommand::client),
    answer("client|setname", LocalCommand::client),
    answer("client|reply", LocalCommand::client),
    answer("client|info", LocalCommand::client, "all fields; what a proxy does not have is 0"),
    answer("client|list", LocalCommand::client, kOwnClients),
    answer("client|kill", LocalCommand::client, kOwnClients),
    answer("client|no-evict", LocalCommand::client, kOwnClients),
    answer("client|pause", LocalCommand::client, kOwnClients),
    answer("client|unpause", LocalCommand::client, kOwnClients),
    answer("client|unblock", LocalCommand::client, kOwnClients),
    // Users.
    answer("acl|whoami", LocalCommand::acl, kUsersOfProxy),
    answer("acl|cat", LocalCommand::acl),
    answer("acl|users", LocalCommand::acl, kUsersOfProxy),
    answer("acl|list", LocalCommand::acl, kUsersOfProxy),
    answer("acl|getuser", LocalCommand::acl, kUsersOfProxy),
    answer("acl|genpass", LocalCommand::acl),
    answer("acl|dryrun", LocalCommand::acl, kUsersOfProxy),
    answer("acl|log", LocalCommand::acl, kUsersOfProxy),
    refuse("acl|deluser", kUsersFile),
    refuse("acl|setuser", kUsersFile),
    refuse("acl|load", kUsersFile),
    refuse("acl|save", kUsersFile),
    // The proxy as a server.
    answer("command", LocalCommand::command, "lists what is served"),
    answer("command|*", LocalCommand::command, "knows what is served"),
    answer("info", LocalCommand::info, "of the proxy itself, with a section for each member; no keyspace"),
    answer("time", LocalCommand::time, "the proxy's clock"),
    answer("role", LocalCommand::role, "always a master without replicas"),
    answer("config|get", LocalCommand::config, kOwn),
    answer("config|set", LocalCommand::config, kOwn),
    answer("config|resetstat", LocalCommand::config, kOwn),
    refuse("config|rewrite", "the proxy's settings are its command line and its specification"),
    answer("slowlog|get", LocalCommand::slowlog, kMeasured),
    answer("slowlog|len", LocalCommand::slowlog, kOwn),
    answer("slowlog|reset", LocalCommand::slowlog, kOwn),
    answer("latency|doctor", LocalCommand::latency, kOwn),
    answer("latency|graph", LocalCommand::latency, kOwn),
    answer("latency|histogram", LocalCommand::latency,
           "counts while latency-tracking is yes, as the slow log measures"),
    answer("latency|history", LocalCommand::latency, kOwn),
    answer("latency|latest", LocalCommand::latency, kOwn),
    answer("latency|reset", LocalCommand::latency, kOwn),
    answer("cluster|*", LocalCommand::cluster, kNotClustered),
    answer("cluster|help", LocalCommand::cluster, kNotClustered),
    answer("asking", LocalCommand::cluster, kNotClustered),
    answer("readonly", LocalCommand::cluster, kNotClustered),
    answer("readwrite", LocalCommand::cluster, kNotClustered),

    // The keyspace.
    spread("dbsize", FanOut::sum, "the members' sum; a key that is between two members may count twice"),
    spread("keys", FanOut::concat, "of every member, without the reserved keys; the members' order"),
    spread("randomkey", FanOut::random, "of a member chosen in proportion to its keys"),
    spread("scan", FanOut::scan,
           "one cursor over all members, one after the other; a key that moves meanwhile comes once"),
    spread("flushall", FanOut::flush, "on every member, when the proxy's settings allow it"),
    spread("flushdb", FanOut::flush, "on every member, when the proxy's settings allow it"),
    spread("wait", FanOut::wait,
           "the smallest number that any member answers, once each has what was written before, by anybody"),
    // Scripts and functions are the same on every member.
    spread("script|load", FanOut::same, kAllMembers),
    spread("script|exists", FanOut::merge_exists,
           "1 where every member has the script, or the proxy can give it to them"),
    spread("script|flush", FanOut::all_ok, kAllMembers),
    spread("script|kill", FanOut::any_ok, "on every member; OK when one had a script to end"),
    refuse("script|debug", "the debugger needs a connection to one server"),
    spread("function|load", FanOut::same, kAllMembers),
    spread("function|delete", FanOut::all_ok, kAllMembers),
    spread("function|flush", FanOut::all_ok, kAllMembers),
    spread("function|restore", FanOut::all_ok, kAllMembers),
    spread("function|kill", FanOut::any_ok, "on every member; OK when one had a function to end"),
    spread("function|list", FanOut::any, kAnyMember),
    spread("function|dump", FanOut::any, kAnyMember),
    spread("function|stats", FanOut::any, "one member's: another may be running a function"),
    spread("module|list", FanOut::any, kAnyMember),
    spread("lolwut", FanOut::any, "a member draws it"),

    // Transactions.
    as("multi", Handling::transaction,
       "runs on one member, that of its first key; a key of another: CROSSSLOT"),
    as("exec", Handling::transaction, "on the one member of its keys"),
    as("discard", Handling::transaction),
    as("watch", Handling::transaction, "keys of the one member on which the transaction runs"),
    as("unwatch", Handling::transaction),
    // Waiting.
    as("blpop", Handling::blocking, kBlocking),
    as("brpop", Handling::blocking, kBlocking),
    as("blmove", Handling::blocking, kBlocking),
    as("brpoplpush", Handling::blocking, kBlocking),
    as("blmpop", Handling::blocking, kBlocking),
    as("bzpopmin", Handling::blocking, kBlocking),
    as("bzpopmax", Handling::blocking, kBlocking),
    as("bzmpop", Handling::blocking, kBlocking),
    as("xread", Handling::blocking, "with BLOCK it waits at the one member of its keys"),
    as("xreadgroup", Handling::blocking, "with BLOCK it waits at the one member of its keys"),
    // Publish and subscribe: a channel has one member, chosen as for a key of its name.
    as("publish", Handling::pubsub, kPublish),
    as("spublish", Handling::pubsub, kPublish),
    as("subscribe", Handling::pubsub, kSubscribe),
    as("ssubscribe", Handling::pubsub, kSubscribe),
    as("unsubscribe", Handling::pubsub),
    as("sunsubscribe", Handling::pubsub),
    as("psubscribe", Handling::pubsub,
       "at every member; a message is delivered once. A client is disconnected when one of them breaks"),
    as("punsubscribe", Handling::pubsub),
    as("pubsub|*", Handling::pubsub,
       "the members' answers together; a worker of another proxy counts as one client"),

    // What belongs to one server.
    refuse("debug", "it can stop or change a member; ask that member directly"),
    refuse("monitor", "it would show every client's data; ask a member directly"),
    refuse("migrate", "keys move between members with `ringshift resize`"),
    refuse("restore-asking", "it belongs to Redis Cluster"),
    refuse("failover", kAskMembers),
    refuse("shutdown", kAskMembers),
    refuse("replicaof", kAskMembers),
    refuse("slaveof", kAskMembers),
    refuse("save", kAskMembers),
    refuse("bgsave", kAskMembers),
    refuse("bgrewriteaof", kAskMembers),
    refuse("lastsave", "each member saves by itself; ask it directly"),
    refuse("sync", "it is the replication protocol of one server"),
    refuse("psync", "it is the replication protocol of one server"),
    refuse("replconf", "it is the replication protocol of one server"),
    refuse("pfdebug", "it belongs to the tests of Redis"),
    refuse("pfselftest", "it belongs to the tests of Redis"),
    refuse("module|load", kAskMembers),
    refuse("module|loadex", kAskMembers),
    refuse("module|unload", kAskMembers),
    refuse("memory|doctor", "each member has its own memory; ask it directly"),
    refuse("memory|malloc-stats", "each member has its own memory; ask it directly"),
    refuse("memory|purge", "each member has its own memory; ask it directly"),
    refuse("memory|stats", "each member has its own memory; ask it directly"),
};

}  // namespace ringshift::protocol::resp
