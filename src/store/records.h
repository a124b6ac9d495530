// What a registry keeps beside its keys, in tables that no key reaches: tokens, and the audit.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "store/types.h"

namespace ringshift::store {

// One live secret. Of the secret itself only the SHA-256 is kept; what the rest means is the registry's. An
// entry without a secret, for certificates, has a mark of 33 bytes instead.
struct TokenRow {
  std::string hash;  // 32 bytes.
  std::string name, role, name_space, ids, addresses;
  std::int64_t created = 0, expires = 0;  // Unix seconds; 0: never.
};

// Who writes. A write with one leaves a row in the audit for each key that `wants` names, in the same
// transaction.
struct Actor {
  std::string who, peer;
  std::string_view verb;
  bool (*wants)(std::string_view key) = nullptr;
};

// One line of the audit. Values are there by size and digest alone.
struct AuditRow {
  std::int64_t id = 0;
  std::int64_t at = 0;  // Unix seconds.
  std::string who, peer, verb, key;
  Revision revision = 0;
  // Of the value before and after, each "SIZE:DIGEST" (the first 16 hex digits of its SHA-256); "" for none.
  std::string before, after;
  std::string outcome;  // "ok", or why not.
};

}  // namespace ringshift::store
