#include "cli/access_client.h"

#include <fmt/format.h>

#include "coord/etcd_access.h"
#include "coord/wire.h"
#include "http/client.h"

namespace ringshift::cli {
namespace {

constexpr std::chrono::seconds kPatience{30};  // A backup is copied before its first byte comes.
constexpr std::size_t kErrorBytesMax = 64U << 10;

Result<std::vector<http::Call>> calls_to(const RegistryFlags& flags, std::string_view path,
                                         std::string body) {
  const Result<coord::Options> options = flags.options();
  if (!options) return std::unexpected(options.error());
  if (auto usable = coord::connect(*options); !usable) return std::unexpected(usable.error());
  std::vector<http::Call> calls;
  coord::EtcdAccess access(options->credentials);
  http::Client client;
  for (const std::string& endpoint : options->endpoints) {
    if (!endpoint.starts_with("http")) {
      return fail(ErrorKind::invalid,
                  fmt::format("{} is not the embedded registry: only that one has tokens, an audit "
                              "and backups of ours; its own tools have them",
                              endpoint));
    }
    http::Call call;
    const std::string base = endpoint.substr(0, endpoint.find_last_not_of('/') + 1);
    auto headers = access.headers(base, kPatience, [&](http::Call asked) {
      asked.tls = options->tls;
      return client.send(asked);
    });
    if (!headers) return std::unexpected(headers.error().error);
    call.url = base + std::string(path);
    call.headers = *std::move(headers);
    call.body = body;
    call.timeout = kPatience;
    call.tls = options->tls;
    calls.push_back(std::move(call));
  }
  return calls;
}

Error answer_error(int status, std::string_view body, const std::string& url) {
  if (status == 404 && !body.starts_with('{')) {
    return {ErrorKind::invalid,
            fmt::format("{} answers 404: this is not the embedded registry, or an older one", url)};
  }
  return coord::read_error(status, body, url);
}

}  // namespace

Result<std::string> ask_registry(const RegistryFlags& flags, std::string_view path, std::string body) {
  const auto calls = calls_to(flags, path, std::move(body));
  if (!calls) return std::unexpected(calls.error());
  http::Client client;
  Error last;
  for (const http::Call& call : *calls) {
    auto answer = client.send(call);
    if (answer && answer->status == 200) return std::move(answer->body);
    last = answer ? answer_error(answer->status, answer->body, call.url) : answer.error().error;
    if (answer || !answer.error().unsent) break;
  }
  return std::unexpected(std::move(last));
}

Status stream_from_registry(const RegistryFlags& flags, std::string_view path, std::string body,
                            std::chrono::seconds patience,
                            const std::function<bool(std::string_view)>& take) {
  const auto calls = calls_to(flags, path, std::move(body));
  if (!calls) return std::unexpected(calls.error());
  const http::Call& call = calls->front();
  http::StreamCall stream;
  std::string beginning;  // Which is the whole, when it is an error.
  bool taken = true, silent = false;
  stream.on_silence(patience, [&] { return !(silent = true); });
  const auto status = stream.run(call, [&](std::string_view bytes) {
    if (beginning.size() < kErrorBytesMax)
      beginning.append(bytes.substr(0, kErrorBytesMax - beginning.size()));
    taken = take(bytes);
    return taken;
  });
  if (silent) {
    return fail(
        ErrorKind::retryable,
        fmt::format("{} has said nothing for {} s: is it well? A large database takes its time: --patience "
                    "waits longer",
                    call.url, patience.count()));
  }
  if (!status) return std::unexpected(status.error().error);
  if (!taken) return fail(ErrorKind::denied, "the answer could not be taken");
  if (*status != 200) return std::unexpected(answer_error(*status, beginning, call.url));
  return {};
}

}  // namespace ringshift::cli
