// Any bytes as a ZooKeeper server's packet: a reply or an error, never a crash or a read beyond them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "coord/zookeeper/paths.h"
#include "coord/zookeeper/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace zookeeper = ringshift::coord::zookeeper;
  if (size == 0) return 0;
  std::string_view packet(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      (void)zookeeper::read_connected(packet);
      break;
    case 1:
      if (zookeeper::read_header(packet) && packet.size() + 16 != size - 1) std::abort();
      break;
    case 2:
      if (const auto node = zookeeper::read_node(packet); node && node->data && node->data->size() > size)
        std::abort();
      break;
    case 3:
      if (const auto names = zookeeper::read_children(packet); names && names->size() * 4 > size)
        std::abort();
      break;
    case 4:
      (void)zookeeper::read_notification(packet);
      break;
    case 5:
      (void)zookeeper::read_multi(packet);
      break;
    default: {
      // Every key has one path, and comes back from it.
      const std::string key = "/" + std::string(packet);
      const auto path = zookeeper::path_of("/chroot", key);
      if (!path || zookeeper::key_of("/chroot", *path) != key) std::abort();
      (void)zookeeper::key_of("", packet);
      (void)zookeeper::parse_ensemble(packet);
    }
  }
  return 0;
}
