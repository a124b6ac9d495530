// The stream of changes (Server-Sent Events): a snapshot first, then what is new, to every client that
// listens.
//
// Thread rule: of the HTTP server's thread alone; pump() is called there again and again. Bounds: kStreamsMax
// streams; one that leaves more than kBacklogMax unread is ended, and its client comes back for a fresh
// snapshot. Nothing is kept for a client that is away: whatever Last-Event-ID it brings, it gets a snapshot.
#pragma once
#include <bitset>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "admin/model.h"
#include "http/server.h"

namespace ringshift::admin {

using Topics = std::bitset<kTopics>;
// "overview,resize"; "" is all. Names the word that is no topic.
[[nodiscard]] Result<Topics> parse_topics(std::string_view text);

class Events {
 public:
  static constexpr std::size_t kStreamsMax = 64;
  static constexpr std::size_t kBacklogMax = 1U << 20;
  static constexpr std::size_t kSnapshotMax = 16U << 20;  // Of backlog, until the snapshot is taken.
  static constexpr std::chrono::seconds kHeartbeat{15};
  static constexpr std::chrono::milliseconds kPump{100};

  explicit Events(const Model& model);

  // Turns the exchange into a stream; false, and nothing done, when there are too many.
  [[nodiscard]] bool open(http::Exchange& exchange, Topics topics);
  void pump(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }

 private:
  struct Client {
    std::unique_ptr<http::Stream> stream;
    Topics topics;
    std::chrono::steady_clock::time_point last_write;
    bool settled = false;  // Its snapshot was taken whole: from now on kBacklogMax holds.
  };
  [[nodiscard]] std::string snapshot(const State& state, Topics topics) const;
  void write(Client& client, std::string_view text, std::chrono::steady_clock::time_point now);
  void send_snapshot(Client& client, std::chrono::steady_clock::time_point now);
  [[nodiscard]] std::string event(std::string_view type, std::string_view data);

  const Model& model_;
  std::shared_ptr<const State> seen_;  // The state that all clients have.
  const std::string life_;             // Of this process, in ids.
  std::uint64_t last_id_ = 0;
  std::list<Client> streams_;
};

}  // namespace ringshift::admin
