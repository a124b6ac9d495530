// Streams and listeners over real sockets on the loopback interface.
#include "net/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/listener.h"

namespace ringshift::net {
namespace {

using std::chrono::milliseconds;

// Records what happens; the test sets what else is to be done.
struct Recorder final : StreamHandler {
  std::string data;
  std::string closed;  // The reason.
  int connected = 0, drained = 0, ended = 0;
  std::function<std::size_t(std::string_view)> consume;
  std::function<void()> on_event;

  std::size_t on_data(std::string_view bytes) override {
    const std::size_t used = consume ? consume(bytes) : bytes.size();
    data.append(bytes.substr(0, used));
    event();
    return used;
  }
  void on_end() override { ++ended, event(); }
  void on_closed(std::string_view reason) override { closed = reason, event(); }
  void on_connected() override { ++connected, event(); }
  void on_drained() override { ++drained, event(); }
  void event() {
    if (on_event) on_event();
  }
};

class StreamTest : public testing::Test {
 protected:
  // Runs the loop until `done` holds, checked after each wakeup.
  void run_until(const std::function<bool()>& done) {
    if (done()) return;
    bool late = false;
    auto guard = loop.timer([&] {
      late = true;
      loop.stop();
    });
    guard->arm(std::chrono::seconds(10));
    bool stopped = false;  // One stop() a run: a second one would end the next run.
    loop.set_after_wakeup([&] {
      if (!stopped && done()) loop.stop(), stopped = true;
    });
    loop.run();
    loop.set_after_wakeup({});
    EXPECT_FALSE(late) << "timed out";
  }
  void run_for(milliseconds time) {
    auto guard = loop.timer([&] { loop.stop(); });
    guard->arm(time);
    loop.run();
  }
  void connect_pair(const std::string& listen_on) {
    auto opened =
        Listener::open(loop, listen_on, [this](int fd) { server = Stream::adopt(loop, fd, at_server); });
    ASSERT_TRUE(opened) << opened.error().message;
    listener = std::move(*opened);
    client = Stream::connect(loop, listener->address(), milliseconds(1000), at_client);
    run_until([&] { return at_client.connected == 1 && server; });
  }

  Loop loop;
  Recorder at_client, at_server;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> client, server;
};

TEST_F(StreamTest, CarriesBytesBothWays) {
  connect_pair("127.0.0.1:0");
  client->append("PING");
  client->append(" 1");
  EXPECT_EQ(client->written_bytes(), 0U) << "append() writes nothing";
  client->flush();
  EXPECT_EQ(client->queued_bytes(), 0U);
  run_until([&] { return at_server.data == "PING 1"; });
  server->output() += "PONG";
  server->flush();
  run_until([&] { return at_client.data == "PONG"; });
  EXPECT_EQ(server->peer().substr(0, 10), "127.0.0.1:");
}

TEST_F(StreamTest, WorksOverUnixSockets) {
  const std::string path = "/tmp/rs_stream_test_" + std::to_string(::getpid());
  connect_pair("unix:" + path);
  client->append("hello");
  client->flush();
  run_until([&] { return at_server.data == "hello"; });
  listener.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "the file goes with the listener";
}

TEST_F(StreamTest, KeepsWhatTheHandlerDidNotConsume) {
  connect_pair("127.0.0.1:0");
  std::vector<std::string> seen;
  at_server.consume = [&](std::string_view bytes) {
    seen.emplace_back(bytes);
    const std::size_t end = bytes.rfind('\n');
    return end == std::string_view::npos ? 0 : end + 1;
  };
  for (const char* part : {"a\nb", "c", "d\ne\n"}) {
    client->append(part);
    client->flush();
    const std::size_t calls = seen.size();
    run_until([&] { return seen.size() > calls; });
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a\nb", "bc", "bcd\ne\n"}));
  EXPECT_EQ(at_server.data, "a\nbcd\ne\n");
}

TEST_F(StreamTest, CarriesABigMessageThatIsConsumedOnlyWhole) {
  connect_pair("127.0.0.1:0");
  constexpr std::size_t kSize = 20U << 20;
  std::string big(kSize, '\0');
  for (std::size_t i = 0; i < kSize; ++i) big[i] = static_cast<char>(i * 7 + (i >> 13));
  at_server.consume = [&](std::string_view bytes) { return bytes.size() < kSize ? 0 : bytes.size(); };
  client->append(big);
  client->flush();
  EXPECT_GT(client->queued_bytes(), 0U) << "more than a socket's buffers hold";
  run_until([&] { return at_server.data.size() == kSize; });
  const auto differs = std::mismatch(big.begin(), big.end(), at_server.data.begin());
  EXPECT_EQ(differs.first - big.begin(), static_cast<std::ptrdiff_t>(kSize)) << "first byte that differs";
  run_until([&] { return at_client.drained == 1; });
  EXPECT_EQ(client->written_bytes(), kSize);
}

TEST_F(StreamTest, PausedReadingLeavesTheBytesToTheKernelAndResumesWithTheTail) {
  connect_pair("127.0.0.1:0");
  int calls = 0;
  at_server.consume = [&](std::string_view bytes) {
    ++calls;
    if (calls == 1) server->pause_reading();
    return std::min<std::size_t>(bytes.size(), 3);
  };
  client->append("abcdef");
  client->flush();
  run_until([&] { return calls == 1; });
  client->append("ghi");
  client->flush();
  run_for(milliseconds(30));
  EXPECT_EQ(calls, 1) << "nothing is read while paused";
  server->resume_reading();
  run_until([&] { return at_server.data.size() >= 6; });
  EXPECT_EQ(at_server.data.substr(0, 6), "abcdef");
}

TEST_F(StreamTest, ResumeDeliversTheTailThoughNothingMoreComes) {
  connect_pair("127.0.0.1:0");
  at_server.consume = [&](std::string_view) {
    server->pause_reading();
    return std::size_t{1};
  };
  client->append("xy");
  client->flush();
  run_until([&] { return at_server.data == "x"; });
  server->resume_reading();
  run_until([&] { return at_server.data == "xy"; });
}

TEST_F(StreamTest, HalfCloseStillAnswers) {
  connect_pair("127.0.0.1:0");
  client->append("last words");
  client->finish_writing();
  client->flush();
  run_until([&] { return at_server.ended == 1; });
  EXPECT_EQ(at_server.data, "last words");
  server->append("answer");
  server->flush();
  run_until([&] { return at_client.data == "answer"; });
  server.reset();
  run_until([&] { return at_client.ended == 1; });
}

TEST_F(StreamTest, AHandlerMayDestroyItsStreamInAnyCallback) {
  connect_pair("127.0.0.1:0");
  at_server.consume = [&](std::string_view bytes) {
    server.reset();
    return bytes.size() - 1;  // Must not be looked at any more.
  };
  client->append("abc");
  client->flush();
  run_until([&] { return at_client.ended == 1 || !at_client.closed.empty(); });
  EXPECT_EQ(server, nullptr);
}

TEST_F(StreamTest, WritingToAPeerThatIsGoneEndsInOnClosedAndNoSignal) {
  connect_pair("127.0.0.1:0");
  server.reset();
  at_client.on_event = [&] {
    if (at_client.ended == 1 && at_client.closed.empty()) {
      client->append("x");
      client->flush();  // The peer answers with a reset...
    }
  };
  run_until([&] { return at_client.ended == 1; });
  for (int i = 0; i < 50 && at_client.closed.empty(); ++i) {
    run_for(milliseconds(2));
    client->append("y");
    client->flush();  // ...so that a later write fails.
  }
  EXPECT_FALSE(at_client.closed.empty());
}

TEST_F(StreamTest, ReportsWhyAConnectionCannotBeMade) {
  Recorder refused, malformed, timed_out;
  // A port that was free a moment ago.
  auto gone = Listener::open(loop, "127.0.0.1:0", [](int fd) { ::close(fd); });
  ASSERT_TRUE(gone);
  const std::string address = (*gone)->address();
  gone->reset();
  auto a = Stream::connect(loop, address, milliseconds(1000), refused);
  auto b = Stream::connect(loop, "127.0.0.1", milliseconds(1000), malformed);
  run_until([&] { return !refused.closed.empty() && !malformed.closed.empty(); });
  EXPECT_EQ(refused.closed, "Connection refused");
  EXPECT_NE(malformed.closed.find("there is no port"), std::string::npos) << malformed.closed;
}

TEST_F(StreamTest, ConnectingTimesOut) {
  // A listener with a full queue: its kernel drops further SYNs.
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  SocketAddress any = *literal(*parse_endpoint("127.0.0.1:0"));
  ASSERT_EQ(::bind(fd, any.get(), any.size), 0);
  ASSERT_EQ(::listen(fd, 0), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&any.storage), &any.size);
  std::deque<Recorder> fillers(4);
  std::vector<std::unique_ptr<Stream>> streams;
  for (Recorder& filler : fillers) {
    streams.push_back(Stream::connect(loop, any.text(), milliseconds(5000), filler));
  }
  run_for(milliseconds(20));
  auto late = Stream::connect(loop, any.text(), milliseconds(50), at_client);
  run_until([&] { return !at_client.closed.empty(); });
  EXPECT_NE(at_client.closed.find("timed out after 50 ms"), std::string::npos) << at_client.closed;
  ::close(fd);
}

TEST_F(StreamTest, ResolvesNamesOffTheLoop) {
  auto opened =
      Listener::open(loop, "127.0.0.1:0", [this](int fd) { server = Stream::adopt(loop, fd, at_server); });
  ASSERT_TRUE(opened);
  const std::string port = (*opened)->address().substr(10);
  // "localhost" may name ::1 first, where nobody listens: then the next address is tried.
  client = Stream::connect(loop, "localhost:" + port, milliseconds(2000), at_client);
  run_until([&] { return at_client.connected == 1 || !at_client.closed.empty(); });
  EXPECT_EQ(at_client.closed, "");
  auto abandoned = Stream::connect(loop, "localhost:" + port, milliseconds(2000), at_client);
  abandoned.reset();  // While the lookup runs.
  run_for(milliseconds(20));
}

TEST_F(StreamTest, RunningOutOfDescriptorsRestsAndRecovers) {
  run_for(milliseconds(0));  // The sanitizer looks at our type once, and needs descriptors for that.
  int accepted = 0;
  auto opened = Listener::open(loop, "127.0.0.1:0", [&](int fd) {
    ++accepted;
    ::close(fd);
  });
  ASSERT_TRUE(opened);
  client = Stream::connect(loop, (*opened)->address(), milliseconds(1000), at_client);
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  rlimit none = old;
  none.rlim_cur = static_cast<rlim_t>(client->fd()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  // The limit may still leave gaps below; fill them.
  std::vector<int> fillers;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fillers.push_back(fd);
  int wakeups = 0;
  loop.set_after_wakeup([&] { ++wakeups; });
  run_for(milliseconds(60));
  EXPECT_EQ(accepted, 0);
  EXPECT_LT(wakeups, 20) << "it spins";
  ::setrlimit(RLIMIT_NOFILE, &old);
  for (const int fd : fillers) ::close(fd);
  run_until([&] { return accepted == 1; });
}

TEST_F(StreamTest, ListenersShareAPort) {
  int first = 0, second = 0;
  auto a = Listener::open(loop, "127.0.0.1:0", [&](int fd) { ++first, ::close(fd); });
  ASSERT_TRUE(a);
  auto b = Listener::open(loop, (*a)->address(), [&](int fd) { ++second, ::close(fd); });
  ASSERT_TRUE(b) << b.error().message;
  std::deque<Recorder> recorders(64);
  std::vector<std::unique_ptr<Stream>> streams;
  for (Recorder& recorder : recorders) {
    streams.push_back(Stream::connect(loop, (*a)->address(), milliseconds(1000), recorder));
  }
  run_until([&] { return first + second == 64; });
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
}

TEST(Address, SaysWhatIsWrong) {
  struct Case {
    std::string_view text, expected;
  };
  for (const Case& c : {Case{"127.0.0.1", "no port"}, Case{"127.0.0.1:70000", "no port (0 to 65535)"},
                        Case{"::1:6379", "brackets"}, Case{":6379", "host is empty"},
                        Case{"unix:", "path is empty"}, Case{"a:12x", "no port (0 to 65535)"}}) {
    const Result<Endpoint> result = parse_endpoint(c.text);
    ASSERT_FALSE(result) << c.text;
    EXPECT_NE(result.error().message.find(c.expected), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find(c.text), std::string::npos);
  }
  EXPECT_EQ(literal(*parse_endpoint("[::1]:6379"))->text(), "[::1]:6379");
  EXPECT_EQ(literal(*parse_endpoint("10.0.0.1:80"))->text(), "10.0.0.1:80");
  EXPECT_EQ(literal(*parse_endpoint("cache-1.example:80")).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace ringshift::net
