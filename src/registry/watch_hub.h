// The watches of a registry: who gets which event.
//
// A watch is `synced` when it has seen all revisions before `next`, and then gets new ones as they are
// committed; else it reads the history until it has caught up. A client that does not read is left behind
// at kBacklogMax and goes on from the history when it has drained; if that was compacted meanwhile, it is
// told so (compact_revision) and must read the range again. So memory is bounded, and no event is skipped.
// Thread: the HTTP server's alone.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "registry/request.h"
#include "store/store.h"

namespace ringshift::registry {

inline constexpr std::size_t kBacklogMax = 4U << 20;  // Bytes a stream may hold unread.
inline constexpr std::size_t kWatchesMax = 20'000;
inline constexpr std::size_t kWatchesPerStream = 128;

class WatchHub {
 public:
  explicit WatchHub(store::Store& store);

  // Whose a stream is: a token's name, and the hash of its secret. Empty without authentication.
  struct Owner {
    std::string name, secret_hash;
  };
  // REQUIRES: size() < kWatchesMax.
  void add(std::unique_ptr<http::Stream> stream, const std::vector<WatchCommand>& commands, Owner owner = {});
  // Ends the streams of owners that may go on no longer. Not from within a stream's callback.
  void end_unless(const std::function<bool(const Owner&)>& alive);
  [[nodiscard]] std::size_t size_of(const std::string& owner) const;
  // One committed revision. Only remembered: flush() hands it on, outside the store's lock.
  void committed(const std::vector<store::Event>& events, store::Revision revision);
  void flush();
  void send_progress();  // To the watches that asked for it, which learn that they are up to date.
  void sweep();          // Forgets closed streams. Not from within a stream's callback.
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  struct Watch {
    WatchCreate wanted;
    store::Revision next = 0;
    bool synced = false;
  };
  struct Client {
    std::unique_ptr<http::Stream> stream;
    std::map<std::int64_t, Watch> watches;
    Owner owner;
  };
  struct Commit {
    std::vector<store::Event> events;
    store::Revision revision = 0;
  };

  void create(Client& client, const WatchCreate& wanted);
  void catch_up(Client& client);
  void hand_on(Client& client, const Commit& commit);
  [[nodiscard]] std::string events_json(const Watch& watch, const std::vector<store::Event>& events);
  void send(Client& client, std::int64_t watch_id, std::string_view fields, store::Revision header_revision);

  store::Store& store_;
  std::list<Client> clients_;
  std::vector<Commit> commits_;
};

}  // namespace ringshift::registry
