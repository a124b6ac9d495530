#include "admin/member_poll.h"

#include <algorithm>

#include "base/encoding.h"
#include "resize/controls.h"
#include "resize/members.h"
#include "resize/observer.h"
#include "transfer/steps.h"

namespace ringshift::admin {
namespace {

using Clock = std::chrono::steady_clock;

// "db0:keys=17,expires=0": the keys of database 0.
std::uint64_t keys_in(std::string_view info) {
  const std::string database = resize::info_field(info, "db0");
  constexpr std::string_view kKeys = "keys=";
  if (!database.starts_with(kKeys)) return 0;
  const std::size_t end = database.find(',');
  return base::parse_u64(std::string_view(database).substr(kKeys.size(), end - kKeys.size())).value_or(0);
}

MemberInfo ask(resize::Members& members, const topology::Member& member, const MemberInfo* before) {
  MemberInfo out;
  const auto info = members.call(member, {"INFO"});
  const auto stamp = info ? members.call(member, {"EXISTS", transfer::kStampKey}) : info;
  if (!stamp) {
    out.error = stamp.error().message;
  } else {
    out = parse_member_info(info->text, stamp->integer == 1);
  }
  out.at_ms = resize::unix_now();
  const bool two_looks = before != nullptr && before->error.empty() && out.error.empty();
  if (two_looks && before->evicted && out.evicted && *out.evicted >= *before->evicted &&
      out.at_ms > before->at_ms) {
    out.evicted_per_second = static_cast<double>(*out.evicted - *before->evicted) * 1000 /
                             static_cast<double>(out.at_ms - before->at_ms);
  }
  return out;
}

}  // namespace

MemberInfo parse_member_info(std::string_view info, bool has_stamp) {
  MemberInfo out;
  const auto count = [&](std::string_view field) { return base::parse_u64(resize::info_field(info, field)); };
  out.server_version = resize::info_field(info, "redis_version");
  out.role = resize::info_field(info, "role");
  const std::uint64_t keys = keys_in(info);
  out.keys = keys - (has_stamp && keys > 0 ? 1 : 0);  // Ours is none of the users'.
  out.memory_used = count("used_memory");
  out.memory_max = count("maxmemory");
  out.clients = count("connected_clients");
  out.uptime_seconds = count("uptime_in_seconds");
  out.evicted = count("evicted_keys");
  if (const auto ops = count("instantaneous_ops_per_sec")) out.ops_per_second = static_cast<double>(*ops);
  return out;
}

MemberPoll::MemberPoll(std::shared_ptr<const backend::MemberAccess> access) : access_(std::move(access)) {
  for (std::size_t part = 0; part < kThreads; ++part) threads_.emplace_back([this, part] { run(part); });
}

MemberPoll::~MemberPoll() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MemberPoll::set_members(std::vector<topology::Member> members) {
  {
    const std::lock_guard lock(mutex_);
    if (members == members_) return;
    members_ = std::move(members);
    ++changes_;
    std::erase_if(infos_, [&](const auto& entry) {
      return std::ranges::find(members_, entry.first, &topology::Member::id) == members_.end();
    });
  }
  wake_.notify_all();
}

MemberPoll::Infos MemberPoll::infos() const {
  const std::lock_guard lock(mutex_);
  return infos_;
}

std::vector<topology::Member> MemberPoll::part_of(std::size_t part) const {
  std::vector<topology::Member> mine;
  for (std::size_t i = part; i < members_.size(); i += kThreads) mine.push_back(members_[i]);
  return mine;
}

void MemberPoll::run(std::size_t part) {
  resize::Members connections(std::string(resize::kObserverName), access_);
  std::map<std::string, Clock::time_point> due;
  std::vector<topology::Member> mine;
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(500), [&] { return stopping_ || changes_ != seen; });
      if (stopping_) return;
      if (changes_ != seen) {
        seen = changes_;
        mine = part_of(part);
        connections.hang_up();  // To members that left, too.
        std::erase_if(due, [&](const auto& entry) {
          return std::ranges::find(mine, entry.first, &topology::Member::id) == mine.end();
        });
      }
    }
    for (const topology::Member& member : mine) {
      if (Clock::now() < due[member.id]) continue;
      std::shared_ptr<const MemberInfo> before;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_ || changes_ != seen) break;
        if (const auto found = infos_.find(member.id); found != infos_.end()) before = found->second;
      }
      const auto now = std::make_shared<const MemberInfo>(ask(connections, member, before.get()));
      due[member.id] = Clock::now() + (now->error.empty() ? kEvery : kAfterFailure);
      const std::lock_guard lock(mutex_);
      if (changes_ == seen) infos_[member.id] = now;
    }
    if (mine.size() > kConnectionsKept) connections.hang_up();
  }
}

}  // namespace ringshift::admin
