#include "registry/token_book.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/encoding.h"
#include "hashing/sha256.h"

namespace ringshift::registry {
namespace {

constexpr std::size_t kSecretBytes = 32;  // As many as its hash has.
constexpr std::size_t kMarkBytes = 1 + 32;

std::string joined(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ",")); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::uint64_t bucket_of(std::string_view hash) {
  std::uint64_t first = 0;
  std::memcpy(&first, hash.data(), sizeof first);
  return first;
}

}  // namespace

std::string make_secret() {
  char bytes[kSecretBytes];
  std::size_t have = 0;
  while (have < sizeof bytes) {
    const ssize_t got = getrandom(bytes + have, sizeof bytes - have, 0);
    if (got < 0 && errno != EINTR) std::abort();  // A guessable secret would be worse than none.
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  std::string text = base::to_base64(std::string_view(bytes, sizeof bytes));
  OPENSSL_cleanse(bytes, sizeof bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return std::string(kTokenPrefix) + text;
}

std::string TokenBook::hash_of(std::string_view secret) {
  return base::from_hex(hashing::sha256_hex(secret)).value();
}

// An earlier release takes no row with a hash of this length for a token.
std::string TokenBook::mark_of_certified(std::string_view name) { return "c" + hash_of(name); }

Result<std::unique_ptr<TokenBook>> TokenBook::open(store::Store& store, Clock clock) {
  std::unique_ptr<TokenBook> book(new TokenBook(store, std::move(clock)));
  if (const Status loaded = book->load(); !loaded) return std::unexpected(loaded.error());
  return book;
}

Status TokenBook::load() {
  auto rows = store_.tokens();
  if (!rows) return std::unexpected(rows.error());
  by_hash_.clear();
  names_.clear();
  for (store::TokenRow& row : *rows) {
    const auto role = role_of(row.role);
    const bool certificate = row.hash.size() == kMarkBytes;
    // Of a later release: it opens nothing here.
    if (!role || (row.hash.size() != kSecretBytes && !certificate)) continue;
    Identity identity{row.name, *role, row.name_space, split(row.ids), split(row.addresses)};
    const std::uint64_t bucket = bucket_of(row.hash);
    names_.insert(row.name);
    by_hash_.emplace(
        bucket, Entry{std::move(row), std::make_shared<const Identity>(std::move(identity)), certificate});
  }
  return {};
}

bool TokenBook::live(const Entry& entry) const {
  return entry.row.expires == 0 || clock_() < entry.row.expires;
}

// What time tells of the map is the beginning of a hash, of which nobody can make a secret.
const TokenBook::Entry* TokenBook::entry(std::string_view hash) const {
  const auto [begin, end] = by_hash_.equal_range(bucket_of(hash));
  for (auto one = begin; one != end; ++one) {
    const std::string& known = one->second.row.hash;
    if (known.size() == hash.size() && CRYPTO_memcmp(known.data(), hash.data(), hash.size()) == 0 &&
        live(one->second)) {
      return &one->second;
    }
  }
  return nullptr;
}

std::shared_ptr<const Identity> TokenBook::find(std::string_view secret) const {
  if (secret.size() != kTokenBytes) return nullptr;
  const Entry* found = entry(hash_of(secret));
  return found == nullptr ? nullptr : found->identity;
}

std::shared_ptr<const Identity> TokenBook::find_certified(std::string_view name) const {
  const Entry* found = entry(mark_of_certified(name));
  return found == nullptr ? nullptr : found->identity;
}

bool TokenBook::alive(std::string_view name, std::string_view secret_hash) const {
  const Entry* found = entry(secret_hash);
  return found != nullptr && found->row.name == name;
}

// "cache" has cache.* by default, and is not asked whether somebody made a token "cache.2": who has the
// longest name has the id.
bool TokenBook::of_another(const Identity& who, const std::string& id) const {
  if (!who.ids.empty()) return false;  // Those who made it have said which.
  for (std::size_t end = who.name.size() + 1; end <= id.size(); ++end) {
    if ((end == id.size() || id[end] == '.') && names_.contains(id.substr(0, end))) return true;
  }
  return false;
}

std::vector<TokenBook::Info> TokenBook::list() const {
  std::map<std::string, Info> by_name;
  for (const auto& [bucket, entry] : by_hash_) {
    Info& info = by_name[entry.row.name];
    info.certificate = entry.certificate;
    const bool newer = info.secrets == 0 || info.created <= entry.row.created;
    if (newer) {
      info.identity = *entry.identity;
      info.created = entry.row.created;
      info.expires = entry.row.expires;
    }
    if (live(entry) && !entry.certificate) ++info.secrets;
  }
  std::vector<Info> all;
  for (auto& [name, info] : by_name) all.push_back(std::move(info));
  return all;
}

bool TokenBook::has_admin() const {
  return std::ranges::any_of(by_hash_, [&](const auto& one) {
    return one.second.identity->role == Role::admin && !one.second.certificate && live(one.second);
  });
}

Result<std::vector<const TokenBook::Entry*>> TokenBook::named(const std::string& name) const {
  std::vector<const Entry*> found;
  for (const auto& [bucket, entry] : by_hash_) {
    if (entry.row.name == name) found.push_back(&entry);
  }
  if (found.empty()) {
    return fail(ErrorKind::not_found, fmt::format("there is no token named '{}': see 'ringshift token list'",
                                                  base::printable(name, kNameBytesMax)));
  }
  std::ranges::sort(found, [](const Entry* a, const Entry* b) { return a->row.created < b->row.created; });
  return found;
}

Status TokenBook::apply(std::vector<store::TokenRow> put, std::vector<std::string> removed,
                        std::string_view verb, const std::string& name, const Change& by) {
  store::AuditRow audit;
  audit.who = by.who;
  audit.peer = by.peer;
  audit.verb = verb;
  audit.key = "token/" + name;
  audit.outcome = "ok";
  if (const Status done = store_.change_tokens(put, removed, audit); !done) return done;
  return load();
}

Result<std::string> TokenBook::create(const Identity& identity, std::int64_t expires, const Change& by) {
  std::string secret = make_secret();
  const Status done = add(identity, expires, hash_of(secret), "token create", by);
  if (!done) return std::unexpected(done.error());
  return secret;
}

Status TokenBook::create_certified(const Identity& identity, std::int64_t expires, const Change& by) {
  return add(identity, expires, mark_of_certified(identity.name), "token create (certificate)", by);
}

Status TokenBook::add(const Identity& identity, std::int64_t expires, std::string hash, std::string_view verb,
                      const Change& by) {
  if (const Status right = check_identity(identity); !right) return right;
  if (by_hash_.size() >= kTokensMax) {
    return fail(ErrorKind::overloaded, fmt::format("there are {} tokens: revoke some", kTokensMax));
  }
  if (const auto same = named(identity.name)) {
    return fail(ErrorKind::invalid,
                fmt::format("there is a token named '{}' already{}", identity.name,
                            live(*same->back()) ? ": rotate it, or revoke it first"
                                                : ", which has expired: revoke it first"));
  }
  const std::int64_t now = clock_();
  if (expires != 0 && expires <= now) return fail(ErrorKind::invalid, "the token would have expired already");
  return apply({{std::move(hash), identity.name, std::string(to_string(identity.role)), identity.name_space,
                 joined(identity.ids), joined(identity.addresses), now, expires}},
               {}, verb, identity.name, by);
}

Result<std::string> TokenBook::rotate(const std::string& name, std::int64_t grace_seconds, const Change& by) {
  const auto found = named(name);
  if (!found) return std::unexpected(found.error());
  if (found->back()->certificate) {
    return fail(
        ErrorKind::invalid,
        fmt::format("'{0}' has no secret, a certificate names it: 'ringshift cert issue {0} --identity "
                    "{0} --force' makes a new one",
                    name));
  }
  // A new secret would end when the old one did.
  if (!live(*found->back())) {
    return fail(
        ErrorKind::invalid,
        fmt::format("token '{0}' has expired, and a new secret of it would have, too: 'ringshift token "
                    "revoke {0}', and create it anew",
                    name));
  }
  const std::int64_t now = clock_();
  store::TokenRow old = found->back()->row;
  store::TokenRow fresh = old;
  std::string secret = make_secret();
  fresh.hash = hash_of(secret);
  fresh.created = std::max(now, old.created + 1);  // The newest is the one that counts.
  // Two are live: the newest, which goes on for the grace, and the one made now. Older ones end here.
  std::vector<std::string> removed;
  for (std::size_t i = 0; i + 1 < found->size(); ++i) removed.push_back((*found)[i]->row.hash);
  std::vector<store::TokenRow> put;
  if (grace_seconds > 0) {
    const std::int64_t end = now + grace_seconds;
    old.expires = old.expires == 0 ? end : std::min(old.expires, end);
    put.push_back(old);
  } else {
    removed.push_back(old.hash);
  }
  put.push_back(std::move(fresh));
  if (const Status done = apply(std::move(put), std::move(removed), "token rotate", name, by); !done) {
    return std::unexpected(done.error());
  }
  return secret;
}

Status TokenBook::revoke(const std::string& name, const Change& by) {
  const auto found = named(name);
  if (!found) return std::unexpected(found.error());
  const auto stays = [&](const auto& one) {
    return one.second.row.name != name && one.second.identity->role == Role::admin &&
           one.second.row.expires == 0 && !one.second.certificate;
  };
  if (found->back()->identity->role == Role::admin && !found->back()->certificate &&
      !std::ranges::any_of(by_hash_, stays)) {
    return fail(ErrorKind::invalid,
                fmt::format("'{}' is the last admin's token that does not end: make another "
                            "one first, or rotate this one",
                            name));
  }
  std::vector<std::string> removed;
  for (const Entry* entry : *found) removed.push_back(entry->row.hash);
  return apply({}, std::move(removed), "token revoke", name, by);
}

bool RateLimit::take(const std::string& name, TimePoint now) {
  if (per_second_ <= 0) return true;
  if (buckets_.size() > kTokensMax) buckets_.clear();
  const double most = std::max(per_second_, 1.0);  // Less than one a second is one in a while.
  const auto [found, made] = buckets_.try_emplace(name, Bucket{most, now});
  Bucket& bucket = found->second;
  const std::chrono::duration<double> passed = now - bucket.at;
  bucket.left = std::min(most, bucket.left + passed.count() * per_second_);
  bucket.at = now;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace ringshift::registry
