// The controller's side of members: one named, blocking connection to each, and the few things that a resize
// asks of a member. Not thread-safe; the mover has its own connections.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/sync_client.h"
#include "resize/phases.h"
#include "ringshift/snapshot.h"

namespace ringshift::resize {

struct ClientEntry {
  std::string id, name, address, flags, command;
};

// The state in a member's stamp, in the order of a step.
enum class Gate { closed, open, done };

class Members {
 public:
  // `name`: for CLIENT SETNAME, "rs:<controller id>".
  explicit Members(std::string name, std::shared_ptr<const backend::MemberAccess> access = nullptr)
      : name_(std::move(name)), access_(std::move(access)) {}

  // A live connection; made anew when the last one broke or the address changed.
  [[nodiscard]] Result<backend::SyncClient*> client(const topology::Member& member);
  // One call; the connection is dropped when it fails, so that the next call makes a new one.
  [[nodiscard]] Result<protocol::resp::Value> call(const topology::Member& member,
                                                   std::initializer_list<std::string_view> arguments);
  [[nodiscard]] Result<protocol::resp::Value> call_raw(const topology::Member& member,
                                                       const std::string& command);
  // One command to each member, all at once: it takes as long as the slowest member, not the sum, and every
  // answer was awaited when it returns. REQUIRES: as many commands as members, no member twice.
  [[nodiscard]] std::vector<Result<protocol::resp::Value>> call_each(
      const std::vector<topology::Member>& members, const std::vector<std::string>& commands);

  // Closes all connections; the next call makes a new one. For when they have been idle, or are not needed.
  void hang_up() { connections_.clear(); }

  [[nodiscard]] Result<std::string> run_id(const topology::Member& member);
  [[nodiscard]] Result<RunIds> run_ids(const std::vector<topology::Member>& members);
  // On each member, all at once. Refused as `stale` by a member that has the stamp of a later step, or this
  // step's `done`; `open` also by one that has none of this step. The first failure; the others may have done
  // it.
  [[nodiscard]] Status set_stamps(const std::vector<topology::Member>& members, const topology::Fence& fence,
                                  Gate gate);
  [[nodiscard]] Result<std::string> stamp(const topology::Member& member);  // "" when there is none.
  [[nodiscard]] Result<std::vector<ClientEntry>> clients(const topology::Member& member);
  // Kills on each member every connection of ours (named rs:...) whose name is not in `allowed`; gives how
  // many. Also those with this object's own name, but not its connection; they are not counted.
  [[nodiscard]] Result<std::uint64_t> fence(const std::vector<topology::Member>& members,
                                            const std::set<std::string>& allowed);
  [[nodiscard]] Result<std::uint64_t> key_count(const topology::Member& member);

  // A field of INFO: "" when absent.
  [[nodiscard]] Result<std::string> info(const topology::Member& member, std::string_view section,
                                         std::string_view field);

  // REQUIRES for a forward resize: checks what PREP checks (RESIZE.md), naming the member and the fix.
  // `routers`: of a member that joins, the names of our routers' connections. Those of others serve another
  // cluster from it, whose keys the resize would take; null: not looked at.
  [[nodiscard]] Status check(const topology::Member& member, bool allow_foreign,
                             const std::set<std::string>* routers = nullptr);
  // Removes from `member` the keys that the target gives to it and the present topology does not (I0),
  // but for those of the `spared` slices.
  [[nodiscard]] Result<std::uint64_t> purge(const topology::Member& member,
                                            const topology::Snapshot& snapshot,
                                            const topology::SliceSet& spared = {});

 private:
  struct Connection {
    std::string address;
    std::unique_ptr<backend::SyncClient> client;
  };
  // The connection is dropped when it broke; an error reply is a failure.
  [[nodiscard]] Result<protocol::resp::Value> settle(const topology::Member& member,
                                                     Result<std::vector<protocol::resp::Value>> replies);
  [[nodiscard]] Result<std::uint64_t> kill_others(const topology::Member& member,
                                                  std::string_view client_list,
                                                  const std::set<std::string>& allowed);

  const std::string name_;
  const std::shared_ptr<const backend::MemberAccess> access_;  // Null: plain, without a password.
  std::map<std::string, Connection> connections_;
};

// Somebody who may write around the proxies: not ours, no link of replication or MONITOR, and no Sentinel,
// which only looks at a member and tells it whom to follow.
[[nodiscard]] bool is_foreign(const ClientEntry& entry);
// The lines of CLIENT LIST.
[[nodiscard]] std::vector<ClientEntry> parse_client_list(std::string_view text);
// The value of "field:" in an INFO reply; "" when absent.
[[nodiscard]] std::string info_field(std::string_view info, std::string_view field);

}  // namespace ringshift::resize
