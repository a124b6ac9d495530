// Listening sockets on their way from one process to its successor.
//
// They go over a unix socket that keeps packets apart (SOCK_SEQPACKET), as SCM_RIGHTS: both processes then
// have the same sockets, with the same queue of connections that nobody has accepted yet. So nothing that
// queue holds is lost when one of the two closes its descriptors, which SO_REUSEPORT alone cannot promise: a
// socket of such a group takes its own queue with it. Functions block up to their timeout: for threads that
// are no event loop. Failure: an error that says which step; nothing is sent in part.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/descriptor.h"
#include "ringshift/error.h"

namespace ringshift::net {

// By the address that they listen on, as Listener::address() tells it.
using ListeningSockets = std::map<std::string, std::vector<Descriptor>>;

struct Packet {
  std::string text;
  std::vector<Descriptor> descriptors;
};

inline constexpr std::size_t kMaxPacketText = 16U << 10;
inline constexpr std::size_t kMaxPacketDescriptors = 64;  // The kernel allows 253.

// REQUIRES: within the two bounds above.
[[nodiscard]] Status send_packet(int socket, std::string_view text, std::span<const Descriptor> descriptors);
// An empty text: the other end has closed. not_found: nothing came within `timeout`.
[[nodiscard]] Result<Packet> receive_packet(int socket, std::chrono::milliseconds timeout);

// Connects to who listens at `path`; no descriptor when nobody does (a file that a dead process left, or no
// file). An error: the path is something else, or may not be used.
[[nodiscard]] Result<Descriptor> connect_packets(const std::string& path);
// Listens at `path`, which must not exist, for this user alone.
[[nodiscard]] Result<Descriptor> listen_packets(const std::string& path);

// The address that a socket listens on, and what tells it from any other: the same in all processes.
[[nodiscard]] std::string listening_address(int socket);
[[nodiscard]] std::uint64_t socket_number(int socket);
// None when there are no more descriptors.
[[nodiscard]] Descriptor duplicate(const Descriptor& descriptor);

}  // namespace ringshift::net
