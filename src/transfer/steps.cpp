#include "transfer/steps.h"

#include <fmt/format.h>

#include <random>

#include "base/encoding.h"
#include "transfer/faults.h"

namespace ringshift::transfer {
namespace {

using protocol::resp::append_command;
using protocol::resp::Value;

// KEYS: k, its claim, the stamp. ARGV: the stamp that must stand there, the token, ...
// A claim of the same TokenSource is one that its owner gave up (a step ended, a member refused or broke): it
// is replaced, since waiting for its end would outlast the command. That is no more than a claim that is lost
// and then set, which may happen at any moment anyway.
constexpr std::string_view kClaimScript =
    "if redis.call('GET',KEYS[3])~=ARGV[1] then return 'GATE' end "
    "if redis.call('EXISTS',KEYS[1])==1 then return 'BUSY' end "
    "local t=redis.call('GET',KEYS[2]) local o=string.match(ARGV[2],'^(.+%-)%d+$') "
    "if t and (not o or string.sub(t,1,#o)~=o) then return 'WAIT' end "
    "redis.call('SET',KEYS[2],ARGV[2],'PX',ARGV[3]) return 'CLAIMED'";
constexpr std::string_view kRestoreScript =
    "if redis.call('GET',KEYS[3])~=ARGV[1] then return 'GATE' end "
    "if redis.call('GET',KEYS[2])~=ARGV[2] then return 'STALE' end "
    "if redis.call('EXISTS',KEYS[1])==1 then return 'BUSY' end "
    "redis.call('RESTORE',KEYS[1],ARGV[3],ARGV[4]) return 'OK'";
constexpr std::string_view kRestoreScriptWithoutToken =
    "if redis.call('GET',KEYS[3])~=ARGV[1] then return 'GATE' end "
    "if redis.call('EXISTS',KEYS[1])==1 then return 'BUSY' end "
    "redis.call('RESTORE',KEYS[1],ARGV[3],ARGV[4]) return 'OK'";
constexpr std::string_view kDumpScript =
    "local p=redis.call('DUMP',KEYS[1]) if not p then return false end "
    "return {p,redis.call('PTTL',KEYS[1])}";
constexpr std::string_view kSealOwnScript =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";
// A controller that lost its lock while it slept must not put an older stamp over a newer one; nor may a late
// "open" of the same step open a gate again that was closed for good (I10). So "open" needs this step's stamp
// before it: where the stamp was evicted, the "done" that stood there is not known. DEL comes before SET
// since a script that has written may go on: so a member at its maxmemory takes the stamp, and a resize away
// from it, or a rollback, can begin.
constexpr std::string_view kStampScript =
    "local s,opens,ours=redis.call('GET',KEYS[1]),string.find(ARGV[3],'.open.',1,true),false "
    "if s then local e,n,g=string.match(s,'^(%d+)%.(%d+)%.(%a+)%.') "
    "if e then local de,dn=tonumber(e)-tonumber(ARGV[1]),tonumber(n)-tonumber(ARGV[2]) "
    "if de>0 or (de==0 and dn>0) then return 'STALE' end "
    "if de==0 and dn==0 and g=='done' and not string.find(ARGV[3],'.done.',1,true) then return 'STALE' end "
    "ours=de==0 and dn==0 end end "
    "if opens and not ours then return 'STALE' end "
    "redis.call('DEL',KEYS[1]) redis.call('SET',KEYS[1],ARGV[3]) return 'OK'";

std::string stamp(const topology::Fence& fence, const std::string& member, std::string_view state) {
  const auto run_id = fence.run_ids.find(member);
  return fmt::format("{}.{}.{}.{}", fence.epoch, fence.step, state,
                     run_id == fence.run_ids.end() ? "" : run_id->second);
}

bool says(const Value& reply, std::string_view text) noexcept {
  return (reply.type == Value::Type::bulk || reply.type == Value::Type::simple) && reply.text == text;
}

}  // namespace

std::string claim_key(std::string_view key) { return fmt::format("rs:claim:{{{}}}", key); }

std::string open_stamp(const topology::Fence& fence, const std::string& member) {
  return stamp(fence, member, "open");
}
std::string closed_stamp(const topology::Fence& fence, const std::string& member) {
  return stamp(fence, member, "closed");
}
std::string done_stamp(const topology::Fence& fence, const std::string& member) {
  return stamp(fence, member, "done");
}

std::optional<StampStep> step_of_stamp(std::string_view stamp) noexcept {
  const std::size_t first = stamp.find('.');
  const std::size_t second = first == std::string_view::npos ? first : stamp.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto epoch = base::parse_u64(stamp.substr(0, first));
  const auto step = base::parse_u64(stamp.substr(first + 1, second - first - 1));
  if (!epoch || !step) return std::nullopt;
  return StampStep{*epoch, *step};
}

TokenSource::TokenSource() {
  std::random_device entropy;
  owner_ = fmt::format("{:08x}{:08x}", entropy(), entropy());
}
std::string TokenSource::next() { return fmt::format("{}-{}", owner_, ++count_); }

void append_claim(std::string& out, std::string_view key, std::string_view stamp, std::string_view token) {
  append_command(out, {"EVAL", kClaimScript, "3", key, claim_key(key), kStampKey, stamp, token, kClaimTtlMs});
}

void append_exists(std::string& out, std::string_view key) { append_command(out, {"EXISTS", key}); }

void append_dump(std::string& out, std::string_view key) {
  append_command(out, {"EVAL", kDumpScript, "1", key});
}

void append_restore(std::string& out, std::string_view key, std::string_view stamp, std::string_view token,
                    std::int64_t ttl_ms, std::string_view payload) {
  const std::string_view script =
      broken(Fault::restore_without_token) ? kRestoreScriptWithoutToken : kRestoreScript;
  append_command(out, {"EVAL", script, "3", key, claim_key(key), kStampKey, stamp, token,
                       std::to_string(ttl_ms), payload});
}

void append_unlink(std::string& out, std::string_view key) { append_command(out, {"UNLINK", key}); }

void append_seal(std::string& out, std::string_view key, std::string_view token) {
  if (broken(Fault::compare_and_delete_seal)) {
    append_command(out, {"EVAL", kSealOwnScript, "1", claim_key(key), token});
  } else {
    append_command(out, {"DEL", claim_key(key)});
  }
}

void append_set_stamp(std::string& out, const topology::Fence& fence, std::string_view stamp) {
  append_command(out, {"EVAL", kStampScript, "1", kStampKey, std::to_string(fence.epoch),
                       std::to_string(fence.step), stamp});
}

Claim read_claim(const Value& reply) noexcept {
  if (says(reply, "CLAIMED")) return Claim::claimed;
  if (says(reply, "BUSY")) return Claim::busy;
  if (says(reply, "WAIT")) return Claim::wait;
  if (says(reply, "GATE")) return Claim::gate;
  return Claim::error;
}

Restore read_restore(const Value& reply) noexcept {
  if (says(reply, "OK")) return Restore::ok;
  if (says(reply, "BUSY")) return Restore::busy;
  if (says(reply, "STALE")) return Restore::stale;
  if (says(reply, "GATE")) return Restore::gate;
  return Restore::error;
}

Dump read_dump(Value reply) {
  Dump dump;
  if (reply.is_null()) {
    dump.kind = Dump::Kind::absent;
  } else if (reply.type == Value::Type::array && reply.items.size() == 2 &&
             reply.items[0].type == Value::Type::bulk && reply.items[1].type == Value::Type::integer) {
    dump.kind = Dump::Kind::payload;
    dump.payload = std::move(reply.items[0].text);
    // PTTL: -1 is "no expiry"; a key in its last millisecond says 0, which RESTORE would read as "none".
    const std::int64_t ttl = reply.items[1].integer;
    dump.ttl_ms = ttl == -1 ? 0 : std::max<std::int64_t>(ttl, 1);
  }
  return dump;
}

}  // namespace ringshift::transfer
