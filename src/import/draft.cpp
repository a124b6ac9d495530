#include "import/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/encoding.h"
#include "placement/peers/catalog.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::importing {
namespace {

using topology::shown;

constexpr std::size_t kMaxIdBytes = 96;  // Leaves room for a number after it.

bool id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == ':';
}

// `name` with what an id may not have as dashes; none at its ends and no two in a row.
std::string as_id(std::string_view name) {
  std::string id;
  for (const char c : name) {
    if (id.size() == kMaxIdBytes) break;
    if (id_character(c)) {
      id += c;
    } else if (!id.empty() && !id.ends_with('-')) {
      id += '-';
    }
  }
  while (id.ends_with('-') && id != name) id.pop_back();
  return id;
}

std::string id_of_address(std::string_view address) {
  if (address.starts_with("unix:")) return as_id("unix-" + std::string(address.substr(5)));
  std::string plain(address);
  std::erase_if(plain, [](char c) { return c == '[' || c == ']'; });
  return as_id(plain);
}

// Every member gets an id of its own: its name's, else its address's.
void name_members(Draft& draft) {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> repeats;  // Of an id: how often it was wanted.
  for (std::size_t i = 0; i < draft.spec.members.size(); ++i) {
    topology::Member& member = draft.spec.members[i];
    const std::string name = member.id;
    std::string id = as_id(name);
    if (id.empty()) id = id_of_address(member.address);
    if (id.empty()) id = "member";
    const std::string base = id;
    while (!taken.insert(id).second)
      id = fmt::format("{}-{}", base, ++repeats.try_emplace(base, 1).first->second);
    member.id = id;
    if (!name.empty() && id != name) {
      draft.note(draft.servers[i], name,
                 fmt::format("the member's id is {}: ids have letters, digits and - _ . : only, and each one "
                             "is unique",
                             id));
    }
  }
}

// A slot table names its members by their positions until they have ids.
void name_owners(Draft& draft) {
  for (topology::SlotRange& range : draft.spec.placement.slots) {
    const auto index = base::parse_u64(range.member);
    if (index && *index < draft.spec.members.size()) range.member = draft.spec.members[*index].id;
  }
}

// The mark of the nearest thing around `path`.
Mark mark_of(const Draft& draft, std::string_view path) {
  constexpr std::string_view kMembers = "members[";
  if (path.starts_with(kMembers)) {
    std::size_t index = 0;
    const char* begin = path.data() + kMembers.size();
    std::from_chars(begin, path.data() + path.size(), index);
    return index < draft.servers.size() ? draft.servers[index] : draft.mark;
  }
  const auto found = draft.marks.find(path);
  return found == draft.marks.end() ? draft.mark : found->second;
}

}  // namespace

std::unexpected<Error> refuse(std::string_view place, Mark mark, std::string_view message) {
  return fail(ErrorKind::invalid, fmt::format("{}:{}:{}: {}", place, mark.line, mark.column, message));
}

void Draft::protocol(topology::Protocol protocol) {
  spec.protocol = protocol;
  spec.consistency =
      protocol == topology::Protocol::redis ? topology::Consistency::strict : topology::Consistency::cache;
}

topology::Placement peer_placement(std::string_view algorithm) {
  topology::Placement placement;
  placement.algorithm = algorithm;
  const auto* peer = placement::peers::find_peer(algorithm);
  const auto* hash = peer == nullptr ? nullptr : peer->find("hash");
  placement.hash = hash == nullptr ? "" : std::string(hash->fallback);
  return placement;
}

std::string address_of(std::string_view host, std::string_view port) {
  const bool bare_v6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return bare_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string plain_port(std::string_view text) {
  const auto port = base::parse_u64(text);
  constexpr std::uint64_t kMaxPort = 65'535;
  return text.size() <= 8 && port && *port >= 1 && *port <= kMaxPort ? std::to_string(*port) : "";
}

Result<Imported> finish(Draft draft, const Request& request) {
  draft.spec.cluster = request.cluster.empty() ? as_id(draft.source) : request.cluster;
  if (draft.spec.cluster.empty()) draft.spec.cluster = "cache";
  if (request.cluster.empty() && draft.spec.cluster != draft.source) {
    draft.note(draft.mark, draft.source,
               fmt::format("the cluster is called {}; --cluster names it otherwise", draft.spec.cluster));
  }
  if (draft.spec.members.empty()) {
    return refuse(request.place, draft.mark,
                  fmt::format("{} has no server: a cluster needs at least one", shown(draft.source)));
  }
  if (draft.spec.members.size() > topology::kMaxMembers) {
    return refuse(request.place, draft.mark,
                  fmt::format("{} servers are more than the {} that one cluster may have",
                              draft.spec.members.size(), topology::kMaxMembers));
  }
  name_members(draft);
  name_owners(draft);
  if (draft.spec.protocol == topology::Protocol::memcached) {
    draft.note(draft.mark, draft.source, std::string(kNoMemcachedYet));
  }
  if (draft.notes.size() > kMaxNotes) {
    return refuse(
        request.place, draft.notes[kMaxNotes].mark,
        fmt::format("more than {} things could not be carried over: is it the right file?", kMaxNotes));
  }
  if (const auto problem = topology::check_spec(draft.spec)) {
    return refuse(request.place, mark_of(draft, problem->path),
                  fmt::format("{}: {}: {}", shown(draft.source), problem->path, problem->message));
  }
  std::ranges::stable_sort(draft.notes, {}, [](const Note& note) { return note.mark.line; });
  return Imported{std::move(draft.source), std::move(draft.spec), std::move(draft.notes)};
}

}  // namespace ringshift::importing
