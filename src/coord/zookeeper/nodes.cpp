#include "coord/zookeeper/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/encoding.h"

namespace ringshift::coord::zookeeper {
namespace {

std::uint64_t stir(std::uint64_t x) {  // SplitMix64's last step.
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// The nodes at `paths` and everything below them.
Status read_trees(Connection& connection, const Layout& layout, std::vector<std::string> paths,
                  std::vector<KeyValue>& out, Deadline deadline) {
  while (!paths.empty()) {
    std::vector<std::string> requests, directories;
    for (const std::string& path : paths) requests.push_back(get_data_request(path));
    auto replies = call_all(connection, std::move(requests), deadline);
    if (!replies) return std::unexpected(std::move(replies.error()));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const Reply& reply = (*replies)[i];
      if (reply.header.code == Code::no_node) continue;  // Removed meanwhile.
      if (reply.header.code != Code::ok) return std::unexpected(to_error(reply.header.code, paths[i]));
      Result<Node> node = read_node(reply.body);
      if (!node) return std::unexpected(std::move(node.error()));
      if (node->stat.children > 0) directories.push_back(paths[i]);
      if (!node->data) continue;
      if (auto key = key_of(layout.chroot, paths[i]))
        out.push_back(to_key_value(*std::move(key), *std::move(node)));
    }
    requests.clear();
    for (const std::string& directory : directories) requests.push_back(get_children_request(directory));
    replies = call_all(connection, std::move(requests), deadline);
    if (!replies) return std::unexpected(std::move(replies.error()));
    paths.clear();
    for (std::size_t i = 0; i < directories.size(); ++i) {
      const Reply& reply = (*replies)[i];
      if (reply.header.code == Code::no_node) continue;
      if (reply.header.code != Code::ok) return std::unexpected(to_error(reply.header.code, directories[i]));
      const auto names = read_children(reply.body);
      if (!names) return std::unexpected(names.error());
      for (const std::string& name : *names) paths.push_back(child_of(directories[i], name));
    }
  }
  return {};
}

}  // namespace

std::int64_t Identity::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

void Identity::saw(std::uint64_t cluster_id, std::int64_t mzxid) {
  const std::lock_guard lock(mutex_);
  if (cluster_id == std::max<std::uint64_t>(base_ ^ salt_, 1)) newest_ = std::max(newest_, mzxid);
}

Result<std::uint64_t> Identity::seen_after_sync(const Stat& root, std::int64_t zxid,
                                                std::int64_t newest_before, Clock::time_point now) {
  const std::uint64_t base =
      stir(static_cast<std::uint64_t>(root.czxid) ^ stir(static_cast<std::uint64_t>(root.ctime)));
  const std::lock_guard lock(mutex_);
  if (base == base_ && zxid < newest_before) {
    if (!behind_since_) behind_since_ = now;
    if (now - *behind_since_ < kBehindMax) {
      return fail(
          ErrorKind::retryable,
          fmt::format("ZooKeeper: the server is at {:#x}, behind {:#x} that was seen already: its leader "
                      "was deposed, or the ensemble was restored from a backup",
                      zxid, newest_before));
    }
    salt_ = stir(salt_ ^ static_cast<std::uint64_t>(zxid));
    newest_ = zxid;
  } else if (base != base_) {
    base_ = base;
    salt_ = 0;
    newest_ = zxid;
  }
  behind_since_.reset();
  return std::max<std::uint64_t>(base_ ^ salt_, 1);
}

int Layout::depth(std::string_view path) const {
  return static_cast<int>(std::ranges::count(path.substr(std::min(path.size(), chroot.size())), '/'));
}

KeyValue to_key_value(std::string key, Node node) {
  KeyValue kv;
  kv.key = std::move(key);
  kv.value = std::move(node.data).value_or("");
  kv.create_revision = node.stat.czxid;
  kv.mod_revision = node.stat.mzxid;
  kv.version = std::int64_t{node.stat.version} + 1;
  kv.lease = node.stat.ephemeral_owner;
  return kv;
}

Result<std::vector<Reply>> call_all(Connection& connection, std::vector<std::string> requests,
                                    Deadline deadline) {
  std::vector<Reply> out;
  for (std::size_t begin = 0; begin < requests.size(); begin += kPipelineMax) {
    const std::size_t end = std::min(requests.size(), begin + kPipelineMax);
    std::vector<std::string> some(
        std::make_move_iterator(requests.begin() + static_cast<std::ptrdiff_t>(begin)),
        std::make_move_iterator(requests.begin() + static_cast<std::ptrdiff_t>(end)));
    auto replies = connection.call(std::move(some), deadline);
    if (!replies) return std::unexpected(std::move(replies.error()));
    std::ranges::move(*replies, std::back_inserter(out));
  }
  return out;
}

Result<Listing> list_keys(Connection& connection, const Layout& layout, Identity& identity,
                          std::string_view prefix, Deadline deadline) {
  const auto place = place_of(layout.chroot, prefix);
  if (!place) return std::unexpected(place.error());
  const std::string root = layout.root();
  Listing out;
  for (int round = 0;; ++round) {
    const std::int64_t newest_before = identity.newest();
    auto replies = connection.call(
        {sync_request(root), exists_request(root), get_children_request(place->directory)}, deadline);
    if (!replies) return std::unexpected(std::move(replies.error()));
    for (const Reply& reply : *replies) {
      if (reply.header.code != Code::ok && reply.header.code != Code::no_node) {
        return std::unexpected(to_error(reply.header.code, place->directory));
      }
    }
    if ((*replies)[1].header.code == Code::no_node) {
      if (round > 0) return fail(ErrorKind::retryable, fmt::format("ZooKeeper: {} was removed", root));
      if (Status made = make_root(connection, layout, deadline); !made) return std::unexpected(made.error());
      continue;
    }
    const auto stat = read_stat((*replies)[1].body);
    if (!stat) return std::unexpected(stat.error());
    out.range.revision = (*replies)[1].header.zxid;
    const auto id = identity.seen_after_sync(*stat, out.range.revision, newest_before, Clock::now());
    if (!id) return std::unexpected(id.error());
    out.range.cluster_id = *id;
    if ((*replies)[2].header.code == Code::no_node) return out;
    const auto names = read_children((*replies)[2].body);
    if (!names) return std::unexpected(names.error());
    for (const std::string& name : *names) {
      if (place->directory == "/" && name == "zookeeper") continue;  // The server's own.
      const auto decoded = decode_name(name);
      if (decoded && decoded->starts_with(place->stem)) out.top.push_back(child_of(place->directory, name));
    }
    break;
  }
  if (Status read = read_trees(connection, layout, out.top, out.range.kvs, deadline); !read) {
    return std::unexpected(std::move(read.error()));
  }
  std::ranges::sort(out.range.kvs, {}, &KeyValue::key);
  for (const KeyValue& kv : out.range.kvs) identity.saw(out.range.cluster_id, kv.mod_revision);
  return out;
}

Status make_directories(Connection& connection, const Layout& layout, const std::string& path,
                        Deadline deadline) {
  if (path == "/" || path.size() <= layout.chroot.size()) return make_root(connection, layout, deadline);
  const auto node_reply = connection.call(get_data_request(path), deadline);
  if (!node_reply) return std::unexpected(node_reply.error());
  if (node_reply->header.code == Code::ok) {
    const auto node = read_node(node_reply->body);
    if (!node) return std::unexpected(node.error());
    if (!node->data) return {};
    return fail(ErrorKind::invalid,
                fmt::format("ZooKeeper: '{}' holds a value, so there can be no keys below it", path));
  }
  if (node_reply->header.code != Code::no_node)
    return std::unexpected(to_error(node_reply->header.code, path));
  const std::string above(parent_of(path));
  if (Status made = make_directories(connection, layout, above, deadline); !made) return made;
  Multi multi;
  multi.create(path, std::nullopt, layout.access, false);
  // Whoever compared a key down here read this number, too: see transact.h.
  if (layout.depth(path) >= kPrunedDepth) multi.set_data(above, std::nullopt, -1);
  const auto reply = connection.call(multi.request(), deadline);
  if (!reply) return std::unexpected(reply.error());
  if (reply->header.code != Code::ok && reply->header.code != Code::node_exists) {
    return std::unexpected(to_error(reply->header.code, path));
  }
  const auto answer = read_multi(reply->body);
  if (!answer && reply->header.code == Code::node_exists) return {};
  if (!answer) return std::unexpected(answer.error());
  if (answer->code == Code::ok || answer->code == Code::node_exists) return {};
  if (answer->code == Code::no_node) return fail(ErrorKind::retryable, fmt::format("{} was removed", above));
  return std::unexpected(to_error(answer->code, path));
}

Status make_root(Connection& connection, const Layout& layout, Deadline deadline) {
  const std::string root = layout.root();
  for (std::size_t end = 1; end <= root.size();) {
    end = std::min(root.find('/', end), root.size());
    const std::string path = root.substr(0, end++);
    // Above our own part others may want to put theirs.
    const Access access = path.size() < layout.chroot.size() ? Access::world : layout.access;
    const auto reply = connection.call(create_request(path, std::nullopt, access, false), deadline);
    if (!reply) return std::unexpected(reply.error());
    if (reply->header.code == Code::ok || reply->header.code == Code::node_exists) continue;
    // A shared ensemble may let us work below the chroot and not make it.
    const auto there = connection.call(exists_request(path), deadline);
    if (!there) return std::unexpected(there.error());
    if (there->header.code != Code::ok) return std::unexpected(to_error(reply->header.code, path));
  }
  return {};
}

}  // namespace ringshift::coord::zookeeper
