#include "transfer/verify.h"

#include <fmt/format.h>

#include <array>

#include "protocol/resp/value.h"
#include "transfer/steps.h"

namespace ringshift::transfer {

using protocol::resp::append_command;

namespace {

constexpr std::array<std::string_view, 3> kVerifyNames = {"counts", "sample", "all"};

// Elements become hashes of one length before they are sorted, so that neither their bytes nor the servers'
// locales matter. Of a stream: entries, last id, and its groups with what is pending in them. A module's type
// has no digest: for those the DUMP's bytes decide alone ('?' and a value that is never the same).
constexpr std::string_view kDigestScript =
    "local k,h=KEYS[1],redis.sha1hex local t=redis.call('TYPE',k).ok "
    "if t=='none' then return false end local e={} "
    "local function add(...) local p={} for i,v in ipairs({...}) do v=tostring(v) p[i]=#v..':'..v end "
    "e[#e+1]=h(table.concat(p)) end "
    "local function all(v) if type(v)~='table' then return tostring(v) end local p={} "
    "for i,x in ipairs(v) do local s=all(x) p[i]=#s..':'..s end return table.concat(p,',') end "
    "if t=='string' then add(redis.call('GET',k)) "
    "elseif t=='list' then for i,v in ipairs(redis.call('LRANGE',k,0,-1)) do add(i,v) end "
    "elseif t=='set' then for _,v in ipairs(redis.call('SMEMBERS',k)) do add(v) end table.sort(e) "
    "elseif t=='hash' then local v=redis.call('HGETALL',k) for i=1,#v,2 do add(v[i],v[i+1]) end "
    "table.sort(e) "
    "elseif t=='zset' then local v=redis.call('ZRANGE',k,0,-1,'WITHSCORES') "
    "for i=1,#v,2 do add(v[i],v[i+1]) end "
    "elseif t=='stream' then add(all(redis.call('XRANGE',k,'-','+'))) "
    "add(all(redis.call('XINFO','STREAM',k)[8])) add(all(redis.call('XINFO','GROUPS',k))) "
    "else return {t,ARGV[1]} end return {t,h(table.concat(e))}";

// KEYS: k, its claim, the stamp, where the copy lies. ARGV: the stamp that must stand there, the token, ttl.
constexpr std::string_view kPutInPlaceScript =
    "local r='OK' if redis.call('GET',KEYS[3])~=ARGV[1] then r='GATE' "
    "elseif redis.call('GET',KEYS[2])~=ARGV[2] then r='STALE' "
    "elseif redis.call('EXISTS',KEYS[1])==1 then r='BUSY' "
    "elseif redis.call('EXISTS',KEYS[4])==0 then r='STALE' end "
    "if r~='OK' then redis.call('DEL',KEYS[4]) return r end "
    "redis.call('RENAME',KEYS[4],KEYS[1]) "
    "if ARGV[3]=='0' then redis.call('PERSIST',KEYS[1]) else redis.call('PEXPIRE',KEYS[1],ARGV[3]) end "
    "return r";

}  // namespace

std::string_view name(Verify verify) noexcept { return kVerifyNames[static_cast<std::size_t>(verify)]; }

std::optional<Verify> verify_by_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kVerifyNames.size(); ++i) {
    if (kVerifyNames[i] == name) return static_cast<Verify>(i);
  }
  return std::nullopt;
}

std::string aside_key(std::string_view key) { return fmt::format("rs:copy:{{{}}}", key); }

void append_digest(std::string& out, std::string_view key) {
  append_command(out, {"EVAL", kDigestScript, "1", key, key});
}

void append_put_in_place(std::string& out, std::string_view key, std::string_view stamp,
                         std::string_view token, std::int64_t ttl_ms) {
  append_command(out, {"EVAL", kPutInPlaceScript, "4", key, claim_key(key), kStampKey, aside_key(key), stamp,
                       token, std::to_string(ttl_ms)});
}

void append_drop_aside(std::string& out, std::string_view key) {
  append_command(out, {"DEL", aside_key(key)});
}

}  // namespace ringshift::transfer
