#include "doctor/looks.h"

#include "backend/sync_client.h"
#include "coord/membership_keys.h"
#include "coord/zookeeper/paths.h"
#include "http/client.h"

namespace ringshift::doctor {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{3000};

double ms_since(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

}  // namespace

RegistryLook look_at_registry(coord::Coordinator& coordinator, const coord::ClusterKeys& keys) {
  RegistryLook look;
  look.routers_prefix = keys.routers();
  const auto start = SteadyClock::now();
  const Result<coord::Range> topology = coordinator.list(keys.topology());
  look.round_trip_ms = ms_since(start);
  if (!topology) {
    look.unreachable = topology.error().message;
    return look;
  }
  look.cluster_id = topology->cluster_id;
  look.revision = topology->revision;
  for (const coord::KeyValue& kv : topology->kvs) {
    if (kv.key == keys.topology()) look.topology = kv;
  }
  const auto read = [&](const std::string& key, std::optional<coord::KeyValue>& into) {
    auto kv = coordinator.get(key);
    if (!kv) {
      look.unreachable = kv.error().message;
    } else {
      into = std::move(*kv);
    }
  };
  read(keys.spec(), look.spec);
  read(keys.controller(), look.controller);
  read(keys.request(), look.request);
  read(keys.status(), look.status);
  read(coord::discovery_key(keys), look.discovery);
  if (look.discovery) read(coord::membership_key(keys), look.membership);
  Result<coord::Range> routers = coordinator.list(keys.routers());
  if (!routers) {
    look.unreachable = routers.error().message;
  } else {
    look.routers = std::move(routers->kvs);
  }
  return look;
}

EndpointFacts look_at_endpoint(const std::string& url, const http::ClientTls& tls) {
  EndpointFacts facts;
  facts.url = url;
  if (url.starts_with(coord::zookeeper::kScheme)) {
    const auto begin = SteadyClock::now();
    const auto server = coord::connect({{url}, kPatience});
    // Any key: it is the answer that counts, also when it is that we may not.
    const auto answer = server ? (*server)->get("/ringshift") : std::unexpected(server.error());
    facts.round_trip_ms = ms_since(begin);
    if (!answer && answer.error().kind != ErrorKind::denied) facts.unreachable = answer.error().message;
    return facts;
  }
  http::Client client;
  http::Call call;
  call.method = "GET";
  call.url = url + "/version";
  call.tls = tls;
  call.timeout = kPatience;
  const auto start = SteadyClock::now();
  const auto answer = client.send(call);
  facts.round_trip_ms = ms_since(start);
  if (!answer) {
    facts.unreachable = answer.error().error.message;
  } else if (answer->status != 200) {
    facts.unreachable = url + " answers with HTTP status " + std::to_string(answer->status);
  } else if (answer->date != 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    facts.clock_ahead_s = answer->date - std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  return facts;
}

ProxyFacts look_at_proxy(const std::string& address, std::shared_ptr<const backend::MemberAccess> access) {
  ProxyFacts facts;
  facts.address = address;
  backend::SyncOptions options;
  options.request_timeout = kPatience;
  options.access = std::move(access);
  const auto client = backend::SyncClient::connect(address, options);
  if (!client) {
    facts.unreachable = client.error().message;
    return facts;
  }
  const auto reply = (*client)->call({"INFO", "server", "clients", "topology", "members"});
  if (!reply) {
    facts.unreachable = reply.error().message;
  } else if (reply->is_error()) {
    facts.unreachable = reply->text;
  } else {
    facts.info = reply->text;
  }
  return facts;
}

}  // namespace ringshift::doctor
