#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/probe.h"
#include "backend/sync_client.h"
#include "base/encoding.h"

namespace ringshift::agent {
namespace {

using backend::SyncClient;

// As resize/observer.h has it; that folder is above us.
constexpr std::string_view kProbeName = "rs:observer";

std::string info_text(std::string_view info, std::string_view field) {
  for (std::size_t begin = 0; begin < info.size();) {
    const std::size_t end = std::min(info.find('\n', begin), info.size());
    std::string_view line = info.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(field) && line.substr(field.size()).starts_with(':')) {
      return std::string(line.substr(field.size() + 1));
    }
    begin = end + 1;
  }
  return "";
}

std::uint64_t info_number(std::string_view info, std::string_view field) {
  return base::parse_u64(info_text(info, field)).value_or(0);
}

// Connections of routers, which are named rs:<their id>.
std::uint64_t count_routers(std::string_view client_list) {
  std::uint64_t count = 0;
  for (std::size_t at = client_list.find(" name=rs:"); at != std::string_view::npos;
       at = client_list.find(" name=rs:", at + 1)) {
    const std::string_view name = client_list.substr(at + 6);
    if (name.substr(0, name.find(' ')) != kProbeName) ++count;
  }
  return count;
}

class RedisProbe final : public Probe {
 public:
  explicit RedisProbe(ProbeOptions options) : options_(std::move(options)) {}

  Health look(bool with_clients) override {
    Health health = look_once(with_clients);
    // A server that closes idle connections, or was restarted, is well: the second one is new.
    if (!health.good && client_was_old_ && client_ == nullptr) health = look_once(with_clients);
    return health;
  }

 private:
  Health look_once(bool with_clients) {
    Health health;
    client_was_old_ = client_ != nullptr;
    if (client_ == nullptr) {
      backend::SyncOptions options;
      options.connect_timeout = options.request_timeout = options_.timeout;
      options.name = kProbeName;
      options.access = options_.access;
      auto connected = SyncClient::connect(options_.address, options);
      if (!connected) {
        health.absent = with_clients && nothing_listens(options_.address);
        return refuse(health, connected.error().message);
      }
      client_ = std::move(*connected);
      own_ += 3;  // What the connection says first; counted generously, see `commands`.
    }
    std::string commands;
    protocol::resp::append_command(commands, {"PING"});
    protocol::resp::append_command(commands, {"INFO"});
    if (with_clients) protocol::resp::append_command(commands, {"CLIENT", "LIST"});
    const std::size_t count = with_clients ? 3 : 2;
    auto replies = client_->pipeline(commands, count);
    if (!replies) {
      client_.reset();
      return refuse(health, replies.error().message);
    }
    // One that the server refuses to run is none to its counter.
    own_ += static_cast<std::uint64_t>(
        std::ranges::count_if(*replies, [](const auto& reply) { return !reply.is_error(); }));
    for (const auto& reply : {(*replies)[0], (*replies)[1]}) {
      if (!reply.is_error()) continue;
      health.loading = reply.text.starts_with("LOADING");
      return refuse(health, reply.text);
    }
    read_info((*replies)[1].text, health);
    if (with_clients && !(*replies)[2].is_error())
      health.router_connections = count_routers((*replies)[2].text);
    if (with_clients && (*replies)[2].is_error()) health.router_connections = 1;  // Not to be known.
    return health;
  }

  static Health refuse(Health& health, std::string why) {
    health.good = false;
    health.reason = std::move(why);
    return health;
  }

  void read_info(std::string_view info, Health& health) {
    health.version = info_text(info, "redis_version");
    health.role = info_text(info, "role");
    health.loading = info_text(info, "loading") == "1";
    health.used_memory = info_number(info, "used_memory");
    health.max_memory = info_number(info, "maxmemory");
    health.clients = info_number(info, "connected_clients");
    health.ops_per_second = info_number(info, "instantaneous_ops_per_sec");
    health.counted = true;
    const std::uint64_t all = info_number(info, "total_commands_processed");
    // Our own grow by a fixed number a look, of which this INFO counts some only afterwards: what is left,
    // give or take a constant, stands still when nobody else asks. It may wrap around: it is only compared.
    health.commands = all - own_;
    if (health.version.empty()) {
      health.reason = "INFO names no redis_version: is this a Redis?";
    } else if (health.loading) {
      health.reason = "it loads its data";
    } else if (health.role != "master") {
      health.reason = fmt::format("it is a {}: members are masters", health.role);
    }
    health.good = health.reason.empty();
  }

  const ProbeOptions options_;
  std::unique_ptr<SyncClient> client_;
  bool client_was_old_ = false;
  std::uint64_t own_ = 0;
};

}  // namespace

std::unique_ptr<Probe> make_redis_probe(ProbeOptions options) {
  return std::make_unique<RedisProbe>(std::move(options));
}

}  // namespace ringshift::agent
