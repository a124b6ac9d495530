#include "coord/zookeeper/transact.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "base/encoding.h"

namespace ringshift::coord::zookeeper {
namespace {

constexpr int kTriesMax = 32;
constexpr std::chrono::milliseconds kTryPause{5};  // After the first few.
constexpr int kTriesAtOnce = 4;

struct Seen {
  bool exists = false, directory = false;
  Stat stat;

  [[nodiscard]] bool is_key() const { return exists && !directory; }
};

bool is_conflict(Code code) {
  return code == Code::no_node || code == Code::bad_version || code == Code::node_exists ||
         code == Code::not_empty || code == Code::runtime_inconsistency;
}

class Transaction {
 public:
  Transaction(Attempt& attempt, const std::vector<Compare>& compares, const std::vector<Op>& ops)
      : attempt_(attempt), compares_(compares), ops_(ops) {}

  Result<Outcome> run() {
    if (Status resolved = resolve(); !resolved) return std::unexpected(std::move(resolved.error()));
    for (int tries = 0; tries < kTriesMax; ++tries) {
      if (tries >= kTriesAtOnce) std::this_thread::sleep_for(kTryPause);
      if (Status read = look(); !read) return std::unexpected(std::move(read.error()));
      if (!all_hold()) return Outcome{.held = false, .revision = zxid_};
      const Result<bool> made = make_missing_directories();
      if (!made) return std::unexpected(made.error());
      if (*made) continue;
      const Result<std::optional<Outcome>> done = write();
      if (!done) return std::unexpected(done.error());
      if (*done) return **done;
    }
    return fail(ErrorKind::retryable, fmt::format("ZooKeeper: '{}' and others change too fast to be written",
                                                  ops_.empty() ? compares_.front().key : ops_.front().key));
  }

 private:
  // The paths of all keys, and of the directories whose version tells that a key was made anew.
  Status resolve() {
    const auto add = [&](const std::string& key, bool compared, bool put) -> Status {
      auto path = path_of(attempt_.layout.chroot, key);
      if (!path) return std::unexpected(std::move(path.error()));
      if (compared || put) {
        directories_.emplace(parent_of(*path));
        if (put) above_puts_.emplace(parent_of(*path));
      }
      if (compared) {
        std::string directory(parent_of(*path));
        checked_.insert(directory);
        while (attempt_.layout.depth(directory) >= kPrunedDepth) {
          directory = std::string(parent_of(directory));
          directories_.insert(directory);
          checked_.insert(directory);
        }
      }
      paths_[key] = *std::move(path);
      return {};
    };
    for (const Compare& compare : compares_) {
      if (Status added = add(compare.key, true, false); !added) return added;
    }
    std::set<std::string> written;
    for (const Op& op : ops_) {
      if (Status added = add(op.key, false, op.kind == Op::Kind::put); !added) return added;
      if (!written.insert(op.key).second) {
        return fail(ErrorKind::invalid, fmt::format("'{}' is written twice in one transaction", op.key));
      }
    }
    for (const Op& op : ops_) {
      if (op.kind == Op::Kind::put && directories_.contains(paths_[op.key])) {
        return fail(ErrorKind::invalid,
                    fmt::format("ZooKeeper: '{}' cannot hold a value and have keys below it", op.key));
      }
    }
    return {};
  }

  // Directories first: see the header. One server answers in order and never goes back.
  Status look() {
    std::vector<std::string> requests = {sync_request(attempt_.layout.root())}, asked;
    for (const std::string& directory : directories_) asked.push_back(directory);
    for (const auto& [key, path] : paths_) asked.push_back(path);
    for (const std::string& path : asked) requests.push_back(get_data_request(path));
    const auto replies = call_all(attempt_.connection, std::move(requests), attempt_.deadline);
    if (!replies) return std::unexpected(replies.error());
    seen_.clear();
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const Reply& reply = (*replies)[i + 1];
      zxid_ = reply.header.zxid;
      Seen& seen = seen_[asked[i]];
      if (reply.header.code == Code::no_node) continue;
      if (reply.header.code != Code::ok) return std::unexpected(to_error(reply.header.code, asked[i]));
      const auto node = read_node(reply.body);
      if (!node) return std::unexpected(node.error());
      seen = {true, !node->data, node->stat};
    }
    return {};
  }

  bool all_hold() {
    return std::ranges::all_of(compares_, [&](const Compare& compare) {
      const Seen& seen = seen_[paths_[compare.key]];
      if (!seen.is_key()) return compare.value == 0;
      switch (compare.target) {
        case Compare::Target::mod_revision:
          return seen.stat.mzxid == compare.value;
        case Compare::Target::create_revision:
          return seen.stat.czxid == compare.value;
        case Compare::Target::lease:
          return seen.stat.ephemeral_owner == compare.value;
      }
      return false;
    });
  }

  // Whether there were any: then all must be looked at again.
  Result<bool> make_missing_directories() {
    bool any = false;
    for (const std::string& directory : directories_) {
      const Seen& seen = seen_[directory];
      if (!seen.exists) {
        if (Status made =
                make_directories(attempt_.connection, attempt_.layout, directory, attempt_.deadline);
            !made) {
          return std::unexpected(std::move(made.error()));
        }
        any = true;
      } else if (!seen.directory && directory != "/" && above_puts_.contains(directory)) {
        return fail(
            ErrorKind::invalid,
            fmt::format("ZooKeeper: '{}' holds a value, so there can be no keys below it", directory));
      }
    }
    return any;
  }

  // nullopt: something changed under us.
  Result<std::optional<Outcome>> write() {
    Outcome outcome{.held = true, .revision = zxid_};
    Multi multi;
    for (const std::string& directory : checked_) multi.check(directory, seen_[directory].stat.version);
    std::set<std::string> compared;
    for (const Compare& compare : compares_) {
      const Seen& seen = seen_[paths_[compare.key]];
      if (seen.exists && compared.insert(compare.key).second) {
        multi.check(paths_[compare.key], seen.stat.version);
      }
    }
    std::set<std::string> raised;  // Directories in which a key is made.
    for (const Op& op : ops_) {
      if (Status added = add_op(op, multi, raised, outcome); !added) return std::unexpected(added.error());
    }
    for (const std::string& directory : raised) {
      multi.set_data(directory, directory == "/" ? std::optional<std::string_view>("") : std::nullopt, -1);
    }
    if (multi.empty()) return outcome;
    attempt_.wrote = true;
    const auto reply = attempt_.connection.call(multi.request(), attempt_.deadline);
    if (!reply) {
      if (reply.error().kind == ErrorKind::invalid) attempt_.wrote = false;  // Too large: never sent.
      return std::unexpected(reply.error());
    }
    attempt_.wrote = false;
    Code code = reply->header.code;
    if (code == Code::ok) {
      const auto answer = read_multi(reply->body);
      if (!answer) return std::unexpected(answer.error());
      code = answer->code;
      outcome.revision = answer->last_stat ? answer->last_stat->mzxid : reply->header.zxid;
    }
    if (code == Code::ok) return outcome;
    if (is_conflict(code)) return std::nullopt;
    return std::unexpected(to_error(code, ops_.empty() ? compares_.front().key : ops_.front().key));
  }

  Status add_op(const Op& op, Multi& multi, std::set<std::string>& raised, Outcome& outcome) {
    const std::string& path = paths_[op.key];
    const Seen& seen = seen_[path];
    if (op.kind == Op::Kind::remove) {
      if (!seen.is_key()) return {};
      multi.remove(path, seen.stat.version);
      ++outcome.removed;
      return {};
    }
    if (seen.exists && seen.stat.children > 0) {
      return fail(ErrorKind::invalid,
                  fmt::format("ZooKeeper: '{}' has keys below it and cannot hold a value", op.key));
    }
    if (seen.is_key() && seen.stat.ephemeral_owner == op.lease) {
      multi.set_data(path, op.value, seen.stat.version);
      return {};
    }
    // A node's owner is for life: one that is another lease's, or an empty directory, is replaced.
    if (seen.exists) multi.remove(path, seen.stat.version);
    multi.create(path, op.value, attempt_.layout.access, op.lease != 0);
    raised.emplace(parent_of(path));
    return {};
  }

  Attempt& attempt_;
  const std::vector<Compare>& compares_;
  const std::vector<Op>& ops_;
  std::map<std::string, std::string> paths_;  // By key.
  std::set<std::string> directories_, checked_, above_puts_;
  std::map<std::string, Seen> seen_;  // By path.
  std::int64_t zxid_ = 0;
};

// Directories that the removals left empty. What cannot be done now is done after the next removal there.
void prune(Attempt& attempt, const std::vector<Op>& ops) {
  std::set<std::string> directories;
  for (const Op& op : ops) {
    if (op.kind != Op::Kind::remove) continue;
    if (const auto path = path_of(attempt.layout.chroot, op.key)) directories.emplace(parent_of(*path));
  }
  for (std::string directory : directories) {
    for (; attempt.layout.depth(directory) >= kPrunedDepth; directory = std::string(parent_of(directory))) {
      const auto reply = attempt.connection.call(get_data_request(directory), attempt.deadline);
      if (!reply || reply->header.code != Code::ok) break;
      const auto node = read_node(reply->body);
      if (!node || node->data || node->stat.children > 0) break;
      const auto removed =
          attempt.connection.call(delete_request(directory, node->stat.version), attempt.deadline);
      if (!removed || removed->header.code != Code::ok) break;
    }
  }
}

}  // namespace

Result<Outcome> transact(Attempt& attempt, const std::vector<Compare>& compares, const std::vector<Op>& ops) {
  Result<Outcome> outcome = Transaction(attempt, compares, ops).run();
  if (outcome && outcome->removed > 0) prune(attempt, ops);
  return outcome;
}

Result<Outcome> put_existing_first(Attempt& attempt, const Op& op) {
  const auto path = path_of(attempt.layout.chroot, op.key);
  if (!path) return std::unexpected(path.error());
  attempt.wrote = true;
  const auto reply = attempt.connection.call(set_data_request(*path, op.value, -1), attempt.deadline);
  if (!reply) {
    if (reply.error().kind == ErrorKind::invalid) attempt.wrote = false;
    return std::unexpected(reply.error());
  }
  attempt.wrote = false;
  if (reply->header.code == Code::no_node) return transact(attempt, {}, {op});
  if (reply->header.code != Code::ok) return std::unexpected(to_error(reply->header.code, op.key));
  const auto stat = read_stat(reply->body);
  if (!stat) return std::unexpected(stat.error());
  if (stat->children > 0) {  // It was a directory, and is one again.
    static_cast<void>(
        attempt.connection.call(set_data_request(*path, std::nullopt, stat->version), attempt.deadline));
    return fail(ErrorKind::invalid,
                fmt::format("ZooKeeper: '{}' has keys below it and cannot hold a value", op.key));
  }
  if (stat->ephemeral_owner == op.lease) return Outcome{.held = true, .revision = stat->mzxid};
  return transact(attempt, {}, {op});  // Another lease's, maybe of our own life before: it is replaced.
}

}  // namespace ringshift::coord::zookeeper
