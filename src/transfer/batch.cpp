#include "transfer/batch.h"

#include "transfer/faults.h"

namespace ringshift::transfer {

using protocol::resp::append_command;
using protocol::resp::Value;

namespace {

// ARGV: the byte cap. Answers {payload, pttl} or false for each key, ending after the key that fills the cap.
constexpr std::string_view kDumpManyScript =
    "local r={} local n=0 for i,k in ipairs(KEYS) do local p=redis.call('DUMP',k) "
    "if p then r[i]={p,redis.call('PTTL',k)} n=n+#p else r[i]=false end "
    "if n>=tonumber(ARGV[1]) then break end end return r";

// Steps 1 and 3 for many keys in one script, as steps.cpp has them for one: what a member spends on reading a
// command and its script is spent once a batch. Each key is looked at and written in one go, as ever.
// KEYS: the stamp, then each key with its claim. ARGV: what the stamp must say, the claims' lifetime, then
// the tokens, all of one TokenSource. Answers 'GATE', or a list.
constexpr std::string_view kClaimManyScript =
    "if redis.call('GET',KEYS[1])~=ARGV[1] then return 'GATE' end "
    "local r,o={},string.match(ARGV[3],'^(.+%-)%d+$') "
    "for j=1,#ARGV-2 do local k,c=KEYS[2*j],KEYS[2*j+1] "
    "if redis.call('EXISTS',k)==1 then r[j]='BUSY' else local t=redis.call('GET',c) "
    "if t and (not o or string.sub(t,1,#o)~=o) then r[j]='WAIT' else "
    "local s=redis.pcall('SET',c,ARGV[2+j],'PX',ARGV[2]) "
    "if s.err then r[j]=s else r[j]='CLAIMED' end end end end return r";
// KEYS as before. ARGV: what the stamp must say, whether claims count ('1'; see transfer/faults.h), then
// token, time to live, whether to compare ('1'), and payload of each. A key that is refused does not keep the
// others out. The last ten bytes of a payload are version and checksum.
constexpr std::string_view kRestoreManyScript =
    "if redis.call('GET',KEYS[1])~=ARGV[1] then return 'GATE' end local r={} "
    "for j=1,(#ARGV-2)/4 do local k,c,a=KEYS[2*j],KEYS[2*j+1],4*j-1 "
    "if ARGV[2]~='0' and redis.call('GET',c)~=ARGV[a] then r[j]='STALE' "
    "elseif redis.call('EXISTS',k)==1 then r[j]='BUSY' else "
    "local s=redis.pcall('RESTORE',k,ARGV[a+1],ARGV[a+3]) "
    "if ARGV[2]=='broken' then redis.pcall('APPEND',k,'!') end "
    "if s.err then r[j]=s elseif ARGV[a+2]=='0' then r[j]='OK' else "
    "local p,t=redis.call('PTTL',k),tonumber(ARGV[a+1]) local d=redis.call('DUMP',k) "
    "if (t==0 and p==-1 or t>0 and p<=t and p>t-1000) "
    "and d and string.sub(d,1,-11)==string.sub(ARGV[a+3],1,-11) then r[j]='OK' "
    "elseif not d then r[j]='STALE' "
    "else local n='rs:copy:{'..k..'}' redis.call('RENAME',k,n) redis.call('PEXPIRE',n,'10000') "
    "r[j]='DIFFERS' end end end end return r";

// One answer a key: the list's, or, where the member refused the whole script, what it said for each.
Result<std::vector<Value>> ask_many(backend::SyncClient& member, std::string_view bytes, std::size_t keys) {
  Result<std::vector<Value>> replies = member.pipeline(bytes, 1);
  if (!replies) return replies;
  Value& reply = replies->front();
  if (reply.type != Value::Type::array) return std::vector<Value>(keys, reply);
  if (reply.items.size() == keys) return std::move(reply.items);
  Value unread;
  unread.type = Value::Type::error;
  unread.text = "ERR a transfer's answer has another length than its question";
  return std::vector<Value>(keys, unread);
}

}  // namespace

BatchMover::BatchMover(backend::SyncClient& source, backend::SyncClient& destination, std::string stamp,
                       TokenSource& tokens, Verify verify, std::string_view claim_ms)
    : source_(source),
      destination_(destination),
      stamp_(std::move(stamp)),
      tokens_(tokens),
      verify_(verify),
      claim_ms_(claim_ms) {}

Result<BatchResult> BatchMover::move(std::span<const std::string> keys) {
  BatchResult result;
  std::vector<Item> claimed, confirm, seal_only;
  if (Status done = claim(keys, claimed, confirm, result); !done) return std::unexpected(done.error());
  std::span<const Item> rest = claimed;
  do {
    if (!rest.empty()) {
      Result<std::vector<Copy>> copies = dump(rest, result);
      if (!copies) return std::unexpected(copies.error());
      if (copies->empty()) break;  // A member's error; it stands in the result.
      rest = rest.subspan(copies->size());
      if (Status done = restore(*copies, confirm, seal_only, result); !done)
        return std::unexpected(done.error());
    }
    if (Status done = unlink_and_seal(confirm, seal_only, result); !done)
      return std::unexpected(done.error());
    confirm.clear();
    seal_only.clear();
  } while (!rest.empty() && !result.gated);
  return result;
}

std::vector<std::string> BatchMover::script_keys(std::span<const Item> items) {
  std::vector<std::string> names = {std::string(kStampKey)};
  for (const Item& item : items) {
    names.push_back(*item.key);
    names.push_back(claim_key(*item.key));
  }
  return names;
}

Status BatchMover::claim(std::span<const std::string> keys, std::vector<Item>& claimed,
                         std::vector<Item>& confirm, BatchResult& result) {
  if (keys.empty()) return {};
  std::vector<Item> items;
  for (const std::string& key : keys)
    items.push_back({&key, tokens_.next()});  // I9: one for each CLAIM sent.
  const std::vector<std::string> names = script_keys(items);
  const std::string count = std::to_string(names.size());
  std::vector<std::string_view> arguments = {"EVAL", kClaimManyScript, count};
  arguments.insert(arguments.end(), names.begin(), names.end());
  arguments.insert(arguments.end(), {stamp_, claim_ms_});
  for (const Item& item : items) arguments.push_back(item.token);
  std::string bytes;
  append_command(bytes, arguments);
  const Result<std::vector<Value>> replies = ask_many(destination_, bytes, keys.size());
  if (!replies) return std::unexpected(replies.error());
  for (std::size_t i = 0; i < items.size(); ++i) {
    switch (read_claim((*replies)[i])) {
      case Claim::claimed:
        claimed.push_back(std::move(items[i]));
        break;
      case Claim::busy:
        ++result.settled;
        confirm.push_back(std::move(items[i]));
        break;
      case Claim::wait:
        ++result.later;
        break;
      case Claim::gate:
        result.gated = true;
        break;
      case Claim::error:
        result.error = (*replies)[i].text;
        break;
    }
  }
  return {};
}

Result<std::vector<BatchMover::Copy>> BatchMover::dump(std::span<const Item> items, BatchResult& result) {
  const std::string count = std::to_string(items.size());
  const std::string cap = std::to_string(kBatchBytesMax);
  std::vector<std::string_view> arguments = {"EVAL", kDumpManyScript, count};
  for (const Item& item : items) arguments.push_back(*item.key);
  arguments.push_back(cap);
  std::string bytes;
  append_command(bytes, arguments);
  Result<std::vector<Value>> replies = source_.pipeline(bytes, 1);
  if (!replies) return std::unexpected(replies.error());
  std::vector<Copy> copies;
  Value& reply = replies->front();
  if (reply.type != Value::Type::array || reply.items.size() > items.size()) {
    result.error = reply.is_error() ? reply.text : "DUMP answered what is no list of payloads";
    return copies;
  }
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    copies.push_back({items[i], read_dump(std::move(reply.items[i]))});
    const Dump& dump = copies.back().dump;
    if (dump.payload.size() > kBigKeyBytes) result.big.emplace_back(*items[i].key, dump.payload.size());
  }
  return copies;
}

Status BatchMover::restore(std::span<const Copy> copies, std::vector<Item>& confirm,
                           std::vector<Item>& seal_only, BatchResult& result) {
  std::vector<const Copy*> sent;
  std::vector<Item> items;
  for (const Copy& copy : copies) {
    if (copy.dump.kind == Dump::Kind::absent) {
      seal_only.push_back(copy.item);
      ++result.settled;
    } else if (copy.dump.kind == Dump::Kind::payload) {
      sent.push_back(&copy);
      items.push_back(copy.item);
    } else {
      result.error = "DUMP answered what is no payload";
    }
  }
  if (sent.empty()) return {};
  const std::vector<std::string> names = script_keys(items);
  const std::string count = std::to_string(names.size());
  std::vector<std::string> times;
  times.reserve(sent.size());
  std::vector<std::string_view> arguments = {"EVAL", kRestoreManyScript, count};
  arguments.insert(arguments.end(), names.begin(), names.end());
  const std::string_view mode = broken(Fault::restore_without_token) ? "0"
                                : broken(Fault::wrong_copy)          ? "broken"
                                                                     : "1";
  arguments.insert(arguments.end(), {stamp_, mode});
  for (const Copy* copy : sent) {
    times.push_back(std::to_string(copy->dump.ttl_ms));
    arguments.insert(arguments.end(), {copy->item.token, times.back(), is_verified(copy->item) ? "1" : "0",
                                       copy->dump.payload});
  }
  std::string bytes;
  append_command(bytes, arguments);
  const Result<std::vector<Value>> replies = ask_many(destination_, bytes, sent.size());
  if (!replies) return std::unexpected(replies.error());
  std::vector<const Copy*> differing;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if ((*replies)[i].text == "DIFFERS" && !(*replies)[i].is_error()) {
      differing.push_back(sent[i]);
    } else {
      note(read_restore((*replies)[i]), *sent[i], (*replies)[i].text, confirm, result);
    }
  }
  return differing.empty() ? Status{} : decide(differing, confirm, result);
}

bool BatchMover::is_verified(const Item& item) const {
  // Tokens are random: so is the sample.
  return verify_ == Verify::all ||
         (verify_ == Verify::sample && std::hash<std::string>{}(item.token) % kVerifyOneIn == 0);
}

void BatchMover::note(Restore answer, const Copy& copy, const std::string& error, std::vector<Item>& confirm,
                      BatchResult& result) {
  switch (answer) {
    case Restore::ok:
      ++result.moved;
      result.verified += is_verified(copy.item) ? 1 : 0;
      result.bytes += copy.dump.payload.size();
      confirm.push_back(copy.item);
      break;
    case Restore::busy:
      ++result.settled;
      confirm.push_back(copy.item);
      break;
    case Restore::stale:
      ++result.later;
      break;
    case Restore::gate:
      result.gated = true;
      break;
    case Restore::error:
      result.error = error;
      break;
  }
}

Status BatchMover::decide(const std::vector<const Copy*>& differing, std::vector<Item>& confirm,
                          BatchResult& result) {
  std::string there, here, last;
  for (const Copy* copy : differing) {
    append_digest(there, *copy->item.key);
    append_digest(here, aside_key(*copy->item.key));
  }
  const Result<std::vector<Value>> originals = source_.pipeline(there, differing.size());
  if (!originals) return std::unexpected(originals.error());
  const Result<std::vector<Value>> copies = destination_.pipeline(here, differing.size());
  if (!copies) return std::unexpected(copies.error());
  std::vector<bool> equal;
  for (std::size_t i = 0; i < differing.size(); ++i) {
    const Value &original = (*originals)[i], &copy = (*copies)[i];
    const Item& item = differing[i]->item;
    const bool comparable = original.items.size() == 2 && copy.items.size() == 2;
    equal.push_back(comparable && original.items[0].text == copy.items[0].text &&
                    original.items[1].text == copy.items[1].text);
    if (equal.back()) {
      append_put_in_place(last, *item.key, stamp_, item.token, differing[i]->dump.ttl_ms);
      continue;
    }
    append_drop_aside(last, *item.key);
    if (original.is_error() || copy.is_error()) {
      result.error = original.is_error() ? original.text : copy.text;
    } else if (!comparable) {
      ++result.later;  // One of them expired, or was evicted, or a router has moved the key meanwhile.
    } else {
      result.mismatched.emplace_back(*item.key, original.items[0].text + ", compared by its digest");
    }
  }
  const Result<std::vector<Value>> done = destination_.pipeline(last, differing.size());
  if (!done) return std::unexpected(done.error());
  for (std::size_t i = 0; i < differing.size(); ++i) {
    if (equal[i]) note(read_restore((*done)[i]), *differing[i], (*done)[i].text, confirm, result);
  }
  return {};
}

Status BatchMover::unlink_and_seal(const std::vector<Item>& confirm, const std::vector<Item>& seal_only,
                                   BatchResult& result) {
  if (!confirm.empty()) {
    std::vector<std::string_view> arguments = {"UNLINK"};
    for (const Item& item : confirm) arguments.push_back(*item.key);
    std::string bytes;
    append_command(bytes, arguments);
    const Result<std::vector<Value>> replies = source_.pipeline(bytes, 1);
    if (!replies) return std::unexpected(replies.error());
    if (replies->front().is_error()) {  // No seal before OLD has let go (I8).
      result.error = replies->front().text;
      return {};
    }
  }
  std::size_t count = confirm.size() + seal_only.size();
  if (count == 0) return {};
  std::string bytes;
  if (broken(Fault::compare_and_delete_seal)) {
    for (const std::vector<Item>* items : {&confirm, &seal_only}) {
      for (const Item& item : *items) append_seal(bytes, *item.key, item.token);
    }
  } else {
    std::vector<std::string> claims;
    for (const std::vector<Item>* items : {&confirm, &seal_only}) {
      for (const Item& item : *items) claims.push_back(claim_key(*item.key));
    }
    std::vector<std::string_view> arguments = {"DEL"};
    arguments.insert(arguments.end(), claims.begin(), claims.end());
    append_command(bytes, arguments);
    count = 1;
  }
  const Result<std::vector<Value>> replies = destination_.pipeline(bytes, count);
  if (!replies) return std::unexpected(replies.error());
  for (const Value& reply : *replies) {
    if (reply.is_error()) result.error = reply.text;
  }
  return {};
}

}  // namespace ringshift::transfer
