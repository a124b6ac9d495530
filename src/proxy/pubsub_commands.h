// PUBLISH and SPUBLISH, and what PUBSUB tells of all members.
//
// A published message goes to its channel's member over the connection that all commands of the worker share,
// so after what its client sent that member before. The answer counts clients, as far as they are this
// proxy's; each worker of another proxy counts as one.
// The worker's thread. A member that fails makes the whole answer an error.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proxy/pubsub_counts.h"
#include "proxy/task.h"
#include "ringshift/snapshot.h"

namespace ringshift::proxy {

class Session;
class Upstream;

// Where a message is published: where the channel's clients surely listen. While a resize holds a channel
// that is the old member, so that a resize may be called off there.
[[nodiscard]] topology::MemberIndex publish_member(const topology::Snapshot& snapshot,
                                                   std::string_view channel);

class Publish final : public Task {
 public:
  Publish(Session& session, std::uint64_t number, const Upstream& upstream, ChannelKind kind,
          std::string_view channel)
      : session_(session), number_(number), upstream_(upstream), kind_(kind), channel_(channel) {}

  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  Session& session_;
  const std::uint64_t number_;
  const Upstream& upstream_;
  const ChannelKind kind_;
  const std::string channel_;
};

// PUBSUB CHANNELS, NUMSUB, NUMPAT, SHARDCHANNELS, SHARDNUMSUB.
class PubsubQuery final : public Task {
 public:
  enum class What : std::uint8_t { channels, numbers, patterns };
  PubsubQuery(Session& session, std::uint64_t number, What what, ChannelKind kind,
              std::vector<std::string> names);

  void start(std::string_view command);  // After it is in its slot.
  void on_reply(std::uint64_t tag, std::string_view raw) override;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override;

 private:
  void take(const Upstream& from, std::string_view raw);
  void finish();

  Session& session_;
  const std::uint64_t number_;
  const What what_;
  const ChannelKind kind_;
  const std::vector<std::string> names_;  // NUMSUB's.
  std::vector<std::map<const Upstream*, std::int64_t>>
      at_members_;  // By name: the most that any member says.
  std::set<std::string> channels_;
  std::int64_t patterns_ = 0;
  std::vector<const Upstream*> asked_;
  std::size_t waiting_ = 0;
  std::string error_;
};

}  // namespace ringshift::proxy
