// What one client is subscribed to: channels, patterns and shard channels, and the (un)subscribing that waits
// for members to confirm.
//
// A command's confirmations are sent together, when the members' have come: whatever is published after that
// is delivered. Counts are of this client, as Redis counts. The next command is not read before. Belongs to a
// session; null for a client that never subscribed. The worker's thread. Bounds: kMaxNames; a wait ends after
// Options::connect_timeout + request_timeout and a little, with an error for each name that is not confirmed.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "protocol/resp/command_parser.h"
#include "proxy/pubsub_hub.h"

namespace ringshift::proxy {

class Session;

class Subscriber final {
 public:
  static constexpr std::size_t kMaxNames = 100'000;

  explicit Subscriber(Session& session);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // Subscribed to something: in RESP2 little else may be asked then.
  [[nodiscard]] bool active() const noexcept { return total() != 0; }
  [[nodiscard]] std::size_t count(ChannelKind kind) const noexcept { return names(kind).size(); }

  // The command's arguments, its name first. They answer. REQUIRES: nothing of the session's is in flight.
  void subscribe(ChannelKind kind, const protocol::resp::CommandParser& arguments);
  void unsubscribe(ChannelKind kind, const protocol::resp::CommandParser& arguments);
  void abandon();        // Leaves all, at once.
  void rules_adopted();  // Ends the client when he may not have his subscriptions any more.

  // From a hub.
  void deliver(const Upstream& from, ChannelKind kind, std::string_view channel, std::string_view payload,
               std::string_view push);
  void confirmed();
  void failed(ChannelKind kind, const std::string& name, const std::string& error, bool was_waiting);
  void left();
  void cut();

 private:
  using Hubs = std::vector<PubsubHub*>;
  using Names = std::map<std::string, Hubs, std::less<>>;
  struct Operation {
    ChannelKind kind;
    std::vector<std::string> asked;             // SUBSCRIBE's names, in order.
    Names joining, leaving;                     // Known to hubs, but not ours yet, or not any more.
    std::map<std::string, std::string> errors;  // By name: the whole reply.
    std::string answer;                         // UNSUBSCRIBE's.
    std::size_t waiting = 0;
    std::uint64_t number = 0;
    bool numbered = false;
  };

  [[nodiscard]] const Names& names(ChannelKind kind) const noexcept {
    return names_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] Names& names(ChannelKind kind) noexcept { return names_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::size_t total() const noexcept;
  // As the confirmations tell it: shard channels are counted apart.
  [[nodiscard]] std::int64_t told_count(ChannelKind kind) const noexcept;
  [[nodiscard]] Hubs hubs_of(ChannelKind kind, std::string_view name) const;
  void join(const std::string& name);
  void append_confirmation(std::string& out, ChannelKind kind, bool subscribed,
                           const std::string* name) const;
  void wait_or_finish();
  void finish();
  void time_is_over();

  Session& session_;
  std::array<Names, kChannelKinds> names_;
  std::unique_ptr<Operation> operation_;
  std::unique_ptr<net::Timer> timer_;  // Once something had to wait.
};

}  // namespace ringshift::proxy
