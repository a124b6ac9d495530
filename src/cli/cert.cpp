// `ringshift cert`: certificates for people who have no authority of their own. A directory holds the
// authority (ca.pem, ca.key) and what it issued (NAME.pem, NAME.key); keys are for their owner alone.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/private_file.h"
#include "cli/span_of_time.h"
#include "net/certificates.h"

namespace ringshift::cli {
namespace {

using Json = nlohmann::json;

constexpr int kSoonDays = 30;

struct CertFlags {
  std::string directory = "ringshift-ca", name, file, identity;
  std::vector<std::string> names;
  int days = 0;
  bool json = false, force = false;
};

void write_pair(const CertFlags& flags, const std::string& base, const net::PemPair& pair) {
  // The key first: a certificate without its key would look usable. Both are looked at before either is
  // written, so that nothing is replaced by half.
  if (!flags.force) {
    for (const char* kind : {".key", ".pem"}) {
      struct stat about {};
      if (::stat((base + kind).c_str(), &about) == 0) {
        end_command(kFailed,
                    fmt::format("{}{} exists: name another, or say --force to replace it", base, kind));
      }
    }
  }
  for (const Status& done : {write_file(base + ".key", pair.key, 0600, flags.force),
                             write_file(base + ".pem", pair.certificate, 0644, flags.force)}) {
    if (!done) end_command(kFailed, done.error().message);
  }
}

void say(const CertFlags& flags, const std::string& base, const net::PemPair& pair) {
  const net::CertificateFacts facts = or_end(net::read_certificates(pair.certificate)).front();
  if (flags.json) {
    fmt::print("{}\n", Json({{"certificate", base + ".pem"},
                             {"key", base + ".key"},
                             {"names", facts.names},
                             {"ends", facts.ends},
                             {"sha256", facts.sha256}})
                           .dump());
    return;
  }
  fmt::print("{0}.pem, {0}.key (mode 0600): {1}, until {2}\n", base, facts.subject, time_text(facts.ends));
}

void init(const CertFlags& flags) {
  if (::mkdir(flags.directory.c_str(), 0700) != 0 && errno != EEXIST) {
    end_command(kFailed,
                fmt::format("--dir {}: it cannot be made: {}", flags.directory, std::strerror(errno)));
  }
  const std::string base = flags.directory + "/ca";
  const net::PemPair pair = or_end(net::make_authority(flags.name, flags.days));
  write_pair(flags, base, pair);
  say(flags, base, pair);
}

void issue(const CertFlags& flags) {
  if (flags.name == "ca" || flags.name.find('/') != std::string::npos || flags.name.starts_with('.')) {
    end_command(
        kBadUsage,
        fmt::format("the name {} cannot be a file's: write one like registry or controller", flags.name));
  }
  const std::string ca = flags.directory + "/ca";
  const auto read = [&](const std::string& path) {
    Result<std::string> text = read_whole_file(path);
    if (!text) {
      end_command(kFailed, fmt::format("{}; 'ringshift cert init --dir {}' makes an authority",
                                       text.error().message, flags.directory));
    }
    return *std::move(text);
  };
  const net::PemPair authority{read(ca + ".pem"), read(ca + ".key")};
  net::CertificateWish wish{flags.name, flags.names, flags.days};
  if (wish.names.empty()) wish.names = {flags.name};
  if (!flags.identity.empty()) wish.uri = "ringshift:" + flags.identity;
  const net::PemPair pair = or_end(net::issue_certificate(authority, wish));
  write_pair(flags, flags.directory + "/" + flags.name, pair);
  say(flags, flags.directory + "/" + flags.name, pair);
}

void show(const CertFlags& flags) {
  const Result<std::string> pem = read_whole_file(flags.file);
  if (!pem) end_command(kFailed, pem.error().message);
  const auto all = net::read_certificates(*pem);
  if (!all) end_command(kFailed, fmt::format("{}: {}", flags.file, all.error().message));
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  for (const net::CertificateFacts& facts : *all) {
    if (flags.json) {
      fmt::print("{}\n", Json({{"subject", facts.subject},
                               {"issuer", facts.issuer},
                               {"names", facts.names},
                               {"begins", facts.begins},
                               {"ends", facts.ends},
                               {"serial", facts.serial},
                               {"sha256", facts.sha256},
                               {"authority", facts.authority}})
                             .dump());
      continue;
    }
    const std::int64_t days = (facts.ends - now) / 86'400;
    fmt::print(
        "subject   {}{}\nissuer    {}\nnames     {}\nvalid     {} to {}{}\nserial    {}\nsha256    {}\n",
        facts.subject, facts.authority ? " (an authority)" : "", facts.issuer,
        facts.names.empty() ? "-" : fmt::format("{}", fmt::join(facts.names, ", ")), time_text(facts.begins),
        time_text(facts.ends),
        facts.ends <= now  ? " (expired)"
        : days < kSoonDays ? fmt::format(" ({} days left)", days)
                           : "",
        facts.serial, facts.sha256);
  }
}

}  // namespace

void add_cert(CLI::App& app) {
  CLI::App* cert = app.add_subcommand("cert", "Make TLS certificates, with a small authority of one's own");
  cert->require_subcommand(1);
  cert->footer(
      "Keep ca.key off the machines that serve: whoever has it can pretend to be any of them.\n"
      "Examples:\n"
      "  ringshift cert init --dir ca\n"
      "  ringshift cert issue registry --dir ca --names registry.example,10.0.0.5\n"
      "  ringshift cert issue controller --dir ca                            for --registry-cert\n"
      "  ringshift cert issue agent-7 --dir ca --identity agent-7            and it needs no token\n"
      "  ringshift cert show ca/registry.pem");
  const auto verb = [&](const char* name, const char* text, void (*run)(const CertFlags&)) {
    auto flags = std::make_shared<CertFlags>();
    CLI::App* command = cert->add_subcommand(name, text);
    command->add_flag("--json", flags->json, "One JSON object a certificate");
    command->callback([flags, run] { run(*flags); });
    return std::pair{command, flags};
  };
  const auto [of_init, init_flags] = verb("init", "Make an authority: ca.pem and ca.key", init);
  const auto [of_issue, issue_flags] =
      verb("issue", "Make a certificate and its key, signed by the authority", issue);
  const auto [of_show, show_flags] = verb("show", "Show what a file of certificates holds", show);
  for (const auto& [command, flags, days] :
       {std::tuple{of_init, init_flags, 3650}, std::tuple{of_issue, issue_flags, 365}}) {
    flags->days = days;
    command->add_option("--dir", flags->directory, "Where the authority and its certificates are")
        ->capture_default_str();
    command->add_option("--days", flags->days, "How long it is valid")
        ->check(CLI::Range(1, net::kCertificateDaysMax))
        ->capture_default_str();
    command->add_flag("--force", flags->force, "Replace the files that are there");
  }
  init_flags->name = "Ringshift CA";
  of_init->add_option("--name", init_flags->name, "Its name")->capture_default_str();
  of_issue->add_option("name", issue_flags->name, "Its name, and the files' names")->required();
  of_issue
      ->add_option("--names", issue_flags->names,
                   "DNS names and IP addresses that it is valid for [its name]")
      ->delimiter(',');
  of_issue->add_option("--identity", issue_flags->identity,
                       "Who its holder is to the registry: a name of 'ringshift token create --certificate'");
  of_show->add_option("file", show_flags->file, "The file")->required();
}

}  // namespace ringshift::cli
