// The worker's bulk work: filling the cache before the load, and reading everything back after it.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "drill/worker.h"

namespace ringshift::drill {
namespace {

constexpr std::size_t kBulkPipeline = 128;
constexpr int kBulkTries = 20;
constexpr std::chrono::milliseconds kBulkRetryAfter{100};

}  // namespace

Status Worker::fill() {
  const double absent = absent_share(shared_.options);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<std::size_t> keys;
  for (std::size_t key = 0; key < ledger_.size(); ++key) {
    if (unit(random_) >= absent) keys.push_back(key);
  }
  shared_.progress.fetch_add(ledger_.size() - keys.size());
  std::string last_error;
  int tries = 0;
  for (std::size_t at = 0; at < keys.size() && !shared_.cancelled.load();) {
    const std::size_t end = std::min(at + kBulkPipeline, keys.size());
    // A fill is repeated until it is acknowledged as a whole: it writes the same values each time.
    bool filled = connect();
    if (filled) {
      for (std::size_t i = at; i < end; ++i) {
        const std::uint64_t id = id_of(keys[i]);
        client_->append({"SET", object_key(id), cache_value(id, {1, object_body(id)})});
      }
      bool alive = client_->flush().has_value();
      for (std::size_t i = at; i < end && alive; ++i) {
        const Result<Client::Value> reply = client_->read();
        alive = reply.has_value();
        if (!reply || reply->is_error()) {
          filled = false;
          last_error = reply ? reply->text : reply.error().message;
        }
      }
      filled = filled && alive;
      if (!alive) client_.reset();
    }
    if (!filled) {
      if (++tries == kBulkTries) {
        return fail(ErrorKind::retryable,
                    fmt::format("cannot fill the cache: {}",
                                last_error.empty() ? "no connection to the proxy" : last_error));
      }
      std::this_thread::sleep_for(kBulkRetryAfter);
      continue;
    }
    for (std::size_t i = at; i < end; ++i) ledger_.set_acknowledged(keys[i]);
    shared_.acknowledged.fetch_add(end - at, std::memory_order_relaxed);
    shared_.progress.fetch_add(end - at);
    at = end;
  }
  return {};
}

Status Worker::verify() {
  for (std::size_t at = 0; at < ledger_.size() && !shared_.cancelled.load(); at += kBulkPipeline) {
    const std::size_t end = std::min(at + kBulkPipeline, ledger_.size());
    for (int attempt = 0;; ++attempt) {
      const Status read = verify_range(at, end);
      if (read) break;
      if (attempt == kBulkTries) return read;
      std::this_thread::sleep_for(kBulkRetryAfter);
    }
    shared_.progress.fetch_add(end - at);
  }
  return {};
}

// Judges nothing unless every answer came, so that a second attempt judges no key twice.
Status Worker::verify_range(std::size_t first, std::size_t last) {
  if (!connect()) return fail(ErrorKind::retryable, "no connection to the proxy");
  for (std::size_t key = first; key < last; ++key) client_->append({"GET", object_key(id_of(key))});
  std::vector<Client::Value> values;
  Status sent = client_->flush();
  for (std::size_t key = first; key < last && sent; ++key) {
    Result<Client::Value> value = client_->read();
    if (value) {
      values.push_back(std::move(*value));
    } else {
      sent = std::unexpected(value.error());
    }
  }
  if (!sent) {
    client_.reset();
    return sent;
  }
  for (const Client::Value& value : values) {
    if (value.is_error()) return fail(ErrorKind::retryable, value.text);
  }
  for (std::size_t key = first; key < last; ++key) {
    judge_object(key, values[key - first]);
  }
  return {};
}

}  // namespace ringshift::drill
