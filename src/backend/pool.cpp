// The Pool: which connections there are, deadlines, drains. What one connection does is in connection.cpp.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "backend/backend.h"
#include "backend/connection.h"

namespace ringshift::backend {
namespace {

using std::chrono::milliseconds;

// Deadlines are checked this often: a tenth of the timeout, within limits.
milliseconds tick_of(const Options& options) {
  return std::clamp(options.request_timeout / 10, milliseconds(2), milliseconds(50));
}

class PoolImpl final : public Pool {
 public:
  PoolImpl(net::Loop& loop, Options options, Look* look) : shared_(loop, std::move(options), look) {
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
      }
      if (links.address != member.address) move_to(links, member.address);
      table_.push_back(&next.emplace(member.id, std::move(links)).first->second);
    }
    for (auto& [id, links] : links_) {
      links.member->gone = true;
      links.member->orphans.clear();
      retire(links);
    }
    links_ = std::move(next);  // Moves no node, so the table stays good.
    if (snapshot_ != nullptr && snapshot->topology().fence != snapshot_->topology().fence) {
      for (const auto& connection : connections_) connection->drop_queue();
    }
    snapshot_ = std::move(snapshot);
    shared_.keep_house_soon();
  }

  Backend& at(topology::MemberIndex member, Resp resp) override {
    Links& links = *table_[member];
    if (resp == Resp::v2) return *links.v2;
    if (links.v3 == nullptr) links.v3 = make(links, Resp::v3);
    return *links.v3;
  }

  void drain(std::function<void()> done) override {
    Drain drain{.done = std::move(done), .next_serial = next_serial_, .waits_for = {}};
    for (const auto& connection : connections_)
      drain.waits_for[connection->serial()] = connection->accepted();
    drains_.push_back(std::move(drain));
    shared_.draining = true;
    shared_.keep_house_soon();
  }

  void flush() override {
    // flush() of a connection calls nobody, so the list does not grow meanwhile.
    for (Connection* connection : shared_.dirty) connection->flush();
    shared_.dirty.clear();
  }

 private:
  struct Links {
    std::shared_ptr<MemberState> member;
    std::string address;
    Connection* v2 = nullptr;  // Owned by connections_.
    Connection* v3 = nullptr;  // Null until asked for.
  };
  struct Drain {
    std::function<void()> done;
    std::uint64_t next_serial;                                   // Connections from here on were made later.
    std::unordered_map<std::uint64_t, std::uint64_t> waits_for;  // Serial -> commands to be answered.
  };

  Connection* make(const Links& links, Resp resp) {
    connections_.push_back(
        std::make_unique<Connection>(shared_, links.member, links.address, resp, next_serial_++));
    return connections_.back().get();
  }

  static void retire(Links& links) {
    if (links.v2 != nullptr) links.v2->retire();
    if (links.v3 != nullptr) links.v3->retire();
    links.v2 = links.v3 = nullptr;
  }

  void move_to(Links& links, const std::string& address) {
    const bool had_v3 = links.v3 != nullptr;
    retire(links);
    links.address = address;
    links.v2 = make(links, Resp::v2);
    if (had_v3) links.v3 = make(links, Resp::v3);
  }

  void tick() {
    // By index and over those of now: a sink that is told of a failure may make the pool grow.
    const std::size_t count = connections_.size();
    const base::TimePoint now = shared_.loop.now();
    for (std::size_t i = 0; i < count; ++i) connections_[i]->check_deadlines(now);
    shared_.ticking = std::ranges::any_of(connections_, [](const auto& c) { return !c->idle(); });
    if (shared_.ticking) shared_.tick->arm(tick_of(shared_.options));
  }

  // In a wakeup of its own, so that nothing here happens inside somebody's send() or adopt().
  void keep_house() {
    shared_.soon_armed = false;
    std::vector<PoolShared::Deferred> deferred;
    deferred.swap(shared_.deferred);
    for (const PoolShared::Deferred& one : deferred) {
      one.sink->on_failure(one.tag, {one.kind, one.member->id, one.reason});
    }
    std::erase_if(connections_, [](const auto& connection) { return connection->finished(); });
    finish_drains();
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
