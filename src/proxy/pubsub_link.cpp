#include "proxy/pubsub_link.h"

#include <charconv>

#include "protocol/resp/value.h"

namespace ringshift::proxy {

std::string_view pubsub_verb(ChannelKind kind, bool subscribe) noexcept {
  static constexpr std::string_view kVerbs[kChannelKinds][2] = {
      {"unsubscribe", "subscribe"}, {"punsubscribe", "psubscribe"}, {"sunsubscribe", "ssubscribe"}};
  return kVerbs[static_cast<std::size_t>(kind)][subscribe ? 1 : 0];
}

PushWords read_push(std::string_view raw) noexcept {
  // A line without its end, which is taken off `raw`.
  const auto line = [&raw](char type) -> std::string_view {
    const std::size_t end = raw.find("\r\n");
    if (end == std::string_view::npos || end == 0 || raw[0] != type) return {};
    const std::string_view text = raw.substr(1, end - 1);
    raw.remove_prefix(end + 2);
    return text;
  };
  const auto number = [](std::string_view text) -> std::size_t {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? value : std::string_view::npos;
  };
  PushWords words;
  const std::size_t count = number(line('>'));
  if (count == 0 || count > words.word.size()) return {};
  for (std::size_t i = 0; i < count; ++i) {
    if (raw.starts_with(':')) {
      words.word[i] = line(':');
      continue;
    }
    const std::size_t size = number(line('$'));
    if (raw.size() < 2 || size > raw.size() - 2) return {};
    words.word[i] = raw.substr(0, size);
    raw.remove_prefix(size + 2);
  }
  words.count = count;
  return words;
}

void PubsubHub::Link::send(ChannelKind kind, bool subscribe, const std::string& name) {
  const std::string_view next = pubsub_verb(kind, subscribe);
  if (next != verb || names.size() >= kNamesAtOnce) send_unsent();
  verb = next;
  names.push_back(name);
  if (listed) return;
  listed = true;
  hub.unsent_.push_back(this);
}

void PubsubHub::Link::send_unsent() {
  if (!names.empty() && connection != nullptr) {
    std::vector<std::string_view> words = {verb};
    words.insert(words.end(), names.begin(), names.end());
    std::string bytes;
    protocol::resp::append_command(bytes, words);
    connection->send_for_pushes(bytes);
  }
  names.clear();
}

void PubsubHub::Link::disconnect() {
  connection.reset();
  ready = false;
  ping_sent.reset();
  names.clear();
}

}  // namespace ringshift::proxy
