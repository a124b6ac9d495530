// A pool while it is read: what the importers share. They fill a Draft; finish() makes a spec of it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"

namespace ringshift::importing {

// "place:line:column: message"
[[nodiscard]] std::unexpected<Error> refuse(std::string_view place, Mark mark, std::string_view message);

struct Draft {
  std::string source;
  Mark mark;            // Of the pool's name.
  topology::Spec spec;  // A member's id is the source's name for it, "" when it has none; finish() makes ids.
  std::vector<Mark> servers;                       // Of spec.members, one each.
  std::map<std::string, Mark, std::less<>> marks;  // Of "placement.hash" and such, for errors about them.
  std::vector<Note> notes;

  void note(Mark at, std::string_view words, std::string text) {
    if (notes.size() <= kMaxNotes) notes.push_back({at, std::string(words), std::move(text)});
  }
  void member(Mark at, topology::Member member) {
    servers.push_back(at);
    spec.members.push_back(std::move(member));
  }
  // Members' protocol, with the consistency that it can keep.
  void protocol(topology::Protocol protocol);
};

// Another program's placement with all its options at their defaults.
[[nodiscard]] topology::Placement peer_placement(std::string_view algorithm);

// Ids, the cluster's name, bounds and validation.
[[nodiscard]] Result<Imported> finish(Draft draft, const Request& request);

// A host and port as our address: brackets around IPv6.
[[nodiscard]] std::string address_of(std::string_view host, std::string_view port);
// A port from 1 to 65535 without zeros before it; "" when it is none.
[[nodiscard]] std::string plain_port(std::string_view text);

inline constexpr std::string_view kNoMemcachedYet =
    "the spec says protocol memcached: route and topology diff answer for it, but a proxy that speaks "
    "memcached is not part of this version";

using Drafts = Result<std::vector<Draft>>;
[[nodiscard]] Drafts read_nutcracker(std::string_view text, const Request& request);
[[nodiscard]] Drafts read_libmemcached(std::string_view text, const Request& request);
[[nodiscard]] Drafts read_nginx(std::string_view text, const Request& request);
[[nodiscard]] Drafts read_haproxy(std::string_view text, const Request& request);
[[nodiscard]] Drafts read_redis_cluster(std::string_view text, const Request& request);

}  // namespace ringshift::importing
