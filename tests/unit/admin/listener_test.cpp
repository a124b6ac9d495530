// The admin port, asked over loopback.
#include "admin/listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "http/client.h"

namespace ringshift::admin {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Listener::start({});
    ASSERT_TRUE(started.has_value()) << started.error().message;
    listener_ = std::move(*started);
  }
  [[nodiscard]] http::Answer ask(const std::string& path, const std::string& method = "GET",
                                 std::vector<std::string> headers = {}) {
    http::Call call;
    call.method = method;
    call.url = listener_->url() + path;
    call.headers = std::move(headers);
    call.timeout = 20s;
    auto answer = client_.send(call);
    EXPECT_TRUE(answer.has_value());
    return answer ? *answer : http::Answer{};
  }
  // All bytes of a reply, head and body.
  [[nodiscard]] std::string raw(const std::string& request) const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener_->server().port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::string all(65536, '\0');
    std::size_t size = 0;
    for (ssize_t n = 0; (n = read(fd, all.data() + size, all.size() - size)) > 0;)
      size += static_cast<std::size_t>(n);
    close(fd);
    all.resize(size);
    return all;
  }

  std::unique_ptr<Listener> listener_;
  http::Client client_;
};

TEST_F(ListenerTest, MetricsAreThoseOfTheProcessAndOfWhoeverAdds) {
  listener_->collect([](telemetry::Exposition& page) { page.gauge("ringshift_mine", "Mine", 7); });
  const http::Answer answer = ask("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body,
              AllOf(HasSubstr("\nringshift_mine 7\n"), HasSubstr("\nringshift_build_info{version=\""),
                    HasSubstr("\nprocess_open_fds "), HasSubstr("\nprocess_threads ")));
  const std::size_t at = answer.body.find("\nprocess_resident_memory_bytes ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::atof(answer.body.c_str() + at + 31), 1e6);
  const std::size_t started = answer.body.find("\nprocess_start_time_seconds ");
  ASSERT_NE(started, std::string::npos);
  EXPECT_NEAR(std::atof(answer.body.c_str() + started + 28), static_cast<double>(time(nullptr)), 600);
  EXPECT_THAT(raw("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"),
              HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
}

TEST_F(ListenerTest, HealthyAtOnceAndReadyWhenAllSaySo) {
  EXPECT_EQ(ask("/healthz").status, 200);
  EXPECT_EQ(ask("/readyz").status, 503);
  std::atomic<bool> there{false};
  listener_->ready_if([&]() -> Status {
    if (there) return {};
    return fail(ErrorKind::retryable, "the cache is cold");
  });
  listener_->ready_if([] { return Status{}; });
  EXPECT_EQ(ask("/readyz").status, 503);
  EXPECT_EQ(ask("/readyz").body, "the cache is cold\n");
  there = true;
  EXPECT_EQ(ask("/readyz").status, 200);
}

TEST_F(ListenerTest, WhatIsNotThereIsSaidInWords) {
  const http::Answer missing = ask("/nothing");
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(missing.body, AllOf(HasSubstr("/nothing"), HasSubstr("/metrics"), HasSubstr("/readyz")));
  const http::Answer wrong = ask("/metrics", "POST");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_THAT(wrong.body, AllOf(HasSubstr("POST"), HasSubstr("GET, HEAD")));
  EXPECT_THAT(
      raw("POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
      HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST_F(ListenerTest, TheLongestPathWins) {
  const auto say = [](std::string what) {
    return [what](const http::Request& request, http::Exchange& e) {
      e.reply(200, "text/plain", what + request.path);
    };
  };
  listener_->add("GET", "/", say("page "));
  listener_->add("GET", "/api/v1/", say("api "));
  listener_->add("GET", "/api/v1/topology", say("topology "));
  listener_->add("POST", "/api/v1/topology", say("new topology "));
  EXPECT_EQ(ask("/").body, "page /");
  EXPECT_EQ(ask("/assets/a.js").body, "page /assets/a.js");
  EXPECT_EQ(ask("/api/v1/x").body, "api /api/v1/x");
  EXPECT_EQ(ask("/api/v1/topology").body, "topology /api/v1/topology");
  EXPECT_EQ(ask("/api/v1/topology", "POST").body, "new topology /api/v1/topology");
  EXPECT_EQ(ask("/healthz").body, "ok\n");
  listener_->add("GET", "/api/v1/topology", say("another "));
  EXPECT_EQ(ask("/api/v1/topology").body, "another /api/v1/topology");
}

TEST_F(ListenerTest, HeadIsGetWithoutItsBody) {
  const std::string answer = raw("HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  listener_->add_slow("GET", "/slow",
                      [](const http::Request&) { return Answer{200, "text/plain", "12345", {}}; });
  const std::string slow = raw("HEAD /slow HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(slow, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_TRUE(slow.ends_with("\r\n\r\n")) << slow;
}

TEST_F(ListenerTest, PagesOfOthersAreRefused) {
  EXPECT_EQ(ask("/metrics", "GET", {"Host: evil.example"}).status, 403);
  EXPECT_EQ(ask("/metrics", "GET", {"Origin: http://evil.example"}).status, 403);
  EXPECT_EQ(ask("/metrics", "GET", {"Origin: null"}).status, 403);
  EXPECT_EQ(ask("/metrics", "GET", {"Origin: " + listener_->url()}).status, 200);
  EXPECT_EQ(ask("/metrics", "GET", {"Host: localhost:1"}).status, 200);
}

TEST_F(ListenerTest, SlowWorkHoldsUpNobody) {
  std::atomic<int> begun{0};
  std::atomic<bool> go{false};
  listener_->add_slow("POST", "/slow", [&](const http::Request& request) {
    ++begun;
    while (!go) std::this_thread::sleep_for(1ms);
    return Answer{202, "text/plain", request.header("Authorization").value_or("-") + " " + request.body, {}};
  });
  std::vector<std::thread> askers;
  std::atomic<int> accepted{0}, refused{0};
  const std::size_t too_many = Listener::kWorkers + Listener::kQueued + 3;
  const auto ask_slowly = [&] {
    http::Client client;
    http::Call call;
    call.url = listener_->url() + "/slow";
    call.headers = {"Authorization: Bearer x"};
    call.body = "body";
    call.timeout = 60s;
    const auto answer = client.send(call);
    ASSERT_TRUE(answer.has_value());
    if (answer->status == 202 && answer->body == "Bearer x body") ++accepted;
    if (answer->status == 503) ++refused;
  };
  // So that the queue's bound is met for certain: first as many as there are workers.
  for (std::size_t i = 0; i < Listener::kWorkers; ++i) askers.emplace_back(ask_slowly);
  while (begun < static_cast<int>(Listener::kWorkers)) std::this_thread::sleep_for(1ms);
  while (askers.size() < too_many) askers.emplace_back(ask_slowly);
  while (refused < 3) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ask("/healthz").status, 200) << "while all workers are at work";
  go = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(accepted, static_cast<int>(too_many) - 3);
}

TEST_F(ListenerTest, EndingWaitsForWhatIsAtWorkAndDropsTheRest) {
  std::atomic<int> begun{0}, ended{0};
  listener_->add_slow("GET", "/slow", [&](const http::Request&) {
    ++begun;
    std::this_thread::sleep_for(50ms);
    ++ended;
    return Answer{};
  });
  std::vector<std::thread> askers;
  const std::string url = listener_->url() + "/slow";
  for (int i = 0; i < 20; ++i) {
    askers.emplace_back([url] {
      http::Client client;
      http::Call call;
      call.method = "GET";
      call.url = url;
      call.timeout = 20s;
      static_cast<void>(client.send(call));
    });
  }
  while (begun < 2) std::this_thread::sleep_for(1ms);
  listener_.reset();
  EXPECT_EQ(begun, ended);
  for (std::thread& asker : askers) asker.join();
}

TEST(Listener, ListensOnLoopbackOnly) {
  const auto refused = Listener::start({"0.0.0.0", 0, "--admin-listen"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("--admin-listen"), HasSubstr("loopback")));
}

TEST(Listener, ATakenPortNamesTheFlag) {
  const auto first = Listener::start({});
  ASSERT_TRUE(first.has_value());
  const auto second = Listener::start({"127.0.0.1", (*first)->server().port(), "--admin-listen"});
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr("--admin-listen"), HasSubstr("in use"), Not(HasSubstr("--listen"))));
}

}  // namespace
}  // namespace ringshift::admin
