#include "discovery/http_ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/encoding.h"
#include "topology/document.h"

namespace ringshift::discovery {
namespace {

constexpr std::size_t kSaidBytesMax = 200;  // Of a server's own words in our messages.

std::vector<std::string> without_last_slash(std::vector<std::string> urls) {
  for (std::string& url : urls)
    while (url.ends_with('/')) url.pop_back();
  return urls;
}

}  // namespace

HttpAsk::HttpAsk(std::vector<std::string> urls, std::string ca_file)
    : urls_(without_last_slash(std::move(urls))), ca_file_(std::move(ca_file)) {}

Result<HttpReply> HttpAsk::ask(http::Call call, std::string_view path) {
  return run(std::move(call), path, [](std::string_view bytes, std::string& body) {
    body.append(bytes);
    return body.size() <= topology::kMaxTextBytes;
  });
}

Result<HttpReply> HttpAsk::follow(http::Call call, std::string_view path,
                                  const std::function<bool(std::string_view)>& on_line) {
  bool ended = false;
  auto reply = run(std::move(call), path, [&](std::string_view bytes, std::string& pending) {
    pending.append(bytes);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line(pending.data() + begin, end - begin);
      if (!line.empty() && !on_line(line)) {
        ended = true;
        return false;
      }
    }
    pending.erase(0, begin);
    return pending.size() <= topology::kMaxTextBytes;
  });
  if (ended) return HttpReply{200, {}};
  return reply;
}

Result<HttpReply> HttpAsk::run(http::Call call, std::string_view path,
                               const std::function<bool(std::string_view, std::string&)>& on_data) {
  HttpReply reply;
  bool refused = false;
  call.url = url() + std::string(path);
  call.tls.ca = call.url.starts_with("https://") ? ca_file_ : "";
  const auto status = stream_.run(
      call,
      [&](std::string_view bytes) {
        refused = !on_data(bytes, reply.body);
        return !refused;
      },
      true);
  if (!status) {
    next();
    Error error = status.error().error;
    // The client was written for the registry, and says so.
    if (const auto at = error.message.find(": is the registry running there"); at != std::string::npos)
      error.message.resize(at);
    return std::unexpected(std::move(error));
  }
  if (refused) {
    return fail(ErrorKind::overloaded,
                fmt::format("{} answered more than {} bytes in one piece", url(), topology::kMaxTextBytes));
  }
  reply.status = *status;
  return reply;
}

Error status_error(const HttpReply& reply, std::string_view url, std::string_view fix) {
  std::string said =
      base::printable(std::string_view(reply.body).substr(0, 4 * kSaidBytesMax), kSaidBytesMax);
  if (!said.empty()) said = ": " + said;
  if (reply.status == 401 || reply.status == 403)
    return {ErrorKind::denied, fmt::format("{} refuses us ({}){}; {}", url, reply.status, said, fix)};
  const ErrorKind kind = reply.status == 404   ? ErrorKind::not_found
                         : reply.status == 429 ? ErrorKind::overloaded
                                               : ErrorKind::retryable;
  return {kind, fmt::format("{} answered {}{}", url, reply.status, said)};
}

Result<std::string> read_secret(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr)
    return fail(ErrorKind::denied, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text(kSecretBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  const bool clean = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (text.empty() || text.size() > kSecretBytesMax || !clean) {
    return fail(ErrorKind::denied,
                fmt::format("{}: holds no single line of printable characters, at most {} bytes", path,
                            kSecretBytesMax));
  }
  return text;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace ringshift::discovery
