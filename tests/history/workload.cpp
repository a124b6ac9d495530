#include "tests/history/workload.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

namespace ringshift::history {
namespace {

using protocol::resp::Value;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kErrorExamples = 5;
constexpr std::array<const char*, 4> kFields = {"a", "b", "c", "d"};

std::int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

// How far a key has come. Shared by all clients; counts are hints, so relaxed order is enough.
struct KeyLife {
  std::atomic<std::uint32_t> generation{0}, operations{0}, unknowns{0};
  void count(bool unknown, bool retire_at_once) {
    const auto done = operations.fetch_add(1, std::memory_order_relaxed) + 1;
    const auto lost = unknowns.fetch_add(unknown ? 1 : 0, std::memory_order_relaxed) + (unknown ? 1 : 0);
    if (done < kOperationsPerKey && lost < kUnknownsPerKey && !(unknown && retire_at_once)) return;
    operations.store(0, std::memory_order_relaxed);
    unknowns.store(0, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_relaxed);
  }
};

struct Board {
  explicit Board(const WorkloadOptions& o) : options(o) {
    for (auto& kind : lives) kind = std::vector<KeyLife>(o.keys);
  }
  const WorkloadOptions& options;
  std::array<std::vector<KeyLife>, 4> lives;  // By Kind.
  std::atomic<bool> over{false};
};

class Worker {
 public:
  Worker(Board& board, std::uint32_t id)
      : board_(board),
        options_(board.options),
        id_(id),
        random_(board.options.seed * 1000003 + id),
        client_(board.options.timeout) {}

  void run() {
    next_ = Clock::now();
    while (!board_.over.load(std::memory_order_relaxed)) {
      if (!client_.connected() && !reconnect()) continue;
      make_batch();
      exchange();
      pace();
    }
  }

  History history;

 private:
  std::uint32_t pick(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
  }

  bool reconnect() {
    if (ever_connected_) ++history.reconnects;
    const auto& address = options_.proxies[pick(static_cast<std::uint32_t>(options_.proxies.size()))];
    if (client_.connect(address)) return ever_connected_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + pick(30)));
    return false;
  }

  // Keeps the rate; a worker that was held up makes up for a fifth of a second and no more.
  void pace() {
    if (options_.rate == 0) return;
    const auto behind = Clock::now() - std::chrono::milliseconds(200);
    next_ = std::max(next_, behind) +
            std::chrono::nanoseconds(1'000'000'000ULL * options_.clients * batch_.size() / options_.rate);
    std::this_thread::sleep_until(next_);
  }

  // Number of a key: low numbers are hot, so that clients meet.
  std::uint32_t pick_key() { return std::min(pick(options_.keys), pick(options_.keys)); }

  Operation begin(Kind kind, std::uint32_t number) {
    constexpr std::array<const char*, 4> kLetters = {"r", "c", "h", "e"};
    Operation op;
    op.kind = kind;
    op.client = id_;
    op.sequence = sequence_++;
    const auto index = static_cast<std::size_t>(kind);
    const auto generation = board_.lives[index][number].generation.load(std::memory_order_relaxed);
    op.key = "h:" + std::to_string(options_.seed) + ":" + kLetters[index] + std::to_string(number) + "." +
             std::to_string(generation);
    numbers_.push_back(number);
    return op;
  }

  std::string unique() { return "v" + std::to_string(id_) + "." + std::to_string(sequence_); }

  void make_batch() {
    batch_.clear();
    numbers_.clear();
    // One in four is a pipeline, mostly on one key: there the order of one connection shows.
    const std::uint32_t size =
        options_.max_pipeline > 1 && pick(4) == 0 ? 2 + pick(options_.max_pipeline - 1) : 1;
    Kind kind = pick_kind();
    std::uint32_t number = pick_key();
    for (std::uint32_t i = 0; i < size; ++i) {
      if (pick(4) == 0) {
        kind = pick_kind();
        number = pick_key();
      }
      batch_.push_back(make(kind, number));
    }
  }

  Kind pick_kind() {
    const std::uint32_t dice = pick(100);
    return dice < 40 ? Kind::register_ : dice < 60 ? Kind::counter : dice < 85 ? Kind::hash : Kind::expiry;
  }

  Operation make(Kind kind, std::uint32_t number) {
    Operation op = begin(kind, number);
    const std::uint32_t dice = pick(100);
    switch (kind) {
      case Kind::register_:
        op.verb = dice < 45   ? Verb::get
                  : dice < 75 ? Verb::set
                  : dice < 85 ? Verb::del
                  : dice < 91 ? Verb::getset
                  : dice < 96 ? Verb::set_nx
                              : Verb::exists;
        break;
      case Kind::counter:
        op.verb = dice < 65 ? Verb::incr : Verb::get;
        break;
      case Kind::hash:
        op.verb = dice < 35   ? Verb::hget
                  : dice < 65 ? Verb::hset
                  : dice < 80 ? Verb::hgetall
                  : dice < 95 ? Verb::hdel
                              : Verb::del;
        if (op.verb != Verb::hgetall && op.verb != Verb::del) op.field = kFields[pick(kFields.size())];
        break;
      case Kind::expiry: {
        // Keys are dealt out: number n is written by client n mod clients, and read by all.
        const bool owner = number % options_.clients == id_;
        if (!owner || dice < 40) {
          op.verb = dice % 2 == 0 ? Verb::get : Verb::pttl;
        } else {
          op.verb = dice < 80 ? Verb::set_px : Verb::pexpire;
          op.ttl_ms = 100 + pick(1500);
        }
        break;
      }
    }
    if (op.verb == Verb::set || op.verb == Verb::getset || op.verb == Verb::set_nx || op.verb == Verb::hset ||
        op.verb == Verb::set_px) {
      op.value = unique();
    }
    return op;
  }

  static void encode(std::string& out, const Operation& op) {
    const std::string ttl = std::to_string(op.ttl_ms);
    using protocol::resp::append_command;
    switch (op.verb) {
      case Verb::set:
        return append_command(out, {"SET", op.key, op.value});
      case Verb::set_nx:
        return append_command(out, {"SET", op.key, op.value, "NX"});
      case Verb::get:
        return append_command(out, {"GET", op.key});
      case Verb::getset:
        return append_command(out, {"GETSET", op.key, op.value});
      case Verb::del:
        return append_command(out, {"DEL", op.key});
      case Verb::exists:
        return append_command(out, {"EXISTS", op.key});
      case Verb::incr:
        return append_command(out, {"INCR", op.key});
      case Verb::hset:
        return append_command(out, {"HSET", op.key, op.field, op.value});
      case Verb::hget:
        return append_command(out, {"HGET", op.key, op.field});
      case Verb::hdel:
        return append_command(out, {"HDEL", op.key, op.field});
      case Verb::hgetall:
        return append_command(out, {"HGETALL", op.key});
      case Verb::set_px:
        return append_command(out, {"SET", op.key, op.value, "PX", ttl});
      case Verb::pexpire:
        return append_command(out, {"PEXPIRE", op.key, ttl});
      case Verb::pttl:
        return append_command(out, {"PTTL", op.key});
    }
  }

  void exchange() {
    std::string out;
    std::vector<std::optional<Value>> answers(batch_.size());
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (options_.tamper) answers[i] = options_.tamper(batch_[i]);
      if (!answers[i]) encode(out, batch_[i]);
    }
    const std::int64_t invoked = now_ns();
    bool alive = client_.send(out).has_value();
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      Operation& op = batch_[i];
      op.invoked = invoked;
      if (alive && !answers[i]) {
        auto reply = client_.read();
        alive = reply.has_value();
        if (alive) answers[i] = std::move(*reply);
      }
      op.returned = now_ns();
      op.outcome = Outcome::unknown;
      if (answers[i]) take_answer(op, *answers[i]);
      if (options_.observe) options_.observe(op);
      const bool lost = op.outcome == Outcome::unknown && is_write(op.verb);
      board_.lives[static_cast<std::size_t>(op.kind)][numbers_[i]].count(lost, op.kind == Kind::expiry);
      history.operations.push_back(std::move(op));
    }
  }

  void take_answer(Operation& op, const Value& value) {
    if (value.is_error()) {
      if (value.text.starts_with("TRYAGAIN")) {
        op.outcome = Outcome::not_executed;
      } else if (!value.text.starts_with("TIMEOUT")) {
        ++history.errors;  // Its outcome stays unknown: that accuses nobody.
        if (history.error_examples.size() < kErrorExamples) history.error_examples.push_back(value.text);
      }
      return;
    }
    op.outcome = Outcome::answered;
    op.number = value.integer;
    if (value.type == Value::Type::bulk || value.type == Value::Type::simple) op.text = value.text;
    if (op.verb != Verb::hgetall) return;
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
      op.fields.emplace_back(value.items[i].text, value.items[i + 1].text);
    }
  }

  Board& board_;
  const WorkloadOptions& options_;
  std::uint32_t id_;
  std::mt19937_64 random_;
  Client client_;
  bool ever_connected_ = false;
  Clock::time_point next_;
  std::uint64_t sequence_ = 0;
  std::vector<Operation> batch_;
  std::vector<std::uint32_t> numbers_;  // Of the batch's keys.
};

}  // namespace

History run_workload(const WorkloadOptions& options) {
  Board board(options);
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t i = 0; i < options.clients; ++i) workers.push_back(std::make_unique<Worker>(board, i));
  {
    std::vector<std::jthread> threads;
    for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
    const auto end = Clock::now() + options.duration;
    while (Clock::now() < end && !(options.stop != nullptr && options.stop->load()) &&
           (options.stop_file.empty() || !std::filesystem::exists(options.stop_file))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    board.over = true;
  }
  History history;
  for (auto& worker : workers) {
    History& part = worker->history;
    std::ranges::move(part.operations, std::back_inserter(history.operations));
    history.errors += part.errors;
    history.reconnects += part.reconnects;
    for (std::string& example : part.error_examples) {
      const bool known = std::ranges::find(history.error_examples, example) != history.error_examples.end();
      if (!known && history.error_examples.size() < kErrorExamples)
        history.error_examples.push_back(std::move(example));
    }
  }
  return history;
}

}  // namespace ringshift::history
