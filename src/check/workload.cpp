#include "check/workload.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include "backend/sync_client.h"
#include "check/choices.h"
#include "check/commands.h"
#include "check/key_lives.h"

namespace ringshift::check {
namespace {

using protocol::resp::Value;
using Clock = std::chrono::steady_clock;

std::int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

std::vector<Kind> kinds_of(const WorkloadOptions& options) {
  if (!options.kinds.empty()) return options.kinds;
  std::vector<Kind> all;
  for (std::size_t i = 0; i < kKinds; ++i) all.push_back(static_cast<Kind>(i));
  return all;
}

// What all clients share.
struct Board {
  Board(const WorkloadOptions& o, KeyLives::Done done)
      : options(o), kinds(kinds_of(o)), lives(prefix_of(o), o.keys, std::move(done)) {}
  const WorkloadOptions& options;
  const std::vector<Kind> kinds;
  KeyLives lives;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> operations{0};
};

class Worker {
 public:
  Worker(Board& board, std::uint32_t id)
      : board_(board),
        options_(board.options),
        id_(id),
        choices_({board.kinds, options_.clients, options_.keys, options_.max_value}, options_.seed, id) {}

  void run() {
    next_ = Clock::now();
    while (!board_.over.load(std::memory_order_relaxed)) {
      if ((!client_ || !client_->connected()) && !reconnect()) continue;
      make_batch();
      exchange();
      pace();
    }
  }

  History history;

 private:
  struct Planned {
    Operation operation;
    KeyLives::Lease lease;
    std::size_t size = 0;
  };

  bool reconnect() {
    if (ever_connected_) ++history.reconnects;
    proxy_ = choices_.below(static_cast<std::uint32_t>(options_.proxies.size()));
    backend::SyncOptions how;
    how.connect_timeout = std::min(options_.timeout, std::chrono::milliseconds(2000));
    how.request_timeout = options_.timeout;
    how.access = options_.access;
    auto connected = backend::SyncClient::connect(options_.proxies[proxy_], how);
    if (connected) {
      client_ = std::move(*connected);
      return ever_connected_ = true;
    }
    note_error(connected.error().message, /*answer=*/false);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + choices_.below(30)));
    return false;
  }

  // Keeps the rate; a worker that was held up makes up for a fifth of a second and no more.
  void pace() {
    if (options_.rate == 0) return;
    const auto behind = Clock::now() - std::chrono::milliseconds(200);
    next_ = std::max(next_, behind) +
            std::chrono::nanoseconds(1'000'000'000ULL * options_.clients * batch_.size() / options_.rate);
    // In pieces, so that a slow rate does not hold up the end.
    while (Clock::now() < next_ && !board_.over.load(std::memory_order_relaxed)) {
      std::this_thread::sleep_until(std::min(next_, Clock::now() + std::chrono::milliseconds(100)));
    }
  }

  void make_batch() {
    batch_.clear();
    // One in four is a pipeline, mostly on one key: there the order of one connection shows.
    const std::uint32_t size = options_.max_pipeline > 1 && choices_.below(4) == 0
                                   ? 2 + choices_.below(options_.max_pipeline - 1)
                                   : 1;
    Kind kind = choices_.kind();
    std::uint32_t number = choices_.key();
    for (std::uint32_t i = 0; i < size; ++i) {
      if (choices_.below(4) == 0) {
        kind = choices_.kind();
        number = choices_.key();
      }
      Planned planned;
      Operation& op = planned.operation;
      planned.lease = board_.lives.begin(kind, number, op);
      op.client = id_;
      op.proxy = proxy_;
      op.sequence = sequence_++;
      if (choices_.operation(kind, number, op)) {
        // Scores are numbers, and exact up to 2^53.
        op.value = op.verb == Verb::zadd ? std::to_string(1 + op.sequence * kMaxClients + id_)
                                         : "v" + std::to_string(id_) + "." + std::to_string(op.sequence);
        planned.size = choices_.value_size();
      }
      batch_.push_back(std::move(planned));
    }
  }

  void exchange() {
    std::string out;
    std::vector<std::optional<Value>> answers(batch_.size());
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (options_.tamper) answers[i] = options_.tamper(batch_[i].operation);
      if (!answers[i]) encode(out, batch_[i].operation, batch_[i].size);
    }
    const std::int64_t invoked = now_ns();
    bool alive = out.empty() || client_->send(out).has_value();
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      Operation& op = batch_[i].operation;
      op.invoked = invoked;
      if (alive && !answers[i]) {
        auto reply = client_->receive(1);
        alive = reply.has_value();
        if (alive) answers[i] = std::move(reply->front());
      }
      op.returned = now_ns();
      op.outcome = Outcome::unknown;
      if (answers[i] && take_answer(op, *answers[i]) == Meaning::unknown_error) {
        note_error(answers[i]->text, /*answer=*/true);
      }
      if (options_.observe) options_.observe(op);
      board_.lives.end(batch_[i].lease, std::move(op));
    }
    board_.operations.fetch_add(batch_.size(), std::memory_order_relaxed);
  }

  void note_error(const std::string& text, bool answer) {
    if (answer) ++history.errors;
    auto& examples = history.error_examples;
    if (!answer && ever_connected_) return;  // Faults are not news; that it never worked is.
    if (examples.size() < kErrorExamples && std::ranges::find(examples, text) == examples.end())
      examples.push_back(text);
  }

  Board& board_;
  const WorkloadOptions& options_;
  const std::uint32_t id_;
  Choices choices_;
  std::unique_ptr<backend::SyncClient> client_;
  std::uint32_t proxy_ = 0;
  bool ever_connected_ = false;
  Clock::time_point next_;
  std::uint64_t sequence_ = 0;
  std::vector<Planned> batch_;
};

bool asked_to_stop(const WorkloadOptions& options, std::uint64_t operations) {
  return (options.stop != nullptr && options.stop->load()) || (options.tick && options.tick(operations)) ||
         (!options.stop_file.empty() && std::filesystem::exists(options.stop_file));
}

void add(History& history, History& part) {
  history.errors += part.errors;
  history.reconnects += part.reconnects;
  for (std::string& example : part.error_examples) {
    const bool known = std::ranges::find(history.error_examples, example) != history.error_examples.end();
    if (!known && history.error_examples.size() < kErrorExamples)
      history.error_examples.push_back(std::move(example));
  }
}

}  // namespace

std::string prefix_of(const WorkloadOptions& options) {
  return options.prefix.empty() ? "h:" + std::to_string(options.seed) + ":" : options.prefix;
}

History run_workload(const WorkloadOptions& options) {
  History history;
  std::mutex mutex;
  KeyLives::Done done = options.done;
  if (!done) {
    done = [&](std::vector<Operation> operations) {
      const std::lock_guard lock(mutex);
      std::ranges::move(operations, std::back_inserter(history.operations));
    };
  }
  Board board(options, std::move(done));
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t i = 0; i < options.clients; ++i) workers.push_back(std::make_unique<Worker>(board, i));
  {
    std::vector<std::jthread> threads;
    for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
    const auto end = Clock::now() + options.duration;
    while (Clock::now() < end && !asked_to_stop(options, board.operations.load(std::memory_order_relaxed))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    board.over = true;
  }
  board.lives.finish();
  for (auto& worker : workers) add(history, worker->history);
  return history;
}

}  // namespace ringshift::check
