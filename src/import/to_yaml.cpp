// A spec as YAML for people: one member a line, and only what differs from the defaults.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "import/import.h"
#include "placement/peers/catalog.h"

namespace ringshift::importing {
namespace {

using topology::Placement;
using topology::Spec;

constexpr std::size_t kMaxCommentBytes = 400;

bool alphabetic(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A word that YAML reads as a text and nothing else needs no quotes.
bool plain(std::string_view text) {
  if (text.empty() || !alphabetic(text.front())) return false;
  const bool clean = std::ranges::all_of(text, [](char c) {
    return alphabetic(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  return clean && std::ranges::find(kWords, std::string_view(lower)) == std::end(kWords);
}

// Validation leaves printable ASCII only in what is written here.
std::string quoted(std::string_view text) {
  if (plain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string option_value(const std::string& value) {
  const auto number = base::parse_u64(value);
  const bool bare = value == "true" || value == "false" || (number && std::to_string(*number) == value);
  return bare ? value : quoted(value);
}

void write_placement(const Placement& placement, std::string& out) {
  out += fmt::format("placement:\n  algorithm: {}\n", placement.algorithm);
  if (placement.algorithm == "slots") {
    if (placement.hash_tag != "{}") out += fmt::format("  hash_tag: {}\n", quoted(placement.hash_tag));
    out += "  slots:\n";
    for (const topology::SlotRange& range : placement.slots)
      out += fmt::format("    - {{first: {}, last: {}, member: {}}}\n", range.first, range.last,
                         quoted(range.member));
    return;
  }
  for (const auto& [name, value] : placement.options)
    out += fmt::format("  {}: {}\n", name, option_value(value));
  if (!placement.hash.empty()) out += fmt::format("  hash: {}\n", quoted(placement.hash));
  if (!placement.hash_tag.empty()) out += fmt::format("  hash_tag: {}\n", quoted(placement.hash_tag));
}

const char* name(topology::Consistency consistency) {
  if (consistency == topology::Consistency::strict) return "strict";
  return consistency == topology::Consistency::cache ? "cache" : "none";
}

void comment(std::string& out, std::string_view text) {
  out += "# " + base::printable(text, kMaxCommentBytes) + '\n';
}

}  // namespace

std::string to_yaml(const Imported& imported, Format format, std::string_view place) {
  const Spec& spec = imported.spec;
  std::string out;
  comment(out, fmt::format("{} of {} ({}), imported by ringshift: every key keeps its server.",
                           imported.source, place, name_of(format)));
  if (!imported.notes.empty()) comment(out, "Not carried over, by line of the source:");
  for (const Note& note : imported.notes)
    comment(out, fmt::format("  {}: {}: {}", note.mark.line, note.words, note.text));
  out += fmt::format("cluster: {}\nprotocol: {}\n", quoted(spec.cluster),
                     spec.protocol == topology::Protocol::redis ? "redis" : "memcached");
  write_placement(spec.placement, out);
  out += fmt::format("consistency: {}\nmembers:\n", name(spec.consistency));
  for (const topology::Member& member : spec.members) {
    out += fmt::format("  - {{id: {}, address: {}", quoted(member.id), quoted(member.address));
    if (member.weight != 1) out += fmt::format(", weight: {}", member.weight);
    if (!member.label.empty()) out += fmt::format(", label: {}", quoted(member.label));
    out += "}\n";
  }
  return out;
}

}  // namespace ringshift::importing
