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

}  // namespace

BatchMover::BatchMover(backend::SyncClient& source, backend::SyncClient& destination, std::string stamp,
                       TokenSource& tokens)
    : source_(source), destination_(destination), stamp_(std::move(stamp)), tokens_(tokens) {}

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

Status BatchMover::claim(std::span<const std::string> keys, std::vector<Item>& claimed,
                         std::vector<Item>& confirm, BatchResult& result) {
  std::string bytes;
  std::vector<Item> items;
  for (const std::string& key : keys) {
    items.push_back({&key, tokens_.next()});  // I9: one token per CLAIM sent.
    append_claim(bytes, key, stamp_, items.back().token);
  }
  const Result<std::vector<Value>> replies = destination_.pipeline(bytes, keys.size());
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
  std::string bytes;
  std::vector<const Copy*> sent;
  for (const Copy& copy : copies) {
    if (copy.dump.kind == Dump::Kind::absent) {
      seal_only.push_back(copy.item);
      ++result.settled;
    } else if (copy.dump.kind == Dump::Kind::payload) {
      append_restore(bytes, *copy.item.key, stamp_, copy.item.token, copy.dump.ttl_ms, copy.dump.payload);
      sent.push_back(&copy);
    } else {
      result.error = "DUMP answered what is no payload";
    }
  }
  if (sent.empty()) return {};
  const Result<std::vector<Value>> replies = destination_.pipeline(bytes, sent.size());
  if (!replies) return std::unexpected(replies.error());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    switch (read_restore((*replies)[i])) {
      case Restore::ok:
        ++result.moved;
        result.bytes += sent[i]->dump.payload.size();
        confirm.push_back(sent[i]->item);
        break;
      case Restore::busy:
        ++result.settled;
        confirm.push_back(sent[i]->item);
        break;
      case Restore::stale:
        ++result.later;
        break;
      case Restore::gate:
        result.gated = true;
        break;
      case Restore::error:
        result.error = (*replies)[i].text;
        break;
    }
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
  std::string bytes;
  for (const std::vector<Item>* items : {&confirm, &seal_only}) {
    for (const Item& item : *items) append_seal(bytes, *item.key, item.token);
  }
  const std::size_t count = confirm.size() + seal_only.size();
  if (count == 0) return {};
  const Result<std::vector<Value>> replies = destination_.pipeline(bytes, count);
  if (!replies) return std::unexpected(replies.error());
  for (const Value& reply : *replies) {
    if (reply.is_error()) result.error = reply.text;
  }
  return {};
}

}  // namespace ringshift::transfer
