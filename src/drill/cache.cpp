#include "drill/cache.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "drill/client.h"

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using Answer = CacheClient::Answer;
using Outcome = CacheClient::Outcome;

constexpr milliseconds kProxyTimeout{5000};   // Above any request timeout of a proxy.
constexpr milliseconds kMemberTimeout{1000};  // What applications usually give a cache, or more.

// One connection, made when needed, and again after it broke.
class Wire {
 public:
  Wire(std::string address, milliseconds timeout) : address_(std::move(address)), timeout_(timeout) {}

  Answer call(std::initializer_list<std::string_view> command) {
    if (!client_) {
      Result<Client> client = Client::connect(address_, timeout_);
      if (!client) return {Outcome::failed, client.error().message, 0};
      client_.emplace(std::move(*client));
    }
    Result<Client::Value> value = client_->call(command);
    if (!value) {
      client_.reset();
      return {Outcome::unknown, value.error().message, 0};
    }
    if (value->is_error()) {
      // A proxy's TIMEOUT alone leaves open whether the command was executed; every other refusal says no.
      const bool open = value->text.starts_with("TIMEOUT");
      return {open ? Outcome::unknown : Outcome::failed, std::move(value->text), 0};
    }
    return {value->is_null() ? Outcome::absent : Outcome::done, std::move(value->text), value->integer};
  }

 private:
  const std::string address_;
  const milliseconds timeout_;
  std::optional<Client> client_;
};

Answer set_on(Wire& wire, std::string_view key, std::string_view value, Ttl ttl) {
  if (ttl == kForEver) return wire.call({"SET", key, value});
  return wire.call({"SET", key, value, "PX", std::to_string(ttl.count())});
}

class ProxyClient final : public CacheClient {
 public:
  explicit ProxyClient(std::string address) : wire_(std::move(address), kProxyTimeout) {}
  Answer get(std::string_view key, Ttl) override { return wire_.call({"GET", key}); }
  Answer set(std::string_view key, std::string_view value, Ttl ttl) override {
    return set_on(wire_, key, value, ttl);
  }
  Answer del(std::string_view key) override { return wire_.call({"DEL", key}); }
  Answer increment(std::string_view key) override { return wire_.call({"INCR", key}); }

 private:
  Wire wire_;
};

const std::string& owner_in(const topology::Snapshot& snapshot, std::string_view key) {
  return snapshot.members()[snapshot.owner_before(key)].address;
}

Result<std::shared_ptr<const topology::Snapshot>> compiled(const topology::Spec& spec) {
  return topology::Snapshot::compile({.spec = spec, .factors = {}, .fence = {}, .resize = {}}, {});
}

}  // namespace

class ShardedClient final : public CacheClient {
 public:
  explicit ShardedClient(ShardedCache& cache) : cache_(cache) {}

  Answer get(std::string_view key, Ttl ttl) override {
    const ShardedCache::View& view = cache_.view();
    const std::string& owner = owner_in(*view.now, key);
    Answer answer = wire(owner).call({"GET", key});
    if (view.dual == ShardedCache::DualRead::off || answer.outcome == Outcome::done) return answer;
    const std::string& old_owner = owner_in(*view.before, key);
    if (old_owner == owner) return answer;
    Answer old = wire(old_owner).call({"GET", key});
    if (old.outcome != Outcome::done) return answer;
    if (set_on(wire(owner), key, old.text, ttl).outcome == Outcome::done) ++cache_.copies_;
    return old;
  }

  Answer set(std::string_view key, std::string_view value, Ttl ttl) override {
    return set_on(wire(owner_in(*cache_.view().now, key)), key, value, ttl);
  }

  Answer del(std::string_view key) override {
    const ShardedCache::View& view = cache_.view();
    const std::string& owner = owner_in(*view.now, key);
    if (view.dual == ShardedCache::DualRead::reads_and_deletes) {
      // The old copy first: a read between the two then copies nothing.
      const std::string& old_owner = owner_in(*view.before, key);
      if (old_owner != owner) {
        Answer old = wire(old_owner).call({"DEL", key});
        if (old.outcome != Outcome::done) return old;
      }
    }
    return wire(owner).call({"DEL", key});
  }

  Answer increment(std::string_view key) override {
    return wire(owner_in(*cache_.view().now, key)).call({"INCR", key});
  }

 private:
  Wire& wire(const std::string& address) {
    return wires_.try_emplace(address, address, kMemberTimeout).first->second;
  }

  ShardedCache& cache_;
  std::map<std::string, Wire> wires_;
};

std::unique_ptr<CacheClient> ProxyCache::client() { return std::make_unique<ProxyClient>(address_); }

Result<std::unique_ptr<ShardedCache>> ShardedCache::create(const topology::Spec& spec) {
  auto snapshot = compiled(spec);
  if (!snapshot) return std::unexpected(snapshot.error());
  auto cache = std::make_unique<ShardedCache>();
  cache->show({.now = std::move(*snapshot), .before = {}, .dual = DualRead::off});
  return cache;
}

Status ShardedCache::switch_to(const topology::Spec& spec, DualRead dual) {
  auto snapshot = compiled(spec);
  if (!snapshot) return std::unexpected(snapshot.error());
  show({.now = std::move(*snapshot), .before = view().now, .dual = dual});
  return {};
}

void ShardedCache::end_dual_read() { show({.now = view().now, .before = {}, .dual = DualRead::off}); }

void ShardedCache::show(View view) {
  const std::lock_guard lock(mutex_);
  views_.push_back(std::make_unique<const View>(std::move(view)));
  view_.store(views_.back().get());
}

std::unique_ptr<CacheClient> ShardedCache::client() { return std::make_unique<ShardedClient>(*this); }

std::string ShardedCache::address_of(std::string_view key) const { return owner_in(*view().now, key); }

}  // namespace ringshift::drill
