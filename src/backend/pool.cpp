// The Pool: which connections there are, deadlines, drains. What one connection does is in connection.cpp.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "backend/backend.h"
#include "backend/connection.h"
#include "backend/errands.h"
#include "backend/private_connection.h"

namespace ringshift::backend {
namespace {

using std::chrono::milliseconds;

// Deadlines are checked this often: a tenth of the timeout, within limits.
milliseconds tick_of(const Options& options) {
  return std::clamp(options.request_timeout / 10, milliseconds(2), milliseconds(50));
}

class PoolImpl final : public Pool {
 public:
  PoolImpl(net::Loop& loop, Options options, Look* look)
      : shared_(loop, std::move(options), look),
        errands_(shared_, [this](std::uint64_t serial) { return find(serial); }) {
    shared_.errands = &errands_;
    shared_.replace = [this](Connection& connection) { replace(connection); };
    shared_.tick = loop.timer([this] { tick(); });
    shared_.soon = loop.timer([this] { keep_house(); });
  }

  void adopt(std::shared_ptr<const topology::Snapshot> snapshot) override {
    const auto members = snapshot->members();
    std::map<std::string, Links, std::less<>> next;
    table_.clear();
    for (const topology::Member& member : members) {
      Links links;
      const auto known = links_.find(member.id);
      if (known != links_.end()) {
        links = std::move(known->second);
        links_.erase(known);
      } else {
        links.member = std::make_shared<MemberState>();
        links.member->id = member.id;
        links.member->counters = shared_.options.board ? shared_.options.board->join(member.id)
                                                       : std::make_shared<MemberCounters>();
      }
      if (links.address != member.address) move_to(links, member.address);
      table_.push_back(&next.emplace(member.id, std::move(links)).first->second);
    }
    for (auto& [id, links] : links_) {
      links.member->gone = true;
      links.member->orphans.clear();
      retire(links);
      lose_private(links, "the member left the cluster");
    }
    links_ = std::move(next);  // Moves no node, so the table stays good.
    if (snapshot_ != nullptr && snapshot->topology().fence != snapshot_->topology().fence) {
      for (const auto& connection : connections_) connection->drop_queue();
    }
    let_lost_ones_go(*snapshot);
    snapshot_ = std::move(snapshot);
    shared_.keep_house_soon();
  }

  Backend& at(topology::MemberIndex member, Resp resp) override {
    Links& links = *table_[member];
    if (resp == Resp::v2) [[likely]]
      return *links.v2;
    return v3_of(links);
  }

  void drain(std::function<void()> done) override {
    Drain drain{.done = std::move(done), .next_serial = next_serial_, .waits_for = {}};
    for (const auto& connection : connections_)
      drain.waits_for[connection->serial()] = connection->accepted();
    drains_.push_back(std::move(drain));
    shared_.draining = true;
    shared_.keep_house_soon();
    if (!shared_.ticking) shared_.start_ticking();  // To ask again for orphans that could not be killed.
  }

  void flush() override {
    // flush() of a connection calls nobody, so the list does not grow meanwhile.
    for (Connection* connection : shared_.dirty) connection->flush();
    shared_.dirty.clear();
  }

  std::unique_ptr<PrivateConnection> open_private(topology::MemberIndex member, Resp resp,
                                                  PrivateOwner& owner) override {
    Links& links = *table_[member];
    Connection* connection = take_idle(links, resp);
    if (connection == nullptr) {
      if (shared_.private_count >= shared_.options.max_private) close_an_idle_one();
      const bool room = shared_.private_count < shared_.options.max_private;
      connection = make(links, resp, room ? Connection::Use::one_owner : Connection::Use::refused);
    }
    return std::make_unique<PrivateHandle>(*connection, owner);
  }

  void give_back(std::unique_ptr<PrivateConnection> handle) override {
    Connection* const connection = static_cast<PrivateHandle&>(*handle).take();
    if (connection == nullptr || !connection->release()) return;
    const auto links = links_.find(connection->member().id);
    if (links == links_.end() || links->second.idle.size() >= shared_.options.max_idle_per_member) {
      return connection->abandon();
    }
    links->second.idle.push_back(connection);
  }

  MemberFigures figures(topology::MemberIndex member) const override {
    const Links& links = *table_[member];
    MemberFigures figures;
    for (const auto& connection : connections_) {
      if (&connection->member() == links.member.get() && !connection->finished()) connection->add_to(figures);
    }
    figures.connected = links.v2->connected();
    return figures;
  }

  void unblock(topology::MemberIndex member, std::uint64_t client_id) override {
    errands_.unblock(*table_[member]->member, client_id, false, 0);
  }

 private:
  struct Links {
    std::shared_ptr<MemberState> member;
    std::string address;
    Connection* v2 = nullptr;       // Owned by connections_.
    Connection* v3 = nullptr;       // Null until asked for.
    std::vector<Connection*> idle;  // Private ones that were given back, the longest idle first.
  };
  struct Drain {
    std::function<void()> done;
    std::uint64_t next_serial;                                   // Connections from here on were made later.
    std::unordered_map<std::uint64_t, std::uint64_t> waits_for;  // Serial -> commands to be answered.
  };

  [[gnu::noinline]] Connection& v3_of(Links& links) {
    if (links.v3 == nullptr) links.v3 = make(links, Resp::v3);
    return *links.v3;
  }
  Connection* make(const Links& links, Resp resp, Connection::Use use = Connection::Use::shared) {
    connections_.push_back(
        std::make_unique<Connection>(shared_, links.member, links.address, resp, next_serial_++, use));
    return connections_.back().get();
  }
  [[nodiscard]] Connection* find(std::uint64_t serial) const {
    // Serials only grow along the list.
    const auto at =
        std::ranges::lower_bound(connections_, serial, {}, [](const auto& c) { return c->serial(); });
    return at != connections_.end() && (*at)->serial() == serial ? at->get() : nullptr;
  }

  static Connection* take_idle(Links& links, Resp resp) {
    for (std::size_t i = links.idle.size(); i-- != 0;) {
      Connection* const connection = links.idle[i];
      if (connection->resp() != resp || !connection->connected()) continue;
      links.idle.erase(links.idle.begin() + static_cast<std::ptrdiff_t>(i));
      return connection;
    }
    return nullptr;
  }
  void close_an_idle_one() {
    for (auto& [id, links] : links_) {
      if (links.idle.empty()) continue;
      links.idle.front()->abandon();
      links.idle.front()->settle();  // Nobody owns it, so this calls nobody.
      links.idle.erase(links.idle.begin());
      return;
    }
  }
  void lose_private(Links& links, const std::string& reason) {
    for (const auto& connection : connections_) {
      if (connection->is_private() && &connection->member() == links.member.get())
        connection->lose_soon(reason);
    }
    links.idle.clear();
  }

  static void retire(Links& links) {
    if (links.v2 != nullptr) links.v2->retire();
    if (links.v3 != nullptr) links.v3->retire();
    links.v2 = links.v3 = links.member->shared = nullptr;
  }

  // Its commands of now are still answered; those to come go over a fresh connection.
  void replace(Connection& connection) {
    const auto found = links_.find(connection.member().id);
    if (found == links_.end()) return;
    if (shared_.options.on_hand_over) shared_.options.on_hand_over();
    Links& links = found->second;
    if (links.v2 == &connection) {
      links.v2 = links.member->shared = make(links, Resp::v2);
    } else if (links.v3 == &connection) {
      links.v3 = make(links, Resp::v3);
    }
    connection.retire();
  }

  void move_to(Links& links, const std::string& address) {
    renew(links, address, "the member moved from " + links.address + " to " + address);
  }

  void renew(Links& links, const std::string& address, const std::string& why) {
    const bool had_v3 = links.v3 != nullptr;
    retire(links);
    lose_private(links, why);
    links.address = address;
    links.v2 = links.member->shared = make(links, Resp::v2);
    if (had_v3) links.v3 = make(links, Resp::v3);
  }

  // A member that does not come back kills nobody's connections, so no drain may wait for it. In place of
  // that each step ends, here and now, what it was asked before: should it answer after all, nobody hears it.
  // Later commands (its slices may not have had their turn) go over a fresh connection, which looks first.
  void let_lost_ones_go(const topology::Snapshot& snapshot) {
    const auto& resize = snapshot.topology().resize;
    const bool new_step = snapshot_ != nullptr && snapshot.topology().fence != snapshot_->topology().fence;
    for (auto& [id, links] : links_) {
      links.member->gone = resize && std::ranges::binary_search(resize->lost, id);
      if (!links.member->gone || !new_step) continue;
      links.member->orphans.clear();
      const std::string why = "the member was given up for lost";
      for (Connection* const connection : {links.v2, links.v3}) {
        if (connection != nullptr) connection->lose_soon(why);
      }
      renew(links, std::string(links.address), why);
    }
  }

  void tick() {
    // By index and over those of now: a sink that is told of a failure may make the pool grow.
    const std::size_t count = connections_.size();
    const base::TimePoint now = shared_.loop.now();
    for (std::size_t i = 0; i < count; ++i) {
      connections_[i]->check_deadlines(now);
      connections_[i]->tell_counters();
    }
    if (shared_.draining) kill_orphans();
    shared_.ticking = std::ranges::any_of(connections_, [](const auto& c) { return c->needs_ticks(); }) ||
                      (shared_.draining && std::ranges::any_of(links_, [](const auto& entry) {
                         return !entry.second.member->orphans.empty();
                       }));
    if (shared_.ticking) shared_.tick->arm(tick_of(shared_.options));
  }

  // In a wakeup of its own, so that nothing here happens inside somebody's send() or adopt().
  void keep_house() {
    shared_.soon_armed = false;
    shared_.delivering.swap(shared_.deferred);
    // By index: a sink that hears of its failure may let others go, or make the pool grow.
    for (std::size_t i = 0; i < shared_.delivering.size(); ++i) {
      const PoolShared::Deferred one = shared_.delivering[i];
      one.sink->on_failure(one.tag, {one.kind, one.member->id, one.reason});
    }
    shared_.delivering.clear();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (connections_[i]->is_private() || connections_[i]->doomed()) connections_[i]->settle();
    }
    for (auto& [id, links] : links_) std::erase_if(links.idle, [](const auto* c) { return c->finished(); });
    std::erase_if(connections_, [](const auto& connection) { return connection->finished(); });
    if (std::exchange(shared_.orphans_wait, false)) kill_orphans();
    finish_drains();
  }

  void kill_orphans() {
    for (const auto& [id, links] : links_) {
      if (!links.member->orphans.empty()) errands_.kill_orphans(links.member);
    }
  }

  void finish_drains() {
    std::vector<std::function<void()>> done;
    std::erase_if(drains_, [&](Drain& drain) {
      if (waits(drain)) return false;
      done.push_back(std::move(drain.done));
      return true;
    });
    shared_.draining = !drains_.empty();
    for (const std::function<void()>& callback : done) callback();  // May drain again.
  }

  [[nodiscard]] bool waits(const Drain& drain) const {
    for (const auto& connection : connections_) {
      if (connection->exempt()) continue;
      const auto wanted = drain.waits_for.find(connection->serial());
      if (wanted != drain.waits_for.end() && connection->answered() < wanted->second) return true;
    }
    return std::ranges::any_of(links_, [&](const auto& entry) {
      return std::ranges::any_of(entry.second.member->orphans, [&](const Orphan& orphan) {
        const auto wanted = drain.waits_for.find(orphan.connection);
        if (wanted != drain.waits_for.end()) return orphan.first_unanswered < wanted->second;
        return orphan.connection < drain.next_serial;  // It broke, and was dropped, before the drain.
      });
    });
  }

  PoolShared shared_;
  Errands errands_;
  std::shared_ptr<const topology::Snapshot> snapshot_;
  std::map<std::string, Links, std::less<>> links_;  // By member id.
  std::vector<Links*> table_;                        // By MemberIndex of snapshot_.
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t next_serial_ = 1;
  std::vector<Drain> drains_;
};

}  // namespace

void PoolShared::start_ticking() {
  ticking = true;
  tick->arm(tick_of(options));
}

std::unique_ptr<Pool> make_pool(net::Loop& loop, Options options, Look* look) {
  return std::make_unique<PoolImpl>(loop, std::move(options), look);
}

}  // namespace ringshift::backend
