// Sockets from one process to another; here both ends are in one.
#include "net/handover.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

#include "net/listener.h"

namespace ringshift::net {
namespace {

constexpr std::chrono::milliseconds kSoon{2000};

TEST(Handover, APacketCarriesTextAndSockets) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  Descriptor a(ends[0]), b(ends[1]);
  Loop loop;
  auto listener = Listener::open(loop, "127.0.0.1:0", [](int fd) { ::close(fd); });
  ASSERT_TRUE(listener);
  std::vector<Descriptor> sockets;
  for (std::size_t i = 0; i < kMaxPacketDescriptors; ++i) sockets.push_back((*listener)->duplicate());
  ASSERT_TRUE(send_packet(a.get(), "listening", sockets));
  const auto got = receive_packet(b.get(), kSoon);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->text, "listening");
  ASSERT_EQ(got->descriptors.size(), kMaxPacketDescriptors);
  for (const Descriptor& socket : got->descriptors) {
    EXPECT_EQ(listening_address(socket.get()), (*listener)->address());
    EXPECT_EQ(socket_number(socket.get()), socket_number(sockets[0].get())) << "one socket";
  }
  const auto nothing = receive_packet(b.get(), std::chrono::milliseconds(1));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind, ErrorKind::not_found);
  a.reset();
  const auto end = receive_packet(b.get(), kSoon);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->text, "");
}

TEST(Handover, WhatWaitsIsAcceptedBySomebody) {
  Loop loop;
  int accepted = 0;
  const auto count = [&accepted](int fd) {
    ++accepted;
    ::close(fd);
  };
  auto first = Listener::open(loop, "127.0.0.1:0", count);
  ASSERT_TRUE(first);
  std::vector<Descriptor> clients;
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  const Descriptor socket = (*first)->duplicate();
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  for (int i = 0; i < 100; ++i) {  // More than one wakeup accepts.
    clients.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(clients.back().get(), reinterpret_cast<sockaddr*>(&at), size), 0);
  }
  // The successor's descriptor keeps the queue when the first one goes.
  auto second = Listener::adopt(loop, (*first)->duplicate(), count);
  ASSERT_TRUE(second);
  (*first)->leave_to_successor();
  first->reset();
  EXPECT_EQ(accepted, 0);
  (*second)->accept_the_rest();
  EXPECT_EQ(accepted, 100);
}

TEST(Handover, TheFileOfAUnixSocketGoesWithItsOwner) {
  const std::string path = testing::TempDir() + "handover_test.sock";
  std::filesystem::remove(path);
  Loop loop;
  const auto drop = [](int fd) { ::close(fd); };
  auto first = Listener::open(loop, "unix:" + path, drop);
  ASSERT_TRUE(first);
  auto failed = Listener::adopt(loop, (*first)->duplicate(), drop);
  failed->reset();  // A successor that did not come to serve.
  EXPECT_TRUE(std::filesystem::exists(path));
  auto second = Listener::adopt(loop, (*first)->duplicate(), drop);
  ASSERT_TRUE(second);
  (*first)->leave_to_successor();
  first->reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  (*second)->own_file(0640);
  struct stat file{};
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0640U);
  second->reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Handover, APathOfSomethingElseIsAnError) {
  const std::string path = testing::TempDir() + "handover_test_packets.sock";
  std::filesystem::remove(path);
  const auto nobody = connect_packets(path);
  ASSERT_TRUE(nobody);
  EXPECT_FALSE(*nobody);
  auto listening = listen_packets(path);
  ASSERT_TRUE(listening);
  EXPECT_FALSE(listen_packets(path)) << "it is taken";
  const auto somebody = connect_packets(path);
  ASSERT_TRUE(somebody);
  EXPECT_TRUE(*somebody);
  listening->reset();
  const auto dead = connect_packets(path);
  ASSERT_TRUE(dead);
  EXPECT_FALSE(*dead);
  std::filesystem::remove(path);
  Loop loop;
  auto stream = Listener::open(loop, "unix:" + path, [](int fd) { ::close(fd); });
  ASSERT_TRUE(stream);
  EXPECT_FALSE(connect_packets(path));
  EXPECT_FALSE(connect_packets(std::string(200, 'x')));
}

}  // namespace
}  // namespace ringshift::net
