#include "proxy/random_key.h"

#include "protocol/resp/value.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::Value;

namespace {

constexpr std::string_view kSize = "return redis.call('dbsize') - redis.call('exists', 'rs:stamp')";
// A bounded number of tries: a member may hold little but reserved keys.
constexpr std::string_view kDraw =
    "for i = 1, 100 do local key = redis.call('randomkey') "
    "if not key then return false end "
    "if string.sub(key, 1, 3) ~= 'rs:' then return key end end "
    "return false";

std::uint64_t random_below(std::uint64_t bound) {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine);
}

}  // namespace

void RandomKey::run(Session& session) {
  const std::uint64_t number = session.take_number();
  auto owned = std::make_unique<RandomKey>(session, number);
  RandomKey& random = *owned;
  session.hold_task(number, std::move(owned));
  random.start();
}

RandomKey::RandomKey(Session& session, std::uint64_t number)
    : session_(session), number_(number), resp_(session.resp()) {}

void RandomKey::start() {
  std::string command;
  protocol::resp::append_command(command, {"EVAL_RO", kSize, "0"});
  for (Upstream* upstream : session_.reach().upstreams()) {
    for (const topology::Member& member : upstream->snapshot().members()) {
      members_.push_back({upstream, member.id});
    }
  }
  waiting_ = members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Upstream& upstream = *members_[i].upstream;
    upstream.pool()
        .at(upstream.snapshot().index_of(members_[i].id), resp_)
        .send(command, *this, i, backend::Traffic::other);
  }
}

void RandomKey::on_reply(std::uint64_t tag, std::string_view raw) {
  if (raw.starts_with('-')) {
    session_.worker().counters().add(telemetry::Counter::errors_member);
    if (error_.empty()) error_ = raw;
  } else if (sized_) {
    const auto decoded = protocol::resp::decode(raw);
    if (!decoded || !*decoded) return finish(kBadReply);
    const Reach& reach = session_.reach();
    const std::string& key = (*decoded)->value.text;
    // A key that this client's routes do not lead to counts as none.
    const bool hidden = !reach.whole() && reach.upstream_of(key) != members_[drawn_].upstream;
    if (!(*decoded)->value.is_null() && !hidden) return finish(raw);
    members_[drawn_].size = 0;  // It has none, after all.
    return draw();
  } else {
    const auto decoded = protocol::resp::decode(raw);
    if (decoded && *decoded && (*decoded)->value.type == Value::Type::integer) {
      members_[tag].size = static_cast<std::uint64_t>(std::max<std::int64_t>((*decoded)->value.integer, 0));
    } else if (error_.empty()) {
      error_ = kBadReply;
    }
  }
  if (--waiting_ != 0) return;
  if (!error_.empty()) return finish(error_);
  sized_ = true;
  draw();
}

void RandomKey::draw() {
  std::uint64_t all = 0;
  for (const Member& member : members_) all += member.size;
  if (all == 0) {
    std::string nil;
    append_null(nil, resp_);
    return finish(nil);
  }
  std::uint64_t at = random_below(all);
  for (drawn_ = 0; at >= members_[drawn_].size; ++drawn_) at -= members_[drawn_].size;
  Member& member = members_[drawn_];
  const topology::MemberIndex index = member.upstream->snapshot().index_of(member.id);
  if (index == topology::kNoMember) {  // It has left meanwhile.
    member.size = 0;
    return draw();
  }
  std::string command;
  protocol::resp::append_command(command, {"EVAL_RO", kDraw, "0"});
  waiting_ = 1;
  member.upstream->pool().at(index, resp_).send(command, *this, drawn_, backend::Traffic::other);
}

void RandomKey::on_failure(std::uint64_t, const backend::Failure& failure) {
  session_.count_failure(failure.kind);
  if (error_.empty()) error_ = failure_reply(failure);
  if (--waiting_ == 0) finish(error_);
}

void RandomKey::finish(std::string_view answer) { session_.task_done(number_, answer); }

}  // namespace ringshift::proxy
