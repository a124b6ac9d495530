#include "cli/playground.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>
#include <utility>

#include "ringshift/diff.h"

namespace ringshift::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::size_t kNodesBefore = 4;
constexpr std::size_t kNodesAfter = 5;
constexpr auto kWarmUp = 3s;
constexpr auto kPollEvery = 100ms;
constexpr auto kResizeTimeout = 5min;
constexpr std::string_view kCluster = "cache";
const std::vector<double> kSteps = {1, 10, 50, 100};

double seconds(base::Duration time) { return std::chrono::duration<double>(time).count(); }

topology::Spec spec_of(std::span<const drill::RedisNode> nodes) {
  topology::Spec spec;
  spec.cluster = kCluster;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    topology::Member member;
    member.id = fmt::format("cache-{}", i + 1);
    member.address = nodes[i].address;
    spec.members.push_back(std::move(member));
  }
  return spec;
}

Status write_spec(const std::string& path, const topology::Spec& spec) {
  std::ofstream file(path);
  file << topology::to_json(spec) << '\n';  // JSON is YAML.
  file.close();
  if (!file) return fail(ErrorKind::internal, fmt::format("cannot write {}", path));
  return {};
}

std::unexpected<Error> interrupted() { return fail(ErrorKind::retryable, std::string(kInterrupted)); }

}  // namespace

Playground::Playground(PlaygroundOptions options, Console& console, Interrupt& interrupt)
    : options_(std::move(options)), console_(console), interrupt_(interrupt) {}

Playground::~Playground() {
  if (deployment_) deployment_->end_actions();  // Or the admin port would wait for them.
}

std::uint16_t Playground::pick_port(std::uint16_t wanted, std::string_view what) {
  if (drill::port_is_free(wanted)) return wanted;
  const std::uint16_t other = drill::free_port();
  console_.line("Port {} is in use: {} listens on {} instead.", wanted, what, other);
  return other;
}

drill::Load::Progress Playground::progress(std::string label) {
  return [this, label = std::move(label)](std::uint64_t done, std::uint64_t total) {
    console_.bar(label, static_cast<double>(done) / static_cast<double>(total),
                 fmt::format("{} keys", grouped(done)));
    return !interrupt_.requested();
  };
}

Status Playground::set_up() {
  if (Status servers = start_servers(); !servers) return servers;
  if (Status deployed = start_deployment(); !deployed) return deployed;
  return fill();
}

Status Playground::start_servers() {
  Result<drill::RunDirectory> directory = options_.data_dir.empty()
                                              ? drill::RunDirectory::create_temporary()
                                              : drill::RunDirectory::create_kept(options_.data_dir);
  if (!directory) return std::unexpected(directory.error());
  directory_.emplace(std::move(*directory));
  if (directory_->kept()) console_.line("Files are kept in {}.", directory_->path());

  drill::FleetOptions fleet;
  fleet.directory = directory_->path();
  fleet_.emplace(std::move(fleet));
  std::string ports;
  for (std::size_t i = 0; i < kNodesAfter; ++i) {
    if (interrupt_.requested()) return interrupted();
    const Result<drill::RedisNode> node = fleet_->add();
    if (!node) return std::unexpected(node.error());
    ports += fmt::format("{}{}", i == 0 ? "" : ", ", node->port);
  }
  console_.line("{} redis-servers on ports {}; the last one waits to join.", kNodesAfter, ports);
  four_ = spec_of(fleet_->nodes().first(kNodesBefore));
  five_ = spec_of(fleet_->nodes());
  if (Status written = write_spec(directory_->path() + "/four.yaml", four_); !written) return written;
  return write_spec(directory_->path() + "/five.yaml", five_);
}

Status Playground::start_deployment() {
  DeploymentOptions options;
  options.data_dir = directory_->path();
  options.registry_listen = fmt::format("127.0.0.1:{}", pick_port(options_.registry_port, "the registry"));
  options.proxy_listen = fmt::format("127.0.0.1:{}", pick_port(options_.port, "the proxy"));
  options.proxy_threads = std::max(1U, std::thread::hardware_concurrency());
  options.cluster = kCluster;
  Result<std::unique_ptr<Deployment>> deployment = Deployment::start(options, four_);
  if (!deployment) return std::unexpected(deployment.error());
  deployment_ = std::move(*deployment);
  console_.line("Registry at {}, proxy at {}.", deployment_->registry_url(),
                deployment_->proxy_addresses().front());
  return start_admin();
}

Status Playground::start_admin() {
  AdminFlags flags;
  flags.listen = options_.admin_listen;
  if (!flags.wanted()) return {};
  const auto address = http::parse_host_port(flags.listen);
  if (!address) return fail(address.error().kind, "--admin-listen: " + address.error().message);
  Result<std::unique_ptr<admin::Listener>> listener = flags.open();
  if (!listener && address->port != 0) {
    const std::string wanted =
        std::exchange(flags.listen, flags.listen.substr(0, flags.listen.rfind(':')) + ":0");
    listener = flags.open();
    if (listener) console_.line("{} is in use: the admin port is another one.", wanted);
  }
  if (!listener) return std::unexpected(listener.error());
  admin_ = std::move(*listener);
  deployment_->show(admin_.get());
  Result<std::optional<admin::Tokens>> tokens = options_.admin_api.open(directory_->path());
  if (!tokens) return std::unexpected(tokens.error());
  const std::string token_file = (*tokens)->path();
  deployment_->show_api(admin_.get(), "up", *std::move(tokens));
  console_.line("Dashboard at {}/, metrics at {}/metrics (the token for actions: {}).", admin_->url(),
                admin_->url(), token_file);
  return {};
}

Status Playground::fill() {
  load_options_.addresses = deployment_->proxy_addresses();
  load_options_.requests_per_second = options_.requests_per_second;
  load_options_.seed = options_.seed;
  // A share of the objects is out of the cache at any time (just updated), so there are more of them.
  load_options_.objects = static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(options_.keys) / (1 - drill::absent_share(load_options_))));
  console_.line("Origin: a SQLite database with {} objects.", grouped(drill::objects_of(load_options_)));
  auto origin = drill::Origin::create(directory_->path() + "/origin.db", drill::objects_of(load_options_));
  if (!origin) return std::unexpected(origin.error());
  origin_ = std::move(*origin);
  auto load = drill::Load::create(load_options_, *origin_);
  if (!load) return std::unexpected(load.error());
  load_ = std::move(*load);
  if (Status filled = load_->fill(progress("Filling the cache")); !filled) return filled;
  if (interrupt_.requested()) return interrupted();
  console_.line("Filled the cache through the proxy.");
  return {};
}

// Lets the load run for `time`.
Status Playground::pass(std::string_view label, base::Duration time) {
  const auto begin = steady_clock::now();
  for (;;) {
    const base::Duration gone = steady_clock::now() - begin;
    console_.bar(label, seconds(gone) / seconds(time),
                 fmt::format("{:.0f} s of {:.0f}", seconds(gone), seconds(time)));
    if (gone >= time) return {};
    if (interrupt_.wait(std::min<base::Duration>(100ms, time - gone))) return interrupted();
  }
}

Result<UpReport> Playground::measure() {
  UpReport report;
  report.load = load_options_;
  report.joined = five_.members.back().id;
  report.nodes_before = kNodesBefore;
  report.nodes_after = kNodesAfter;
  const Result<topology::Diff> diff = topology::diff(four_, five_);
  if (!diff) return std::unexpected(diff.error());
  report.moved_share = diff->moved_share;
  report.minimum_share = diff->minimum_share;

  drill::Recorder& recorder = load_->recorder();
  load_->start();
  console_.line("Load: {:.0f} requests/s, Zipf-distributed, each answer checked.",
                load_options_.requests_per_second);
  if (Status passed = pass("Warming up", kWarmUp); !passed) return std::unexpected(passed.error());
  recorder.begin(drill::Stage::before, steady_clock::now());
  if (Status passed = pass("Measuring four nodes", options_.steady); !passed)
    return std::unexpected(passed.error());
  recorder.begin(drill::Stage::other, steady_clock::now());
  // Under load, so give or take the few keys that come and go while it counts.
  Result<drill::Census> census = drill::take_census(four_, five_, drill::PlacedBy::from);
  if (!census) return std::unexpected(census.error());
  report.census_before = std::move(*census);

  if (Status resized = resize(report); !resized) return std::unexpected(resized.error());
  if (Status passed = pass("Measuring five nodes", options_.steady / 2); !passed)
    return std::unexpected(passed.error());
  recorder.begin(drill::Stage::other, steady_clock::now());
  if (Status concluded = conclude(report); !concluded) return std::unexpected(concluded.error());
  return report;
}

Status Playground::resize(UpReport& report) {
  console_.line("Growing from {} nodes to {} while the load runs.", kNodesBefore, kNodesAfter);
  drill::Recorder& recorder = load_->recorder();
  const auto begin = steady_clock::now();
  recorder.begin(drill::Stage::during, begin);
  if (Status started = deployment_->start_resize(five_, kSteps); !started) return started;
  for (;;) {
    if (interrupt_.wait(kPollEvery)) return interrupted();
    const auto now = steady_clock::now();
    const Result<ResizeStatus> status = deployment_->status();
    if (status && status->state == "finished") {
      recorder.begin(drill::Stage::after, now);
      report.duration_seconds = seconds(now - begin);
      report.keys_moved = status->keys_moved;
      report.hold_ms_max = status->hold_ms_max;
      report.steps = status->steps;
      console_.line("Grown: {} keys moved in {:.1f} s.", grouped(report.keys_moved), report.duration_seconds);
      return {};
    }
    if (status && status->state == "failed") {
      return fail(ErrorKind::internal, fmt::format("the resize failed: {}", status->last_error));
    }
    if (now - begin > kResizeTimeout) {
      return fail(
          ErrorKind::internal,
          fmt::format("the resize did not finish within {} minutes; last state: {}", kResizeTimeout.count(),
                      status ? fmt::format("{} {} {}", status->state, status->phase, status->last_error)
                             : status.error().message));
    }
    if (!status) continue;
    const double whole = static_cast<double>(report.census_before.keys_minimum);
    console_.bar("Growing", std::min(0.999, static_cast<double>(status->keys_moved) / std::max(1.0, whole)),
                 fmt::format("step {} of {}, {} keys moved", status->step, status->steps,
                             grouped(status->keys_moved)));
  }
}

// With the load stopped: everything acknowledged is read back, and the keys are counted where they lie.
Status Playground::conclude(UpReport& report) {
  load_->stop();
  if (Status verified = load_->verify(progress("Reading everything back")); !verified) return verified;
  if (interrupt_.requested()) return interrupted();
  Result<drill::Census> census = drill::take_census(four_, five_, drill::PlacedBy::to);
  if (!census) return std::unexpected(census.error());
  report.census_after = std::move(*census);
  const drill::Recorder& recorder = load_->recorder();
  report.before = recorder.figures(drill::Stage::before);
  report.during = recorder.figures(drill::Stage::during);
  report.after = recorder.figures(drill::Stage::after);
  report.verdicts = load_->verdicts();
  return {};
}

std::string Playground::what_next() const {
  const std::string proxy = deployment_->proxy_addresses().front();
  const std::string port = proxy.substr(proxy.rfind(':') + 1);
  const std::string url = deployment_->registry_url();
  return fmt::format(
      "\nStill serving, with the load running. In another terminal:\n\n"
      "  redis-cli -p {0} set greeting hello\n"
      "  ringshift route greeting --explain --spec {3}/five.yaml\n"
      "  ringshift resize start --spec {3}/four.yaml --registry {1} --cluster {2}     back to four nodes\n"
      "  ringshift resize watch --registry {1} --cluster {2}\n"
      "  ringshift top --registry {1} --cluster {2}\n"
      "  ringshift topology diff {3}/four.yaml {3}/five.yaml\n\n"
      "Ctrl-C ends everything{4}.\n",
      port, url, kCluster, directory_->path(),
      directory_->kept() ? " and keeps the files in " + directory_->path() : " and leaves nothing behind");
}

void Playground::stay_up() {
  load_->start();
  drill::Totals last = load_->recorder().totals();
  // A short resize may come and go between two looks: its id tells, too.
  std::string state, id;
  if (const Result<ResizeStatus> status = deployment_->status()) state = status->state, id = status->id;
  while (!interrupt_.wait(1s)) {
    const drill::Totals now = load_->recorder().totals();
    const std::uint64_t gets = now[drill::Event::get] - last[drill::Event::get];
    const std::uint64_t hits = now[drill::Event::hit] - last[drill::Event::hit];
    const std::uint64_t origin = now[drill::Event::origin_read] - last[drill::Event::origin_read];
    last = now;
    const Result<ResizeStatus> status = deployment_->status();
    if (status && (status->state != state || status->id != id)) {
      state = status->state;
      id = status->id;
      console_.line("Resize {}: {}, {} keys moved{}{}", id, state, grouped(status->keys_moved),
                    status->last_error.empty() ? "" : ": ", status->last_error);
    }
    const double rate = gets == 0 ? 0 : 100.0 * static_cast<double>(hits) / static_cast<double>(gets);
    console_.transient(fmt::format("{} GET/s, hit rate {:.2f} %, {} origin queries/s, resize {}",
                                   grouped(gets), rate, grouped(origin), state));
  }
  load_->stop();
  const drill::Verdicts verdicts = load_->verdicts();
  console_.line("Stopping. Checked {} reads in all: {} acknowledged writes lost, {} stale reads.",
                grouped(verdicts.reads_checked), verdicts.lost_writes, verdicts.stale_reads);
}

}  // namespace ringshift::cli
