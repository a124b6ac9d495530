// ringshift check: real clients through several proxies, and whether what they saw is linearizable.
#include "cli/check.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "check/history_file.h"
#include "check/key_remover.h"
#include "check/live_judge.h"
#include "check/report.h"
#include "check/workload.h"
#include "cli/cli.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "net/address.h"

namespace ringshift::cli {
namespace {

constexpr const char* kPasswordVariable = "RINGSHIFT_PASSWORD";
constexpr std::chrono::seconds kRemoveAtMost{20};
constexpr const char* kHowToGetIn = "Getting in";

struct CheckFlags {
  check::WorkloadOptions load;
  check::CheckOptions rules;
  std::string read, history, kinds, prefix;
  double seconds = 10, every = 0;
  std::uint64_t seed = 0;  // 0: random.
  std::int64_t timeout_ms = 15000, ttl_slack_ms = -1;
  bool json = false, keep = false;
  bool tls = false, insecure = false;
  std::string ca, certificate, key, name, user, password_file;
};

[[noreturn]] void end_check(int status, std::string_view message) {
  report(message);
  throw CLI::RuntimeError(status);
}

std::shared_ptr<const backend::MemberAccess> access_of(const CheckFlags& flags) {
  backend::MemberAccess::Options options;
  if (flags.tls) {
    options.tls = net::TlsContext::Client{flags.ca, flags.certificate, flags.key, flags.name, flags.insecure};
  }
  options.user = flags.user;
  options.password_file = flags.password_file;
  const char* password = std::getenv(kPasswordVariable);
  if (password != nullptr && flags.password_file.empty()) options.password = password;
  if (!options.tls && options.user.empty() && options.password.empty() && options.password_file.empty()) {
    return nullptr;
  }
  auto access = backend::MemberAccess::open(std::move(options));
  if (!access) end_check(kBadUsage, access.error().message);
  return *access;
}

// "register,hash" or "" for all.
std::vector<check::Kind> kinds_of(const std::string& list) {
  std::vector<check::Kind> kinds;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string word = list.substr(at, end - at);
    const auto kind = check::parse_kind(word);
    if (!kind) {
      end_check(kBadUsage,
                fmt::format("--types: '{}' is none of register, counter, hash, expiry, list, set, zset, "
                            "stream",
                            word));
    }
    kinds.push_back(*kind);
    at = end + 1;
  }
  return kinds;
}

// 0 clean, 1 anything else.
int tell(const check::Judgement& result, const check::RunInfo& run, bool json) {
  const std::string text = json ? check::to_json(result, run) + "\n" : check::to_text(result, run);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return result.clean() ? kDone : kFailed;
}

int judge_file(const CheckFlags& flags) {
  check::Judgement result;
  check::CheckOptions rules = flags.rules;
  const auto header = check::read_history(
      flags.read,
      [&](const check::HistoryHeader& begin) {
        rules.ttl_slack =
            flags.ttl_slack_ms >= 0 ? std::chrono::milliseconds(flags.ttl_slack_ms) : begin.ttl_slack;
      },
      [&](const std::vector<check::Operation>& operations) {
        std::vector<const check::Operation*> pointers;
        for (const check::Operation& op : operations) pointers.push_back(&op);
        check::judge_key(std::move(pointers), rules, result);
      });
  if (!header) end_check(kBadUsage, header.error().message);
  check::RunInfo run;
  run.seed = header->seed;
  run.proxies = header->proxies;
  if (result.operations == 0) end_check(kFailed, fmt::format("{}: no operation is in it", flags.read));
  return tell(result, run, flags.json);
}

void finish_flags(CheckFlags& flags) {
  for (const std::string& proxy : flags.load.proxies) {
    if (const auto endpoint = net::parse_endpoint(proxy); !endpoint) {
      end_check(kBadUsage, fmt::format("--proxy: {}", endpoint.error().message));
    }
  }
  check::WorkloadOptions& load = flags.load;
  load.access = access_of(flags);
  load.kinds = kinds_of(flags.kinds);
  load.seed = flags.seed != 0 ? flags.seed : std::random_device{}();
  // Of this run alone, so that two runs, and what a run that was killed left, never meet.
  load.prefix = fmt::format("{}{}:", flags.prefix, load.seed);
  load.duration = std::chrono::milliseconds(static_cast<std::int64_t>(flags.seconds * 1000));
  load.timeout = std::chrono::milliseconds(flags.timeout_ms);
  if (flags.ttl_slack_ms >= 0) flags.rules.ttl_slack = std::chrono::milliseconds(flags.ttl_slack_ms);
}

std::unique_ptr<check::HistoryWriter> open_history(const CheckFlags& flags) {
  if (flags.history.empty()) return nullptr;
  auto writer = check::HistoryWriter::create(flags.history,
                                             {flags.load.seed, flags.load.proxies, flags.rules.ttl_slack});
  if (!writer) end_check(kBadUsage, fmt::format("--history: {}", writer.error().message));
  return std::move(*writer);
}

bool has_unknown_write(const std::vector<check::Operation>& operations) {
  for (const check::Operation& op : operations) {
    if (op.outcome == check::Outcome::unknown && check::is_write(op.verb)) return true;
  }
  return false;
}

// What the run says while it goes on: a bar, or a line now and then.
class Progress {
 public:
  Progress(Console& console, const CheckFlags& flags) : console_(console), flags_(flags) {}

  void show(std::uint64_t operations, std::uint64_t faults, double seconds) {
    const std::string figures = fmt::format("{} operations, {} keys at fault", grouped(operations), faults);
    if (flags_.every == 0) return console_.bar("checking", std::min(seconds / flags_.seconds, 1.0), figures);
    if (seconds < next_) return;
    next_ += flags_.every;
    console_.line("{:.0f} s: {}", seconds, figures);
  }

 private:
  Console& console_;
  const CheckFlags& flags_;
  double next_ = 0;
};

int run_check(CheckFlags& flags) {
  finish_flags(flags);
  const auto writer = open_history(flags);
  Interrupt interrupt;  // Before any thread: Ctrl-C ends the run, and the keys are removed.
  Console console(stderr);
  console.line("ringshift check: seed {}, keys {}*", flags.load.seed, flags.load.prefix);
  check::KeyRemover remover(flags.load.proxies, flags.load.access);
  check::LiveJudge judge(flags.rules, [&](const std::vector<check::Operation>& operations) {
    if (writer) writer->write(operations);
    if (!flags.keep) remover.add(operations.front().key, has_unknown_write(operations));
  });
  Progress progress(console, flags);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  flags.load.done = [&](std::vector<check::Operation> operations) { judge.take(std::move(operations)); };
  flags.load.tick = [&](std::uint64_t operations) {
    progress.show(operations, judge.faults(), elapsed());
    return interrupt.requested();
  };
  const check::History history = check::run_workload(flags.load);
  check::RunInfo run = check::info_of(history, flags.load.seed);
  run.seconds = elapsed();
  run.proxies = flags.load.proxies;
  run.key_prefix = flags.load.prefix;
  const check::Judgement result = judge.finish();
  run.keys_left = remover.finish(kRemoveAtMost);
  const int status = tell(result, run, flags.json);
  if (writer) {
    if (const Status closed = writer->close(); !closed) end_check(kFailed, closed.error().message);
  }
  if (result.operations == 0) {
    end_check(kFailed,
              fmt::format("no proxy of {} could be used: {}", fmt::join(flags.load.proxies, ", "),
                          run.error_examples.empty() ? "no connection" : run.error_examples.front()));
  }
  if (result.operations == result.not_executed + result.unknown) {
    end_check(kFailed, "not one operation was executed: this shows nothing");
  }
  if (run.keys_left > 0) {
    report(fmt::format("{} keys are left; they begin with {}", run.keys_left, run.key_prefix));
    return kFailed;
  }
  return status;
}

void add_load_flags(CLI::App& command, CheckFlags& flags) {
  command.add_option("--proxy", flags.load.proxies, "Where clients connect; may be repeated, and should be")
      ->type_name("HOST:PORT|unix:PATH")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--seconds", flags.seconds, "How long; Ctrl-C ends it earlier, in order")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command.add_option("--clients", flags.load.clients, "Connections at a time")
      ->check(CLI::Range(1U, check::kMaxClients))
      ->capture_default_str();
  command.add_option("--keys", flags.load.keys, "Keys of each type at a time; few, so that clients meet")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command.add_option("--rate", flags.load.rate, "Operations a second in all; 0: as many as possible")
      ->check(CLI::Range(0, 10000000))
      ->capture_default_str();
  command
      .add_option("--types", flags.kinds,
                  "Only these, of register, counter, hash, expiry, list, set, zset, stream")
      ->type_name("A,B,...");
  command.add_option("--pipeline", flags.load.max_pipeline, "Longest pipeline")
      ->check(CLI::Range(1U, check::kMaxPipeline))
      ->capture_default_str();
  command
      .add_option("--max-value", flags.load.max_value, "Longest value; few are long (default: a few bytes)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::size_t{0}, check::kMaxValueBytes));
  command.add_option("--prefix", flags.prefix, "Of its keys; the seed is added to it")->capture_default_str();
  command.add_option("--seed", flags.seed, "Of keys and choices [random, printed]");
  command.add_option("--timeout-ms", flags.timeout_ms, "A client gives up an answer after so long")
      ->check(CLI::Range(10, 600000))
      ->capture_default_str();
  command.add_option("--every", flags.every, "Say every so many seconds how it goes, instead of a bar")
      ->check(CLI::Range(0.1, 1e6));
  command.add_flag("--keep-keys", flags.keep, "Leave its keys where they are");
}

void add_way_in(CLI::App& command, CheckFlags& flags) {
  command.add_option("--user", flags.user, "ACL user [the default user]")->group(kHowToGetIn);
  command
      .add_option("--password-file", flags.password_file,
                  fmt::format("Its password, the file's first line [the variable {}]", kPasswordVariable))
      ->type_name("FILE")
      ->group(kHowToGetIn);
  auto* tls = command.add_flag("--tls", flags.tls, "Connect with TLS")->group(kHowToGetIn);
  const auto of_tls = [&](const char* flag, std::string& value, const char* text) {
    return command.add_option(flag, value, text)->group(kHowToGetIn)->needs(tls);
  };
  of_tls("--tls-ca", flags.ca, "Who signs the certificates [the system's CAs]")->type_name("FILE");
  of_tls("--tls-cert", flags.certificate, "Our own certificate, when they ask for one")->type_name("FILE");
  of_tls("--tls-key", flags.key, "The key of that certificate")->type_name("FILE");
  of_tls("--tls-name", flags.name, "What the certificates must name [the host of each address]");
  command.add_flag("--tls-insecure", flags.insecure, "Accept any certificate")
      ->group(kHowToGetIn)
      ->needs(tls);
}

}  // namespace

void add_check(CLI::App& app) {
  const auto flags = std::make_shared<CheckFlags>();
  flags->prefix = "ringshift-check:";
  CLI::App* command = app.add_subcommand(
      "check", "Whether what real clients see through several proxies is linearizable, key by key");
  add_load_flags(*command, *flags);
  command
      ->add_option("--ttl-slack-ms", flags->ttl_slack_ms,
                   "How much longer than its deadline a value may live, for the time of its move [250]")
      ->check(CLI::Range(0, 600000));
  command
      ->add_option("--max-states", flags->rules.limits.max_work,
                   "States that are looked at for one key; beyond them it is inconclusive")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  auto* history = command->add_option("--history", flags->history, "Write what was seen to FILE (JSON lines)")
                      ->type_name("FILE");
  auto* read =
      command->add_option("--read", flags->read, "Judge a history that --history wrote; nothing is run")
          ->type_name("FILE");
  read->excludes(history);
  read->excludes("--proxy");
  command->add_option("--stop-file", flags->load.stop_file, "End the run when this file exists")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "Print one JSON object");
  add_way_in(*command, *flags);
  command->footer(
      "It writes and reads keys of its own and removes them at the end; nothing else is touched. Works on a "
      "cluster\n"
      "behind proxies, and on a plain Redis. Exit status: 0 clean, 1 violated or inconclusive, 2 bad usage.\n"
      "Examples:\n"
      "  ringshift check --proxy 127.0.0.1:6380 --proxy 127.0.0.1:6381 --seconds 30\n"
      "  ringshift check --proxy 127.0.0.1:6380 --types hash,expiry --clients 40 --history seen.jsonl\n"
      "  ringshift check --read seen.jsonl --json");
  command->callback([flags] {
    if (flags->read.empty() && flags->load.proxies.empty()) {
      end_check(kBadUsage, "say --proxy HOST:PORT (several times for several), or --read FILE");
    }
    const int status = flags->read.empty() ? run_check(*flags) : judge_file(*flags);
    if (status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
