// Real redis-servers and a proxy in this process before them: members cache-1, cache-2, ... on a ring.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "proxy/proxy.h"
#include "tests/support/redis_process.h"

namespace ringshift::proxy {

using test::RedisProcess;

class Cluster {
 public:
  explicit Cluster(std::size_t members, Options options = {}, std::uint32_t databases = 1)
      : databases_(databases) {
    for (std::size_t i = 0; i < members; ++i) members_.push_back(std::make_unique<RedisProcess>());
    holder_ = std::make_shared<Proxy::Holder>(snapshot(members, 1));
    if (options.listen == Options{}.listen) options.listen = "127.0.0.1:0";
    if (options.threads == 0) options.threads = 1;
    auto started = Proxy::start(options, holder_, nullptr);
    if (!started) throw std::runtime_error(started.error().message);
    proxy_ = std::move(*started);
    const std::string& address = proxy_->address();
    if (!address.starts_with("unix:")) {
      port_ = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    }
  }

  [[nodiscard]] Proxy& proxy() { return *proxy_; }
  [[nodiscard]] const std::shared_ptr<Proxy::Holder>& holder() const { return holder_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Client client() const { return Client(port_); }
  [[nodiscard]] RedisProcess& member(std::size_t i) { return *members_[i]; }
  void kill_member(std::size_t i) { members_[i]->kill(); }
  void restart_member(std::size_t i) { members_[i]->start(); }

  // A topology of the first `count` members.
  void publish(std::size_t count, std::uint64_t revision) {
    EXPECT_TRUE(holder_->publish(snapshot(count, revision)));
    proxy_->notify();
  }

  void set_databases(std::uint32_t databases) { databases_ = databases; }  // From the next publish() on.

  // A key whose member is number `i`.
  [[nodiscard]] std::string key_of(std::size_t i) const {
    for (int n = 0;; ++n) {
      std::string key = fmt::format("key-{}", n);
      if (holder_->load()->route(key).member == i) return key;
    }
  }

  // Whether GET answers this within five seconds.
  [[nodiscard]] bool answers(const std::string& key, const std::string& expected) const {
    for (int n = 0; n < 100; ++n) {
      if (client().ask({"GET", key}) == expected) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

 private:
  [[nodiscard]] std::shared_ptr<const topology::Snapshot> snapshot(std::size_t count,
                                                                   std::uint64_t revision) const {
    topology::Topology topology;
    topology.spec.cluster = "test";
    topology.spec.databases = databases_;
    for (std::size_t i = 0; i < count; ++i) {
      topology::Member member;
      member.id = fmt::format("cache-{}", i + 1);
      member.address = members_[i]->address();
      topology.spec.members.push_back(member);
    }
    auto compiled = topology::Snapshot::compile(topology, {0, revision});
    if (!compiled) throw std::runtime_error(compiled.error().message);
    return *compiled;
  }

  std::uint32_t databases_;
  std::vector<std::unique_ptr<RedisProcess>> members_;
  std::shared_ptr<Proxy::Holder> holder_;
  std::unique_ptr<Proxy> proxy_;
  std::uint16_t port_ = 0;
};

// The cluster without its last member, which joins in a resize whose slices are all in HOLD: a key that moves is
// between two members.
inline std::shared_ptr<const topology::Snapshot> all_held(const Cluster& cluster, std::uint64_t version) {
  topology::Topology topology = cluster.holder()->load()->topology();
  topology::Resize resize;
  resize.id = "r-1";
  resize.placement = topology.spec.placement;
  resize.members = topology.spec.members;
  resize.phase = topology::Phase::hold;
  resize.active = {{0, topology::kSliceCount}};
  topology.spec.members.pop_back();
  topology.resize = resize;
  topology.fence.epoch = topology.fence.step = 1;
  auto compiled = topology::Snapshot::compile(topology, {0, version});
  if (!compiled) throw std::runtime_error(compiled.error().message);
  return *compiled;
}

}  // namespace ringshift::proxy
