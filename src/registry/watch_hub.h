// The watches of a registry: who gets which event.
//
// A watch is `synced` when it has seen all revisions before `next`, and then gets new ones as they are
// committed; else it reads the history until it has caught up. A client that does not read is left behind
// at kBacklogMax and goes on from the history when it has drained; if that was compacted meanwhile, it is
// told so (compact_revision) and must read the range again. All streams of one owner have a bound together,
// too. So memory is bounded, and no event is skipped.
//
// Cost: a commit costs what its events and those who watch them cost, and a look at each watch of a range;
// the many that watch one other key (a thousand routers report, ten thousand watch the topology) cost
// nothing. Thread: the HTTP server's alone.
#pragma once
#include <compare>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "http/server.h"
#include "registry/request.h"
#include "store/store.h"

namespace ringshift::registry {

inline constexpr std::size_t kBacklogMax = 4U << 20;           // Bytes a stream may hold unread.
inline constexpr std::size_t kBacklogOfOwnerMax = 128U << 20;  // And all streams of one token together.
inline constexpr std::size_t kWatchesMax = 20'000;
inline constexpr std::size_t kWatchesPerStream = 128;

class WatchHub {
 public:
  // `settle`: ends a group of writes under way. Called before the history is read for a client that has
  // drained: nobody learns of what is not on the disk. All other calls are made with no group under way.
  WatchHub(store::Store& store, std::function<void()> settle);

  // Whose a stream is: a token's name, and the hash of its secret. Empty without authentication.
  struct Owner {
    std::string name, secret_hash;
    std::int64_t ends = 0;  // Unix seconds: of the certificate that named it; 0: none did.
  };
  // REQUIRES: size() and streams() < kWatchesMax.
  void add(std::unique_ptr<http::Stream> stream, const std::vector<WatchCommand>& commands, Owner owner);
  // Ends the streams of owners that may go on no longer. Not from within a stream's callback.
  void end_unless(const std::function<bool(const Owner&)>& alive);
  // Its watches, or its streams when they are more: one without a watch has a connection, too.
  [[nodiscard]] std::size_t size_of(const std::string& owner) const;
  // One committed revision. Only remembered: flush() hands it on, outside the store's lock.
  void committed(const std::vector<store::Event>& events, store::Revision revision);
  void flush();
  void send_progress();  // To the watches that asked for it, which learn that they are up to date.
  void sweep();          // Forgets closed streams. Not from within a stream's callback.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t streams() const noexcept { return clients_.size(); }

 private:
  // `next` is the least revision that the watch has yet to see. While it is synced, what was handed on since
  // is not written there: all that was flushed has been seen.
  struct Watch {
    WatchCreate wanted;
    store::Revision next = 0;
    bool synced = false;
  };
  struct Owned {  // All that an owner has. There for as long as there is a stream.
    std::size_t watches = 0, streams = 0;
    std::size_t backlog = 0;  // As of the last sweep, and what was sent since.
  };
  struct Client {
    std::unique_ptr<http::Stream> stream;
    std::map<std::int64_t, Watch> watches;
    Owner owner;
    Owned* owned = nullptr;  // In of_owner_.
  };
  struct Seat {  // Where a watch is found.
    Client* client = nullptr;
    std::int64_t id = 0;
    auto operator<=>(const Seat&) const = default;
  };
  struct Commit {
    std::vector<store::Event> events;
    std::vector<std::string> json;  // Of each event, made when somebody wants it.
    store::Revision revision = 0;
  };

  void create(Client& client, const WatchCreate& wanted);
  void forget(Client& client, std::int64_t id);
  void remove_if(const std::function<bool(const Client&)>& unwanted);
  void catch_up(Client& client);
  void hand_on(const Seat& seat, Commit& commit, std::size_t first, std::size_t count);
  // `made`: the JSON of each event, filled in for the next who wants it; or nothing.
  [[nodiscard]] std::string events_json(const Watch& watch, std::span<const store::Event> events,
                                        std::span<std::string> made);
  [[nodiscard]] static bool room(const Client& client);
  void send(Client& client, std::int64_t watch_id, std::string_view fields, store::Revision header_revision);

  store::Store& store_;
  const std::function<void()> settle_;
  std::list<Client> clients_;
  std::unordered_map<std::string, std::set<Seat>> of_one_key_;
  std::set<Seat> of_ranges_;
  std::size_t size_ = 0;
  std::unordered_map<std::string, Owned> of_owner_;
  std::vector<Commit> commits_;
};

}  // namespace ringshift::registry
