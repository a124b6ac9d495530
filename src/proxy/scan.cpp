#include "proxy/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "protocol/resp/value.h"
#include "proxy/key_set.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::CommandParser;
using protocol::resp::Value;

namespace {

constexpr std::string_view kBadCursor = "-ERR invalid cursor";

// As Redis reads a cursor: with strtoul.
std::optional<std::uint64_t> parse_cursor(std::string_view argument) {
  const std::string text(argument);
  if (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const std::uint64_t cursor = std::strtoull(text.c_str(), &end, 10);
  if (*end != '\0' || errno == ERANGE) return std::nullopt;
  return cursor;
}

}  // namespace

void ScanStep::run(Session& session, const CommandParser& arguments) {
  const auto cursor = parse_cursor(arguments.argument(1));
  if (!cursor) {
    session.refuse(kBadCursor);
    return;
  }
  std::vector<std::string_view> words;
  for (std::size_t i = 2; i < arguments.argument_count(); ++i) words.push_back(arguments.argument(i));
  auto scan = session.worker().scans().find(*cursor, session.worker().loop().now());
  const ScanPosition position = scan->position_of(*cursor);
  std::string options;
  for (const std::string_view word : words) append_bulk(options, word);
  const std::uint64_t number = session.take_number();
  auto owned = std::make_unique<ScanStep>(session, number, std::move(scan), position, std::move(options),
                                          words.size());
  ScanStep& step = *owned;
  session.hold_task(number, std::move(owned));
  step.start();
}

ScanStep::ScanStep(Session& session, std::uint64_t number, std::shared_ptr<Scan> scan, ScanPosition position,
                   std::string options, std::size_t option_count)
    : session_(session),
      number_(number),
      resp_(session.resp()),
      scan_(std::move(scan)),
      position_(position),
      options_(std::move(options)),
      option_count_(option_count) {}

void ScanStep::start() {
  look();
  const std::size_t places = scan_->places(views_);
  if (places > Scan::kMaxPlaces) {
    session_.task_done(number_, fmt::format("-ERR SCAN serves at most {} members\r\n", Scan::kMaxPlaces));
  } else if (position_.place >= places) {  // No cursor of ours, or of a time when there were more members.
    session_.task_done(number_, std::string(kBadCursor) + "\r\n");
  } else if (!ask()) {
    finish();
  }
}

void ScanStep::look() {
  views_.clear();
  for (const auto& upstream : session_.worker().upstreams_in(session_.database()))
    views_.push_back(upstream->shared_snapshot());
}

// False when the scan is over.
bool ScanStep::ask() {
  look();
  const auto all = session_.worker().upstreams_in(session_.database());
  const auto reached = session_.reach().upstreams();
  std::optional<Scan::Target> target;
  while (true) {
    target = scan_->next(position_, views_);
    if (!target) return false;
    from_ = all[target->cluster].get();
    if (std::ranges::find(reached, from_) != reached.end()) break;
    // Places are numbered over all clusters, so that a cursor outlives a change of routes; but nobody waits
    // for, or is told the errors of, members that he does not reach.
    position_.member_cursor = 0;
    ++position_.place;
  }
  const std::string cursor = std::to_string(position_.member_cursor);
  std::string command;
  append_header(command, '*', 2 + option_count_);
  append_bulk(command, "SCAN");
  append_bulk(command, cursor);
  command += options_;
  from_->pool().at(target->member, resp_).send(command, *this, 0, backend::Traffic::other);
  return true;
}

void ScanStep::on_reply(std::uint64_t, std::string_view raw) {
  if (raw.starts_with('-')) {
    session_.worker().counters().add(telemetry::Counter::errors_member);
    return session_.task_done(number_, raw);
  }
  auto decoded = protocol::resp::decode(raw);
  const bool fits = decoded && *decoded && (*decoded)->value.items.size() == 2;
  const auto cursor = fits ? parse_cursor((*decoded)->value.items[0].text) : std::nullopt;
  if (!cursor) return session_.task_done(number_, kBadReply);
  if (*cursor > ScanPosition::kMaxMemberCursor) {
    return session_.task_done(number_,
                              "-ERR a member's SCAN cursor is too large to be part of a common one\r\n");
  }
  const Reach& reach = session_.reach();
  for (Value& item : (*decoded)->value.items[1].items) {
    // What this client could not ask for, because its routes lead elsewhere, it does not learn of either.
    if (reach.upstream_of(item.text) != from_) continue;
    if (!item.text.starts_with(kReservedPrefix)) keys_.push_back(std::move(item.text));
  }
  scan_->take(position_, *cursor, keys_);
  position_.member_cursor = *cursor;
  if (*cursor == 0) {
    ++position_.place;
    if (keys_.empty() && --members_left_ != 0 && ask()) return;
  }
  finish();
}

void ScanStep::on_failure(std::uint64_t, const backend::Failure& failure) {
  session_.count_failure(failure.kind);
  session_.task_done(number_, failure_reply(failure));
}

void ScanStep::finish() {
  look();
  std::string out;
  append_header(out, '*', 2);
  append_bulk(out, std::to_string(scan_->answer(position_, views_)));
  append_header(out, '*', keys_.size());
  for (const std::string& key : keys_) append_bulk(out, key);
  session_.task_done(number_, out);  // Destroys this.
}

}  // namespace ringshift::proxy
