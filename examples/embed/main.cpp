// Routes keys inside a program: reads a topology, asks it for owners, and swaps it for another one while it
// is in use, as a long-running service does when its spec changes.
//
//   embed BEFORE.yaml AFTER.yaml
#include <ringshift/diff.h>
#include <ringshift/snapshot.h>
#include <ringshift/snapshot_holder.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace topology = ringshift::topology;
using topology::Snapshot;

namespace {

ringshift::Result<topology::Spec> read_spec(const std::string& path) {
  std::ifstream file(path);
  if (!file) return ringshift::fail(ringshift::ErrorKind::not_found, path + ": cannot be opened");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return topology::parse_spec(text, path);
}

ringshift::Result<std::shared_ptr<const Snapshot>> compile(topology::Spec spec, std::uint64_t revision) {
  topology::Topology document;
  document.spec = std::move(spec);
  return Snapshot::compile(std::move(document), {0, revision});
}

const std::string& owner(const Snapshot& snapshot, const std::string& key) {
  return snapshot.members()[snapshot.route(key).member].id;
}

int fail(const ringshift::Error& error) {
  std::fprintf(stderr, "embed: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed BEFORE.yaml AFTER.yaml\n");
    return 2;
  }
  const auto before = read_spec(argv[1]), after = read_spec(argv[2]);
  if (!before) return fail(before.error());
  if (!after) return fail(after.error());
  const auto first = compile(*before, 1), second = compile(*after, 2);
  if (!first) return fail(first.error());
  if (!second) return fail(second.error());

  // One holder for the process. Each thread keeps a pointer of its own, and loads again when the generation
  // has changed: a read on the hot path is one atomic load.
  topology::SnapshotHolder<Snapshot> holder(*first);
  auto mine = holder.load();
  std::uint64_t seen = holder.generation();
  for (int i = 0; i < 5; ++i) {
    const std::string key = "user:" + std::to_string(i);
    std::printf("%s -> %s\n", key.c_str(), owner(*mine, key).c_str());
  }

  const auto old = mine;
  if (!holder.publish(*second)) std::fprintf(stderr, "embed: the topology in use is newer\n");
  if (holder.generation() != seen) {
    mine = holder.load();
    seen = holder.generation();
  }
  constexpr int kKeys = 100'000;
  int moved = 0;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "user:" + std::to_string(i);
    moved += owner(*old, key) != owner(*mine, key);
  }
  const auto diff = topology::diff(*before, *after);
  if (!diff) return fail(diff.error());
  std::printf("version %s -> %s\n", to_string(old->version).c_str(), to_string(mine->version).c_str());
  std::printf("moved: %.4f of the keyspace by the exact diff, %.4f of %d keys counted\n", diff->moved_share,
              static_cast<double>(moved) / kKeys, kKeys);
  return 0;
}
