// Where the keys of `ringshift compare` come from.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "backend/sync_client.h"
#include "base/encoding.h"
#include "cli/compare.h"
#include "cli/console.h"

namespace ringshift::cli::compare {
namespace {

using backend::SyncClient;

constexpr std::size_t kMaxKeyBytes = 1U << 20;  // A line beyond it is no key list.

Error too_many(const std::string& where) {
  return {ErrorKind::invalid,
          fmt::format("{}: more keys than the {} (or {} bytes) that are compared at once: "
                      "take a sample of them, for example by `shuf -n 1000000`",
                      where, grouped(KeySet::kMaxKeys), grouped(KeySet::kMaxBytes))};
}

struct Close {
  void operator()(std::FILE* file) const noexcept {
    if (file != stdin) std::fclose(file);
  }
};

Result<Keys> read_file(const std::string& path) {
  const std::string where = path == "-" ? "standard input" : path;
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr)
    return fail(ErrorKind::not_found, fmt::format("--keys-file: {}: {}", path, std::strerror(errno)));
  Keys out{{}, where};
  std::string rest;  // Of a line that is not whole yet.
  const auto take = [&](std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line.empty() || out.set.add(line);
  };
  char part[1 << 16];
  while (std::feof(file.get()) == 0 && std::ferror(file.get()) == 0) {
    std::string_view text(part, std::fread(part, 1, sizeof part, file.get()));
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      rest.append(text.substr(0, end));
      if (!take(rest)) return std::unexpected(too_many(where));
      rest.clear();
      text.remove_prefix(end + 1);
    }
    rest.append(text);
    if (rest.size() > kMaxKeyBytes) {
      return fail(ErrorKind::invalid,
                  fmt::format("--keys-file: {}: line {} has more than {} bytes: is it a list "
                              "of one key a line?",
                              where, out.set.size() + 1, kMaxKeyBytes));
    }
  }
  if (std::ferror(file.get()) != 0) {
    return fail(ErrorKind::internal,
                fmt::format("--keys-file: {}: cannot be read: {}", where, std::strerror(errno)));
  }
  if (!take(rest)) return std::unexpected(too_many(where));
  if (out.set.empty())
    return fail(ErrorKind::invalid, fmt::format("--keys-file: {}: has no keys: write one a line", where));
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto byte = base::from_hex(text.substr(i + 1, 2));
    if (!byte || byte->size() != 1) return std::nullopt;
    out += *byte;
    i += 2;
  }
  return out;
}

struct RedisUrl {
  std::string address, user, password;
  std::uint64_t db = 0;
};

// Never repeats the URL in an error: it may hold a password.
Result<RedisUrl> parse_redis_url(std::string_view url) {
  const auto wrong = [](std::string_view why) {
    return fail(ErrorKind::invalid,
                fmt::format("--redis: {}: write redis://[user:password@]host[:port][/db], such as "
                            "redis://127.0.0.1:6379",
                            why));
  };
  constexpr std::string_view kScheme = "redis://";
  if (url.starts_with("rediss://")) return wrong("TLS (rediss) is not supported here");
  if (!url.starts_with(kScheme)) return wrong("the URL does not begin with redis://");
  url.remove_prefix(kScheme.size());
  RedisUrl out;
  if (const auto slash = url.find('/'); slash != std::string_view::npos) {
    const std::string_view db = url.substr(slash + 1);
    const auto number = base::parse_u64(db);
    if (!db.empty() && !number) return wrong("what follows the host is no number of a database");
    out.db = number.value_or(0);
    url = url.substr(0, slash);
  }
  if (const auto at = url.rfind('@'); at != std::string_view::npos) {
    const std::string_view login = url.substr(0, at);
    const auto colon = login.find(':');
    const auto user =
        percent_decoded(colon == std::string_view::npos ? std::string_view() : login.substr(0, colon));
    const auto password = percent_decoded(colon == std::string_view::npos ? login : login.substr(colon + 1));
    if (!user || !password) return wrong("a % in user or password is not followed by two hex digits");
    out.user = *user;
    out.password = *password;
    url = url.substr(at + 1);
  }
  if (url.empty()) return wrong("there is no host");
  const bool has_port = url.back() != ']' && url.find(':') != std::string_view::npos;
  out.address = has_port ? std::string(url) : std::string(url) + ":6379";
  return out;
}

Status call_ok(SyncClient& client, std::initializer_list<std::string_view> command, std::string_view what) {
  const auto reply = client.call(command);
  if (!reply) return std::unexpected(reply.error());
  if (!reply->is_error()) return {};
  return fail(ErrorKind::denied,
              fmt::format("--redis: {} refused {}: {}", client.address(), what, reply->text));
}

Result<Keys> scan(const std::string& url, std::uint64_t sample) {
  constexpr std::string_view kBatch = "1000";
  const Result<RedisUrl> target = parse_redis_url(url);
  if (!target) return std::unexpected(target.error());
  auto client = SyncClient::connect(target->address);
  if (!client) return fail(client.error().kind, "--redis: " + client.error().message);
  Status ready;
  if (!target->user.empty()) {
    ready = call_ok(**client, {"AUTH", target->user, target->password}, "the login");
  } else if (!target->password.empty()) {
    ready = call_ok(**client, {"AUTH", target->password}, "the login");
  }
  const std::string db = std::to_string(target->db);
  if (ready && target->db != 0) ready = call_ok(**client, {"SELECT", db}, "database " + db);
  if (!ready) return std::unexpected(ready.error());
  Keys out{{}, fmt::format("sampled by SCAN from {}{}", target->address, target->db == 0 ? "" : "/" + db)};
  std::string cursor = "0";
  do {
    const auto reply = (*client)->call({"SCAN", cursor, "COUNT", kBatch});
    if (!reply) return fail(reply.error().kind, "--redis: " + reply.error().message);
    if (reply->items.size() != 2) {
      return fail(ErrorKind::denied,
                  fmt::format("--redis: {} does not answer SCAN: {}", target->address, reply->text));
    }
    cursor = reply->items[0].text;
    for (const auto& key : reply->items[1].items) {
      if (out.set.size() < sample && !out.set.add(key.text))
        return std::unexpected(too_many(target->address));
    }
  } while (cursor != "0" && out.set.size() < sample);
  if (out.set.empty())
    return fail(ErrorKind::not_found,
                fmt::format("--redis: {} has no keys in database {}", target->address, db));
  return out;
}

}  // namespace

Result<Keys> load_keys(const KeySource& source) {
  if (!source.file.empty()) return read_file(source.file);
  if (!source.redis.empty()) return scan(source.redis, source.sample);
  return Keys{plan::compare::synthetic_keys(source.count), "made up"};
}

}  // namespace ringshift::cli::compare
