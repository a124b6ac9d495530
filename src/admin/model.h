// The admin API's knowledge of its cluster: a watch on the registry, the members' INFO, and a thread that
// makes a new State of both, at most every kTick.
//
// Thread rule: state() and since() from any thread; they never wait for the registry or a member. The
// coordinator must outlive this. Bounds: what the registry holds; of what came and is not taken up yet, the
// newest value of each key; kStatesKept states.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "admin/member_poll.h"
#include "admin/picture.h"
#include "admin/state.h"
#include "coord/coordinator.h"
#include "coord/keys.h"

namespace ringshift::admin {

class Model final : public coord::Watcher {
 public:
  static constexpr std::chrono::milliseconds kTick{250};
  static constexpr std::size_t kStatesKept = 64;
  // A watch that has come back says so by its first event. It tells of each failed attempt, at least every 8
  // seconds: when it has not for so long, it is back, and nothing was written meanwhile.
  static constexpr std::chrono::seconds kSilenceOfTheConnected{12};

  struct Options {
    coord::ClusterKeys keys;
    PictureNames names;
    bool ask_members = true;
    std::shared_ptr<const backend::MemberAccess> access;  // Null: plain, without a password.
  };

  Model(coord::Coordinator& coordinator, Options options);
  ~Model() override;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] std::shared_ptr<const State> state() const;  // Never null.
  [[nodiscard]] const std::string& cluster() const noexcept { return options_.names.cluster; }
  // The states after `number`, oldest first; nullopt when some of them are gone already.
  [[nodiscard]] std::optional<std::vector<std::shared_ptr<const State>>> since(std::uint64_t number) const;

 private:
  // What came from the watch and the builder has not taken up yet.
  struct Inbox {
    std::optional<std::pair<coord::Range, Moment>> range;  // What follows is newer.
    std::map<std::string, std::pair<coord::Event, Moment>> events;
    struct Connection {
      bool connected = false;
      std::string why;
      Moment at;
    };
    std::optional<Connection> connection;
  };

  void on_events(const std::vector<coord::Event>& events) override;
  void on_resync(const coord::Range& range) override;
  void on_disconnected(const Error& why) override;

  void run();
  void take_up(Inbox inbox);

  const Options options_;
  Picture picture_;                            // The builder's alone, and the next.
  std::optional<SteadyTime> disconnected_at_;  // When an attempt failed last, since the watch worked.
  std::unique_ptr<MemberPoll> poll_;

  std::mutex inbox_mutex_;
  std::condition_variable wake_;
  Inbox inbox_;            // Guarded by inbox_mutex_.
  bool stopping_ = false;  // Likewise.

  mutable std::mutex states_mutex_;
  std::deque<std::shared_ptr<const State>> states_;  // Guarded by states_mutex_. Not empty.

  std::thread builder_;
  std::unique_ptr<coord::Watch> watch_;  // Last: its thread uses all above.
};

}  // namespace ringshift::admin
