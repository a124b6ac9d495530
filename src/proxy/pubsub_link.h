// A hub's connection to one member, and the words of what comes over it.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/pubsub_hub.h"

namespace ringshift::proxy {

struct PubsubHub::Link final : public backend::PrivateOwner, public backend::ReplySink {
  Link(PubsubHub& h, std::string id) : hub(h), member(std::move(id)) {}

  void on_ready() override { hub.on_ready(*this); }
  void on_push(std::string_view raw) override { hub.on_push(*this, raw); }
  void on_lost(const backend::Failure& failure) override { hub.on_lost(*this, failure); }
  // PING alone.
  void on_reply(std::uint64_t, std::string_view) override { ping_sent.reset(); }
  void on_failure(std::uint64_t, const backend::Failure&) override {}  // on_lost comes, too.

  void send(ChannelKind kind, bool subscribe, const std::string& name);
  void send_unsent();
  void disconnect();

  PubsubHub& hub;
  const std::string member;  // Id.
  std::unique_ptr<backend::PrivateConnection> connection;
  bool ready = false;
  std::size_t legs = 0;
  base::TimePoint not_before{}, last_ping{}, idle_since{};
  std::optional<base::TimePoint> ping_sent;
  std::chrono::milliseconds backoff{0};
  // One command that is being put together.
  std::vector<std::string> names;
  std::string_view verb;
  bool listed = false;  // In PubsubHub::unsent_.
};

// "subscribe", "punsubscribe", ...
[[nodiscard]] std::string_view pubsub_verb(ChannelKind kind, bool subscribe) noexcept;

// The words of a push such as ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"; an integer's digits. None
// when it is of another form. They are views of `raw`.
struct PushWords {
  std::array<std::string_view, 4> word;
  std::size_t count = 0;
};
[[nodiscard]] PushWords read_push(std::string_view raw) noexcept;

}  // namespace ringshift::proxy
