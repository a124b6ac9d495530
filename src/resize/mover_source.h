// One source of the mover (mover.h): its scanning thread, its lanes, and the probe that looks after its
// clients' patience. Internal to mover*.cpp.
#pragma once
#include <deque>
#include <map>
#include <random>
#include <set>

#include "resize/budget.h"
#include "resize/latency_window.h"
#include "resize/mover.h"
#include "resize/rate_governor.h"

namespace ringshift::resize {

// What all sources of one mover share.
struct MoverShared {
  MoverShared(std::shared_ptr<const topology::Snapshot> s, Mover::Options o);

  const std::shared_ptr<const topology::Snapshot> snapshot;
  const Mover::Options options;
  std::atomic<bool> stopping{false};
  std::atomic<bool> origin_over{false};
  Budget batches, memory;
  mutable std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex:
  Mover::Progress progress;
  std::map<topology::MemberIndex, std::vector<BigKey>> waiting;  // By source.
  std::map<topology::MemberIndex, std::uint64_t> waiting_keys;
  std::map<topology::MemberIndex, std::pair<double, std::string>> rates;  // By source: keys/s, and why.
  std::vector<std::string> hot;                                           // In the order of their heat.
  std::set<std::string> hot_known;                                        // The same.
  std::size_t running = 0;
  Mover::Outcome outcome = Mover::Outcome::clean;
  std::string error;

  bool pause(base::Duration duration);  // False when stopped.
  void stop();
  [[nodiscard]] bool is_rollback() const { return snapshot->topology().resize->rollback; }
};

class MoverSource {
 public:
  static constexpr unsigned kTriesMax = 6;         // In a row, against one member.
  static constexpr std::size_t kBatchesAhead = 4;  // Packed, and not yet taken by a lane.

  MoverSource(MoverShared& shared, topology::MemberIndex index);
  ~MoverSource();  // Waits for the lanes and the probe.
  MoverSource(const MoverSource&) = delete;
  MoverSource& operator=(const MoverSource&) = delete;

  Mover::Outcome run(std::string& error);

 private:
  using Outcome = Mover::Outcome;
  using Client = std::unique_ptr<backend::SyncClient>;
  struct Batch {
    topology::MemberIndex to = 0;
    std::vector<std::string> keys;
    std::uint64_t bytes = 0;  // As far as it was measured.
  };
  struct Lane {
    Client source;
    std::map<topology::MemberIndex, Client> destinations;
    transfer::TokenSource tokens;  // One for each lane: see TokenSource.
    std::chrono::milliseconds patience{3000};
    std::string_view claim_ms = transfer::kClaimTtlMs;
  };
  // Of a member that does not answer.
  struct Trouble {
    unsigned failures = 0;  // In a row.
    base::TimePoint not_before{};
    std::string error;
  };

  // mover_source.cpp: the scanning thread
  Outcome pass();
  bool scan_page(std::string& cursor, std::vector<std::string>& keys);  // False: the connection broke.
  void take_hot_keys();
  // Of hot keys, which may not be there, nothing is concluded.
  void sort_in(const std::vector<std::string>& keys, bool scanned);
  std::vector<std::uint64_t> measure(const std::vector<std::string>& keys, std::uint64_t smallest);
  void add(topology::MemberIndex to, std::string key, std::uint64_t bytes);
  void push(Batch batch);
  void finish_batches();  // What is packed, and what is under way.
  void move_big_keys();
  void tell_waiting();
  Result<std::string> run_id();
  bool connect_scan();

  // mover_lane.cpp: transfers
  void start_lanes();
  void lane();
  void move_batch(Lane& lane, const Batch& batch);
  bool prepare(Lane& lane, topology::MemberIndex to);
  bool wait_for_tokens(std::size_t keys);
  void book(topology::MemberIndex to, const transfer::BatchResult& result);
  void failed_at(topology::MemberIndex member, const std::string& error);
  void answered(topology::MemberIndex member);
  void conclude(Outcome outcome, std::string error);  // The first one stands.
  [[nodiscard]] bool over() const;                    // Stopped, or concluded.
  [[nodiscard]] Result<Client> dial(topology::MemberIndex member, std::chrono::milliseconds patience) const;
  [[nodiscard]] const std::string& id(topology::MemberIndex member) const;

  // mover_probe.cpp
  void start_probe();
  void probe();
  void tell_rate(double p99_ms);

  MoverShared& shared_;
  const topology::MemberIndex index_;
  const std::size_t lanes_wanted_;

  // Of the scanning thread:
  Client scan_;
  std::string run_id_;
  std::map<topology::MemberIndex, Batch> packing_;
  std::vector<std::pair<topology::MemberIndex, BigKey>> big_;  // Found in this pass.
  std::set<std::string> hot_seen_;
  bool can_measure_ = true;
  std::uint64_t found_ = 0, left_out_ = 0;  // In this pass. Left out: their destination does not answer.

  std::atomic<std::uint64_t> moved_{0};
  TokenBucket rate_;
  RateGovernor governor_;  // Of the probe.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<Batch> queue_;
  std::size_t at_work_ = 0;
  bool closed_ = false;
  bool idle_known_ = false;  // The probe has measured the source without the mover.
  std::optional<std::pair<Outcome, std::string>> verdict_;
  std::map<topology::MemberIndex, Trouble> trouble_;
  std::mt19937_64 random_;

  std::vector<std::thread> lanes_;
  std::thread probe_;
};

}  // namespace ringshift::resize
