#include "admin/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "admin/json_text.h"

namespace ringshift::admin {
namespace {

std::string fresh_life() {
  std::random_device entropy;
  return fmt::format("{:08x}", entropy());
}

}  // namespace

Result<Topics> parse_topics(std::string_view text) {
  Topics topics;
  if (text.empty()) return ~topics;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    const auto* const found = std::ranges::find(kTopicNames, word);
    if (found == std::end(kTopicNames)) {
      return fail(ErrorKind::invalid, fmt::format("topics: '{}' is none of {}", word.substr(0, 60),
                                                  fmt::join(kTopicNames, ", ")));
    }
    topics.set(static_cast<std::size_t>(found - std::begin(kTopicNames)));
  }
  return topics;
}

Events::Events(const Model& model) : model_(model), seen_(model.state()), life_(fresh_life()) {}

std::string Events::event(std::string_view type, std::string_view data) {
  // JSON has no line breaks outside of strings, and strings have them escaped.
  return fmt::format("id: {}-{}\nevent: {}\ndata: {}\n\n", life_, ++last_id_, type, data);
}

std::string Events::snapshot(const State& state, Topics topics) const {
  Object out;
  for (std::size_t i = 0; i < kTopics; ++i) {
    if (!topics.test(i)) continue;
    switch (static_cast<Topic>(i)) {
      case Topic::overview:
        out.add("overview", *state.overview);
        break;
      case Topic::members:
        out.add("members", members_text(state));
        break;
      case Topic::routers:
        out.add("routers", *state.routers);
        break;
      case Topic::resize:
        out.add("resize", *state.resize);
        break;
      case Topic::log:
        out.add("log", log_text(*state.logs, "last").value_or(R"({"resize":"","entries":[]})"));
        break;
      case Topic::topology:
        out.add("topology", *state.topology);
        break;
      case Topic::series:
        out.add("series", series_text(state, 0));
        break;
      case Topic::mark:  // With the series.
        break;
      case Topic::hot_keys:
        out.add("hot_keys", *state.hot_keys);
        break;
      case Topic::registry:
        out.add("registry", *state.registry);
        break;
      case Topic::membership:
        out.add("membership", *state.membership);
        break;
      case Topic::audit: {
        std::vector<std::string> entries;
        for (auto it = state.audit->rbegin(); it != state.audit->rend() && entries.size() < kAuditKept; ++it)
          entries.push_back(audit_text(it->second));
        out.add("audit", Object().add("entries", list(entries)).text());
        break;
      }
    }
  }
  return out.text();
}

void Events::write(Client& client, std::string_view text, std::chrono::steady_clock::time_point now) {
  client.last_write = now;
  if (!client.stream->write(text)) client.stream.reset();
}

void Events::send_snapshot(Client& client, std::chrono::steady_clock::time_point now) {
  client.settled = false;
  write(client, event("snapshot", snapshot(*seen_, client.topics)), now);
}

bool Events::open(http::Exchange& exchange, Topics topics) {
  pump();  // So that those who left do not count, and the snapshot is of now.
  if (streams_.size() >= kStreamsMax) return false;
  exchange.add_header("Cache-Control", "no-store");
  exchange.add_header("X-Accel-Buffering", "no");
  const auto now = std::chrono::steady_clock::now();
  Client& client = streams_.emplace_back(Client{exchange.stream("text/event-stream"), topics, now});
  write(client, "retry: 2000\n\n", now);
  if (client.stream) send_snapshot(client, now);
  return true;
}

void Events::pump(std::chrono::steady_clock::time_point now) {
  const auto states = model_.since(seen_->number);
  std::vector<std::pair<std::size_t, std::string>> news;
  bool anew = !states.has_value();
  if (states) {
    for (const auto& state : *states) {
      anew = anew || state->fresh_start;
      for (const News& one : state->news)
        news.emplace_back(static_cast<std::size_t>(one.topic),
                          event(kTopicNames[static_cast<std::size_t>(one.topic)], one.data));
    }
    if (!states->empty()) seen_ = states->back();
  } else {
    seen_ = model_.state();
  }
  for (auto client = streams_.begin(); client != streams_.end();) {
    http::Stream* stream = client->stream.get();
    const std::size_t backlog = stream == nullptr ? 0 : stream->backlog();
    client->settled = client->settled || backlog == 0;
    if (stream == nullptr || stream->closed() || backlog > (client->settled ? kBacklogMax : kSnapshotMax)) {
      client = streams_.erase(client);
      continue;
    }
    if (anew) {
      send_snapshot(*client, now);
    } else {
      std::string text;
      for (const auto& [topic, event_text] : news) {
        if (client->topics.test(topic)) text += event_text;
      }
      if (!text.empty()) {
        write(*client, text, now);
      } else if (now - client->last_write >= kHeartbeat) {
        write(*client, ": still here\n\n", now);
      }
    }
    ++client;
  }
}

}  // namespace ringshift::admin
