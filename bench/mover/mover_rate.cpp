// How fast the mover empties a Redis, beside MIGRATE in batches of ten as `redis-cli --cluster reshard` sends
// them, and what a client of that Redis sees meanwhile. Everything on this machine, in rounds whose order
// alternates, so that what else runs here meets all of them.
//
//   mover_rate [--keys N] [--rounds N] [--seconds N] [--json FILE]
//
// CPU a key is what the scheduler says of the two servers' main threads and of this process: unlike the other
// figures it says the same on a busy machine.
//
// MIGRATE gets its keys for nothing; redis-cli asks for them by CLUSTER GETKEYSINSLOT, one more round trip.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "backend/sync_client.h"
#include "resize/mover.h"
#include "resize/phases.h"
#include "tests/support/redis_process.h"
#include "transfer/steps.h"

namespace {

using namespace ringshift;  // NOLINT: a program of one file
using Clock = std::chrono::steady_clock;
using backend::SyncClient;
using resize::Mover;

constexpr int kMigrateKeys = 10;  // redis-cli's CLUSTER_MANAGER_MIGRATE_PIPELINE.
constexpr int kForegroundPerSecond = 5000;
constexpr int kForegroundThreads = 2;
constexpr int kForegroundKeys = 1000;
const std::string kValue(1024, 'v');

struct Options {
  int keys = 20'000, rounds = 5, seconds = 4;
  std::string json;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "mover_rate: {}\n", why);
  std::exit(1);
}

std::unique_ptr<SyncClient> dial(const test::RedisProcess& redis, int timeout_ms = 60'000) {
  backend::SyncOptions options;
  options.request_timeout = std::chrono::milliseconds(timeout_ms);
  auto client = SyncClient::connect(redis.address(), options);
  if (!client) give_up(client.error().message);
  return std::move(*client);
}

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)), old_(dial(a_)), new_(dial(b_)) {
    topology::Topology now;
    now.spec.cluster = "bench";
    now.spec.members = {member("a", a_)};
    topology::Spec target = now.spec;
    target.members = {member("b", b_)};
    topology_ = resize::dual(resize::hold(resize::begin(now, target, "r", {}), {{0, topology::kSliceCount}},
                                          {{"a", "ra"}, {"b", "rb"}}));
    snapshot_ = *topology::Snapshot::compile(topology_, {1, 1});
    for (int i = 0; i < kForegroundKeys; ++i) {  // Reserved names do not move.
      if (!old_->call({"SET", fmt::format("rs:fg:{}", i), kValue})) give_up("SET");
    }
  }

  void fill() {
    if (!new_->call({"FLUSHALL"})) give_up("FLUSHALL");
    std::string bytes;
    for (int i = 0; i < options_.keys; ++i)
      protocol::resp::append_command(bytes, {"SET", fmt::format("key:{:08}", i), kValue});
    if (!old_->pipeline(bytes, static_cast<std::size_t>(options_.keys))) give_up("SET");
    if (!new_->call({"SET", transfer::kStampKey, transfer::open_stamp(topology_.fence, "b")})) give_up("SET");
  }

  double migrate() {
    const auto client = dial(a_);
    const auto port = std::to_string(b_.port());
    const auto start = Clock::now();
    for (int i = 0; i < options_.keys; i += kMigrateKeys) {
      std::vector<std::string> names;
      for (int k = i; k < std::min(options_.keys, i + kMigrateKeys); ++k)
        names.push_back(fmt::format("key:{:08}", k));
      std::vector<std::string_view> words = {"MIGRATE", "127.0.0.1", port, "", "0", "60000", "KEYS"};
      words.insert(words.end(), names.begin(), names.end());
      const auto reply = client->call(words);
      if (!reply || reply->is_error()) give_up(reply ? reply->text : reply.error().message);
    }
    return rate(start);
  }

  double move(const topology::Limits& limits, transfer::Verify verify = transfer::Verify::counts) {
    resize::TokenBucket keys(static_cast<double>(limits.move_keys_per_second), Clock::now());
    resize::TokenBucket bytes(1e12, Clock::now());
    Mover::Options options;
    options.name = "rs:bench";
    options.limits = limits;
    options.keys = &keys;
    options.bytes = &bytes;
    options.verify = verify;
    const auto start = Clock::now();
    Mover mover(snapshot_, options);
    while (!mover.wait(std::chrono::seconds(1))) {
    }
    if (mover.outcome() != Mover::Outcome::clean) give_up(mover.error());
    return rate(start);
  }

  // Microseconds of CPU that the source, the destination and we have used until now.
  struct Cpu {
    double source = 0, destination = 0, ours = 0;
  };
  [[nodiscard]] Cpu cpu() const {
    rusage self{};
    getrusage(RUSAGE_SELF, &self);
    const auto micros = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return {on_cpu(a_.pid()), on_cpu(b_.pid()), micros(self.ru_utime) + micros(self.ru_stime)};
  }

  // What clients of the source see, from the moment a request was due: while `work` runs once, or for
  // --seconds without any.
  double p99_ms(const std::function<void()>& work) {
    std::atomic<bool> over{false};
    std::vector<std::vector<double>> latencies(kForegroundThreads);
    std::vector<std::thread> threads;
    const auto start = Clock::now() + std::chrono::milliseconds(50);
    for (int t = 0; t < kForegroundThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto client = dial(a_);
        const auto step = std::chrono::nanoseconds(1'000'000'000 / kForegroundPerSecond);
        for (int i = t; !over; i += kForegroundThreads) {
          const auto due = start + i * step;
          std::this_thread::sleep_until(due);
          const std::string key = fmt::format("rs:fg:{}", i % kForegroundKeys);
          const auto reply = i % 10 == 0 ? client->call({"SET", key, kValue}) : client->call({"GET", key});
          if (!reply) give_up(reply.error().message);
          latencies[static_cast<std::size_t>(t)].push_back(
              std::chrono::duration<double, std::milli>(Clock::now() - due).count());
        }
      });
    }
    std::this_thread::sleep_until(start);
    if (work) {
      work();
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(options_.seconds));
    }
    over = true;
    for (std::thread& thread : threads) thread.join();
    std::vector<double> all;
    for (const auto& some : latencies) all.insert(all.end(), some.begin(), some.end());
    std::ranges::sort(all);
    return all[all.size() * 99 / 100];
  }

 private:
  static double on_cpu(pid_t pid) {
    const std::string path = fmt::format("/proc/{}/schedstat", pid);
    std::FILE* file = std::fopen(path.c_str(), "r");
    double nanoseconds = 0;
    if (file == nullptr || std::fscanf(file, "%lf", &nanoseconds) != 1) give_up("cannot read " + path);
    std::fclose(file);
    return nanoseconds / 1000;
  }
  static topology::Member member(const std::string& id, const test::RedisProcess& redis) {
    topology::Member out;
    out.id = id;
    out.address = redis.address();
    return out;
  }
  [[nodiscard]] double rate(Clock::time_point start) const {
    return options_.keys / std::chrono::duration<double>(Clock::now() - start).count();
  }

  const Options options_;
  test::RedisProcess a_, b_;
  std::unique_ptr<SyncClient> old_, new_;
  topology::Topology topology_;
  std::shared_ptr<const topology::Snapshot> snapshot_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Row {
  Row(std::string n, std::function<double()> r) : name(std::move(n)), run(std::move(r)) {}
  std::string name;
  std::function<double()> run;
  std::vector<double> rates, p99s, source_us, destination_us, our_us;
};

topology::Limits limits(std::uint32_t in_flight, std::uint64_t rate, std::uint32_t latency_ms,
                        std::uint32_t batch_keys = topology::Limits{}.move_batch_keys) {
  topology::Limits out;
  out.move_batch_keys = batch_keys;
  out.move_batches_in_flight = in_flight;
  out.move_keys_per_second = rate;
  out.move_latency_ms = latency_ms;
  return out;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (i + 1 == argc) give_up(flag + ": unknown, or its value is missing");
    const char* value = argv[++i];
    if (flag == "--keys") {
      options.keys = std::atoi(value);
    } else if (flag == "--rounds") {
      options.rounds = std::atoi(value);
    } else if (flag == "--seconds") {
      options.seconds = std::atoi(value);
    } else if (flag == "--json") {
      options.json = value;
    } else {
      give_up(flag + ": none of --keys, --rounds, --seconds, --json");
    }
  }
  if (options.keys < 100 || options.rounds < 1 || options.seconds < 1)
    give_up("--keys at least 100, --rounds and --seconds at least 1");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Bench bench(options);
  constexpr std::uint64_t kUnlimited = 1'000'000'000;
  std::vector<Row> rows = {
      {"MIGRATE, 10 keys each", [&] { return bench.migrate(); }},
      {"mover, 1 batch in flight", [&] { return bench.move(limits(1, kUnlimited, 0)); }},
      {"mover, 3 in flight (default)", [&] { return bench.move(limits(3, kUnlimited, 0)); }},
      {"mover, 10 in flight", [&] { return bench.move(limits(10, kUnlimited, 0)); }},
      {"mover, 3 in flight, of 20 keys", [&] { return bench.move(limits(3, kUnlimited, 0, 20)); }},
      {"mover, 6 in flight, of 20 keys", [&] { return bench.move(limits(6, kUnlimited, 0, 20)); }},
      {"mover, 3, p99 watched", [&] { return bench.move(limits(3, kUnlimited, 1)); }},
      {"mover, 3, every copy compared",
       [&] { return bench.move(limits(3, kUnlimited, 0), transfer::Verify::all); }},
      {"mover, 3, 5000 keys/s (default)", [&] { return bench.move(limits(3, 5000, 10)); }},
  };
  std::vector<double> idle;
  for (int round = 0; round < options.rounds; ++round) {
    idle.push_back(bench.p99_ms({}));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows[round % 2 == 0 ? i : rows.size() - 1 - i];
      bench.fill();
      const Bench::Cpu before = bench.cpu();
      row.rates.push_back(row.run());
      const Bench::Cpu after = bench.cpu();
      row.source_us.push_back((after.source - before.source) / options.keys);
      row.destination_us.push_back((after.destination - before.destination) / options.keys);
      row.our_us.push_back((after.ours - before.ours) / options.keys);
      bench.fill();
      row.p99s.push_back(bench.p99_ms([&] { row.run(); }));
    }
  }
  const double base = median(rows[0].rates), quiet = median(idle);
  fmt::print(
      "{} keys of 1 KiB, {} rounds; clients: {} requests/s of 1 KiB at the source, p99 {:.2f} ms when "
      "idle\n\n",
      options.keys, options.rounds, kForegroundPerSecond, quiet);
  fmt::print("{:<34} {:>9} {:>11} {:>8} {:>8}   {}\n", "", "keys/s", "to MIGRATE", "p99 ms", "to idle",
             "CPU us a key: source, destination, ours");
  std::string json = fmt::format("{{\"keys\":{},\"rounds\":{},\"idle_p99_ms\":{:.4f},\"rows\":[",
                                 options.keys, options.rounds, quiet);
  for (const Row& row : rows) {
    const double rate = median(row.rates), p99 = median(row.p99s);
    const double source = median(row.source_us), destination = median(row.destination_us),
                 ours = median(row.our_us);
    fmt::print("{:<34} {:>9.0f} {:>10.2f}x {:>8.2f} {:>7.1f}x   {:>5.1f} {:>5.1f} {:>5.1f}\n", row.name, rate,
               rate / base, p99, p99 / quiet, source, destination, ours);
    json += fmt::format(
        "{}{{\"name\":\"{}\",\"keys_per_second\":{:.1f},\"to_migrate\":{:.3f},\"p99_ms\":{:.4f},\"p99_to_"
        "idle\":{:.3f},"
        "\"source_us\":{:.2f},\"destination_us\":{:.2f},\"our_us\":{:.2f},\"rates\":[{:.1f}],\"p99s\":[{:.4f}"
        "]}}",
        &row == &rows.front() ? "" : ",", row.name, rate, rate / base, p99, p99 / quiet, source, destination,
        ours, fmt::join(row.rates, ","), fmt::join(row.p99s, ","));
  }
  json += "]}\n";
  if (!options.json.empty()) {
    std::FILE* file = std::fopen(options.json.c_str(), "w");
    if (file == nullptr) give_up("cannot write " + options.json);
    std::fputs(json.c_str(), file);
    std::fclose(file);
  }
  return 0;
}
