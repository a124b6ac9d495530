// Cilium's published maglev tables. What Cilium hashes for a backend changed with its versions, and a
// recording may have written any of it, or the bare address: so a table is computed with each label that
// Cilium is known to have had, and compared with the one that agrees best. Which one that was is said when
// some entry differs.
//
// A table is a list of M entries or run lengths, "2(5),3(1)": the entry, and how often it comes in a row.
#include "placement/peers/cilium.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "placement/maglev.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

using placement::peers::CiliumBackend;

std::unexpected<Error> invalid(std::string message) { return fail(ErrorKind::invalid, std::move(message)); }

// The first of `names` that the block, or else the file, has.
const Node* field(const Context& context, const Node& node, std::initializer_list<std::string_view> names) {
  for (const Node* map : {&node, &context.root}) {
    for (const std::string_view name : names)
      if (has(*map, name)) return map->find(name);
  }
  return nullptr;
}

// A number, or Cilium's own form: 12 bytes in base64, of which the first four are murmur's, big-endian.
Result<std::uint32_t> seed_of(const Node* node) {
  const std::string written = node == nullptr ? std::string(placement::peers::kCiliumSeed) : node->text;
  if (const auto number = base::parse_u64(written); number && *number <= 0xffffffff)
    return static_cast<std::uint32_t>(*number);
  const auto bytes = base::from_base64(written);
  if (!bytes || bytes->size() != 12) {
    return invalid(
        fmt::format("seed '{:.40}' is neither a number of 32 bits nor 12 bytes in base64", written));
  }
  std::uint32_t seed = 0;
  for (std::size_t i = 0; i < 4; ++i) seed = seed << 8 | static_cast<unsigned char>((*bytes)[i]);
  return seed;
}

Result<std::vector<std::uint64_t>> run_lengths(std::string_view text) {
  std::vector<std::uint64_t> out;
  while (!text.empty()) {
    const auto open = text.find('('), close = text.find(')');
    const bool whole = open != std::string_view::npos && close != std::string_view::npos && open < close;
    const auto entry = whole ? base::parse_u64(text.substr(0, open)) : std::nullopt;
    const auto times = whole ? base::parse_u64(text.substr(open + 1, close - open - 1)) : std::nullopt;
    if (!entry || !times || out.size() + *times > placement::peers::kMaxCiliumTable) {
      return invalid(fmt::format("'{:.40}' is no run 'ENTRY(TIMES)' of the table", text));
    }
    out.insert(out.end(), *times, *entry);
    text.remove_prefix(close + 1);
    while (text.starts_with(',') || text.starts_with(' ')) text.remove_prefix(1);
  }
  return out;
}

Result<std::vector<std::uint64_t>> numbers(const Node& node) {
  if (node.kind == Node::Kind::plain || node.kind == Node::Kind::quoted) return run_lengths(node.text);
  std::vector<std::uint64_t> out;
  for (const Node& item : node.items) {
    const auto number = base::parse_u64(item.text);
    if (!number) return invalid(fmt::format("entry {} '{:.40}' is no whole number", out.size(), item.text));
    out.push_back(*number);
  }
  return out;
}

struct Form {
  std::string_view name, before, after;
};
constexpr Form kForms[] = {{"as written", "", ""},
                           {"[ADDRESS/TCP,State:active]", "[", "/TCP,State:active]"},
                           {"[ADDRESS/UDP,State:active]", "[", "/UDP,State:active]"},
                           {"[ADDRESS,State:active]", "[", ",State:active]"},
                           {"ADDRESS/TCP", "", "/TCP"}};

struct Tables {
  std::vector<Server> servers;
  std::vector<std::uint64_t> ids;  // What the table calls each server.
  std::uint32_t size = 0, seed = 0;
};

Result<Tables> tables_of(const Context& context, const Node& node) {
  Tables out;
  std::string_view list = "hosts";
  for (const std::string_view name : {"labels", "backends", "hosts"})
    if (has(node, name)) list = name;
  auto servers = read_servers(node, list, {});
  if (!servers) return std::unexpected(servers.error());
  const Node& written = *node.find(list);
  for (std::size_t i = 0; i < servers->size(); ++i) {
    Server& server = (*servers)[i];
    const Node& item = written.items[i];
    const auto id = item.kind == Node::Kind::map ? whole(item, "id") : std::nullopt;
    out.ids.push_back(id.value_or(i));
    if (item.kind == Node::Kind::map) server.label = text(item, "label");
    if (item.kind == Node::Kind::plain || item.kind == Node::Kind::quoted) server.label = item.text;
    if (server.label.empty()) server.label = server.host_port();
    if (server.weight < 0 || server.weight > 65'535) return invalid("a weight of Cilium is one of 0..65535");
  }
  if (const Node* ids = node.find("ids"); ids != nullptr) {
    const auto named = numbers(*ids);
    if (!named || named->size() != out.ids.size()) return invalid("not one id for each backend");
    out.ids = *named;
  }
  out.servers = std::move(*servers);
  const Node* size = field(context, node, {"M", "m", "table_size", "size"});
  const auto entries = size == nullptr ? std::nullopt : base::parse_u64(size->text);
  if (!entries || *entries > placement::peers::kMaxCiliumTable ||
      !placement::is_prime(static_cast<std::uint32_t>(*entries)) || *entries < 3) {
    return invalid("no M: the table's size, a prime number up to 131071");
  }
  out.size = static_cast<std::uint32_t>(*entries);
  const auto seed = seed_of(field(context, node, {"seed", "hash_seed", "seed_murmur"}));
  if (!seed) return std::unexpected(seed.error());
  out.seed = *seed;
  if (out.servers.size() * out.size > 64'000'000)
    return invalid("more backends than a table of M can be for");
  return out;
}

std::vector<std::string> labels_of(const Tables& tables, const Form& form) {
  std::vector<std::string> labels;
  for (const Server& server : tables.servers)
    labels.push_back(std::string(form.before) + server.label + std::string(form.after));
  return labels;
}

std::vector<std::uint64_t> computed(const Tables& tables, const std::vector<std::string>& labels) {
  std::vector<CiliumBackend> backends;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    backends.push_back({labels[i], static_cast<std::uint64_t>(tables.servers[i].weight),
                        static_cast<placement::MemberIndex>(i)});
  }
  std::vector<std::uint64_t> out;
  for (const auto index : placement::peers::cilium_table(backends, tables.size, tables.seed))
    out.push_back(tables.ids[index]);
  return out;
}

std::string run_length_text(const std::vector<std::uint64_t>& table) {
  std::string out;
  for (std::size_t i = 0; i < table.size();) {
    std::size_t end = i;
    while (end < table.size() && table[end] == table[i]) ++end;
    out += fmt::format("{}{}({})", i == 0 ? "" : ",", table[i], end - i);
    i = end;
  }
  return out;
}

// How many of the recorded entries, and of each backend's number of them, one of our tables has.
std::size_t agreement(const std::vector<std::uint64_t>& recorded, const std::vector<std::uint64_t>& ours) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(recorded.size(), ours.size()); ++i)
    same += recorded[i] == ours[i] ? 1U : 0U;
  return same;
}

void compare_steps(const Place& block, const Tables& tables, const std::vector<std::string>& labels,
                   Comparison& comparison) {
  for (const std::string_view name : {"offsets", "skips"}) {
    const auto list = block.child(name);
    if (!list) continue;
    for (std::size_t i = 0; i < std::min(list->node.items.size(), labels.size()); ++i) {
      const auto ours = placement::peers::cilium_step(labels[i], tables.size, tables.seed);
      comparison.expect_at(list->at + step(i), fmt::format("{} {}", name, i),
                           base::parse_u64(list->node.items[i].text).value_or(~0ULL),
                           name == "offsets" ? ours.offset : ours.skip);
    }
  }
}

void compare_counts(const Place& block, const Tables& tables, const std::vector<std::uint64_t>& ours,
                    Comparison& comparison) {
  const auto counts = block.child("counts");
  for (std::size_t i = 0; counts && i < counts->node.items.size(); ++i) {
    const bool named = counts->node.kind == Node::Kind::map;
    const std::uint64_t nobody = ~std::uint64_t{0};
    const std::uint64_t id = named ? base::parse_u64(counts->node.names[i]).value_or(nobody)
                                   : (i < tables.ids.size() ? tables.ids[i] : nobody);
    comparison.expect_at(counts->child(i).at, fmt::format("entries of backend {}", id),
                         base::parse_u64(counts->node.items[i].text).value_or(~0ULL),
                         static_cast<std::uint64_t>(std::ranges::count(ours, id)));
  }
}

}  // namespace

void check_cilium(const Context& context, const Place& block, Case& result) {
  const auto tables = tables_of(context, block.node);
  if (!tables) {
    result.problem = tables.error().message;
    return;
  }
  const char* name = "table";
  for (const char* other : {"lookup_table", "expected"})
    if (has(block.node, other)) name = other;
  const std::optional<Place> place = block.child(name);
  const auto recorded = place ? numbers(place->node) : Result<std::vector<std::uint64_t>>{};
  if (!recorded || (place && recorded->size() != tables->size)) {
    result.problem =
        recorded ? fmt::format("the table has {} entries, and M is {}", recorded->size(), tables->size)
                 : recorded.error().message;
    return;
  }
  const Form* best = nullptr;
  std::vector<std::uint64_t> ours;
  for (const Form& form : kForms) {
    auto table = computed(*tables, labels_of(*tables, form));
    if (best != nullptr && agreement(*recorded, table) <= agreement(*recorded, ours)) continue;
    best = &form;
    ours = std::move(table);
  }
  Comparison comparison(result);
  for (std::size_t i = 0; place && i < ours.size(); ++i)
    comparison.expect(fmt::format("entry {}", i), (*recorded)[i], ours[i]);
  if (place && place->node.kind == Node::Kind::list) {
    std::string list;
    for (const auto id : ours) list += fmt::format("{}{}", list.empty() ? "" : ",", id);
    result.answers.push_back({place->at, '[' + list + ']'});
  } else if (place) {
    result.answers.push_back({place->at, '"' + run_length_text(ours) + '"'});
  }
  compare_counts(block, *tables, ours, comparison);
  compare_steps(block, *tables, labels_of(*tables, *best), comparison);
  if (result.asked == 0) result.problem = "it records neither a table nor counts, offsets or skips";
  if (!result.problem.empty() && result.asked != result.matched)
    result.problem += fmt::format(" (with the label {})", best->name);
}

}  // namespace ringshift::plan::vectors
