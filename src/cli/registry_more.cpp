#include "cli/registry_more.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/access_client.h"
#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/registry_flags.h"
#include "cli/span_of_time.h"
#include "store/backup.h"

namespace ringshift::cli {
namespace {

using Json = nlohmann::json;

struct AuditFlags {
  RegistryFlags registry;
  std::string since;
  bool json = false;
};

void audit(const AuditFlags& flags) {
  std::int64_t since = 0;
  if (!flags.since.empty()) {
    const std::int64_t span = or_end(parse_span(flags.since, "--since"), kBadUsage);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    since = std::chrono::duration_cast<std::chrono::seconds>(now).count() - span;
  }
  std::int64_t after = 0;
  for (bool more = true; more;) {
    const Json request = {{"since", since}, {"after", after}};
    const Json answer = Json::parse(
        or_end(ask_registry(flags.registry, "/ringshift/v1/audit", request.dump())), nullptr, false);
    if (!answer.is_object()) end_command(kFailed, "the registry's answer is not JSON");
    const Json rows = answer.value("rows", Json::array());
    for (const Json& row : rows) {
      const auto id = row.value("id", after);
      if (id <= after) end_command(kFailed, "the registry's answer has no order: it would never end");
      after = id;
      if (flags.json) {
        fmt::print("{}\n", row.dump());
        continue;
      }
      const std::string before = row.value("before", "-"), now = row.value("after", "-");
      fmt::print("{}  {:<16} {:<16} {:<14} {}  {} -> {}  revision {}  {}\n",
                 time_text(row.value("at", std::int64_t{0})),
                 row.value("who", "") == "" ? "(nobody)" : row.value("who", ""), row.value("peer", ""),
                 row.value("verb", ""), row.value("key", ""), before, now,
                 row.value("revision", std::int64_t{0}), row.value("outcome", ""));
    }
    more = answer.value("more", false) && !rows.empty();
  }
}

struct BackupFlags {
  RegistryFlags registry;
  std::string to, patience = "10m";
  bool json = false;
};

// A file that is gone unless it was kept.
struct Temporary {
  std::string path;
  int fd = -1;
  bool kept = false;
  ~Temporary() {
    if (fd >= 0) ::close(fd);
    if (kept) return;
    for (const char* suffix : {"", "-wal", "-shm"}) ::unlink((path + suffix).c_str());
  }
};

void backup(const BackupFlags& flags) {
  if (const Status place = store::check_place(flags.to); !place) {
    end_command(kFailed, "--to " + place.error().message);
  }
  const std::int64_t patience = or_end(parse_span(flags.patience, "--patience"), kBadUsage);
  if (patience < 1) end_command(kBadUsage, "--patience: wait for a second at least");
  Temporary file{flags.to + ".part"};
  ::unlink(file.path.c_str());
  file.fd = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file.fd < 0) end_command(kFailed, fmt::format("--to {}: {}", file.path, std::strerror(errno)));
  std::size_t bytes = 0;
  int error = 0;
  const auto keep = [&](std::string_view piece) {
    while (!piece.empty()) {
      const ssize_t wrote = ::write(file.fd, piece.data(), piece.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        error = errno;
        return false;
      }
      piece.remove_prefix(static_cast<std::size_t>(wrote));
      bytes += static_cast<std::size_t>(wrote);
    }
    return true;
  };
  const Status done = stream_from_registry(flags.registry, "/ringshift/v1/backup", "{}",
                                           std::chrono::seconds(patience), keep);
  if (error != 0) end_command(kFailed, fmt::format("--to {}: {}", file.path, std::strerror(error)));
  if (!done) end_command(kFailed, done.error().message);
  if (::fsync(file.fd) != 0)
    end_command(kFailed, fmt::format("--to {}: {}", file.path, std::strerror(errno)));
  // What came is whole when it is a database from end to end.
  if (const Status whole = store::check_file(file.path); !whole) {
    end_command(kFailed,
                fmt::format("what came is no whole backup, and is not kept: {}", whole.error().message));
  }
  if (::rename(file.path.c_str(), flags.to.c_str()) != 0) {
    end_command(kFailed, fmt::format("--to {}: {}", flags.to, std::strerror(errno)));
  }
  file.kept = true;
  if (const Status synced = store::sync_name(flags.to); !synced) end_command(kFailed, synced.error().message);
  if (flags.json) {
    fmt::print("{}\n", Json({{"file", flags.to}, {"bytes", bytes}}).dump());
  } else {
    fmt::print("{}: {} bytes, checked. It holds all keys, and the tokens' digests: mode 0600\n", flags.to,
               bytes);
  }
}

struct RestoreFlags {
  std::string from, data;
  bool force = false, json = false;
};

void restore(const RestoreFlags& flags) {
  const store::Restored done = or_end(store::restore(flags.from, flags.data, flags.force));
  if (flags.json) {
    fmt::print("{}\n", Json({{"file", flags.data},
                             {"cluster_id", fmt::format("{:x}", done.cluster_id)},
                             {"revision", done.revision},
                             {"moved_aside", done.moved_aside}})
                           .dump());
    return;
  }
  fmt::print("{}: revision {}, with a new cluster id, {:x}\n", flags.data, done.revision, done.cluster_id);
  if (!done.moved_aside.empty()) fmt::print("what was there is now {}\n", done.moved_aside);
  fmt::print(
      "Routers that followed the old one keep their topology, and say so, until each is restarted: look "
      "first at\n"
      "'ringshift topology get' and 'ringshift resize status'. Tokens are those of the backup, revoked ones "
      "too:\n"
      "look at 'ringshift token list'.\n");
}

}  // namespace

void add_registry_more(CLI::App& registry) {
  auto of_audit = std::make_shared<AuditFlags>();
  CLI::App* command = registry.add_subcommand("audit", "Show who changed what in the embedded registry");
  of_audit->registry.add_connection_to(*command);
  command->add_option("--since", of_audit->since, "Only the last of it: 10m, 24h, 30d");
  command->add_flag("--json", of_audit->json, "A JSON object a line");
  command->footer(
      "Needs an admin's token. Values are shown as SIZE:DIGEST, before -> after.\n"
      "Examples:\n"
      "  ringshift registry audit --since 24h\n"
      "  ringshift registry audit --json | jq 'select(.outcome != \"ok\")'");
  command->callback([of_audit] { audit(*of_audit); });

  auto of_backup = std::make_shared<BackupFlags>();
  command = registry.add_subcommand("backup", "Copy the embedded registry's database while it runs");
  of_backup->registry.add_connection_to(*command);
  command
      ->add_option("--to", of_backup->to,
                   "Where to; an earlier backup there is replaced by a whole one. Mode 0600")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--patience", of_backup->patience,
                   "Give up when nothing has come for so long: it is copied before the first byte comes")
      ->capture_default_str();
  command->add_flag("--json", of_backup->json, "One JSON object: file, bytes");
  command->footer(
      "With --auth it needs an admin's token. The registry answers nobody while it copies.\n"
      "Example:\n"
      "  ringshift registry backup --to /backup/registry-$(date +%F).db");
  command->callback([of_backup] { backup(*of_backup); });

  auto of_restore = std::make_shared<RestoreFlags>();
  command = registry.add_subcommand("restore", "Put a backup in place, while no registry runs there");
  command->add_option("file", of_restore->from, "The backup")->required()->type_name("FILE");
  command->add_option("--data", of_restore->data, "The registry's file")
      ->required()
      ->type_name("FILE")
      ->envname("RINGSHIFT_REGISTRY_DATA");
  command->add_flag("--force", of_restore->force, "Although there is one: it is moved aside");
  command->add_flag("--json", of_restore->json, "One JSON object: file, cluster_id, revision, moved_aside");
  command->footer(
      "The restored registry has a new cluster id and no leases: routers of the old one do not obey it "
      "until\n"
      "they are restarted.\n"
      "Example:\n"
      "  ringshift registry restore /backup/registry-2026-11-30.db --data /var/lib/ringshift/registry.db "
      "--force");
  command->callback([of_restore] { restore(*of_restore); });
}

}  // namespace ringshift::cli
