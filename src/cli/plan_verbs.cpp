#include "cli/plan_verbs.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace ringshift::cli {
namespace {

constexpr std::string_view kShapes =
    "say 'plan FROM.yaml TO.yaml', or 'plan FROM.yaml add ID=ADDRESS', '... remove ID' or '... weight ID=W'; "
    "without FROM.yaml the spec in force is read from the registry";

bool is_verb(std::string_view word) { return word == "add" || word == "remove" || word == "weight"; }

std::unexpected<Error> bad(std::string message) { return fail(ErrorKind::invalid, std::move(message)); }

Result<double> parse_weight(std::string_view text, std::string_view word) {
  double weight = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), weight);
  // Negated, so that what is no number at all is refused, too.
  if (code != std::errc() || end != text.data() + text.size() || !(weight > 0)) {
    return bad(fmt::format("'{}': the weight '{}' is no number above 0", word, text));
  }
  return weight;
}

// "ID=REST", both of some length.
Result<std::pair<std::string, std::string>> split(const std::string& word, std::string_view shape) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == word.size()) {
    return bad(fmt::format("'{}' is not {}", word, shape));
  }
  return std::pair{word.substr(0, equals), word.substr(equals + 1)};
}

Status set_option(topology::Member& member, std::string_view option, const std::string& word) {
  const std::size_t equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
  if (name == "weight") {
    const Result<double> weight = parse_weight(value, word);
    if (!weight) return std::unexpected(weight.error());
    member.weight = *weight;
    return {};
  }
  std::string* text = name == "zone"    ? &member.zone
                      : name == "host"  ? &member.host
                      : name == "label" ? &member.label
                                        : nullptr;
  if (text == nullptr || value.empty()) {
    return bad(fmt::format("'{}': '{}' is none of weight=W, zone=Z, host=H, label=L", word, option));
  }
  *text = value;
  return {};
}

Result<topology::Member> parse_member(const std::string& word) {
  auto parts = split(word, "ID=ADDRESS[,weight=W][,zone=Z], such as cache-5=10.0.0.5:6379,weight=2");
  if (!parts) return std::unexpected(parts.error());
  topology::Member member;
  member.id = std::move(parts->first);
  std::string_view rest = parts->second;
  const std::size_t comma = rest.find(',');
  member.address = rest.substr(0, comma);
  while (rest.find(',') != std::string_view::npos) {
    rest.remove_prefix(rest.find(',') + 1);
    if (Status set = set_option(member, rest.substr(0, rest.find(',')), word); !set) {
      return std::unexpected(set.error());
    }
  }
  return member;
}

Result<plan::Edit> parse_edit(std::string_view verb, std::span<const std::string> words) {
  plan::Edit edit;
  if (words.empty()) {
    return bad(fmt::format("'{}' of what? {}", verb,
                           verb == "add"      ? "Name members as ID=ADDRESS"
                           : verb == "remove" ? "Name members by their ids"
                                              : "Name members as ID=WEIGHT"));
  }
  for (const std::string& word : words) {
    if (verb == "add") {
      auto member = parse_member(word);
      if (!member) return std::unexpected(member.error());
      edit.add.push_back(*std::move(member));
    } else if (verb == "remove") {
      edit.remove.push_back(word);
    } else {
      auto parts = split(word, "ID=WEIGHT, such as cache-2=1.5");
      if (!parts) return std::unexpected(parts.error());
      const Result<double> weight = parse_weight(parts->second, word);
      if (!weight) return std::unexpected(weight.error());
      edit.weights.emplace_back(std::move(parts->first), *weight);
    }
  }
  return edit;
}

}  // namespace

Result<PlanWords> parse_plan_words(std::span<const std::string> words) {
  PlanWords out;
  if (words.empty()) return bad(fmt::format("no change is named: {}", kShapes));
  const std::size_t verb_at = is_verb(words[0]) ? 0 : 1;
  if (verb_at < words.size() && is_verb(words[verb_at])) {
    if (verb_at == 1) out.from_file = words[0];
    auto edit = parse_edit(words[verb_at], words.subspan(verb_at + 1));
    if (!edit) return std::unexpected(edit.error());
    out.edit = *std::move(edit);
    return out;
  }
  if (words.size() > 2) {
    return bad(fmt::format("'{}' is none of add, remove, weight: {}", words[1], kShapes));
  }
  if (words.size() == 2) out.from_file = words[0];
  out.to_file = words.back();
  return out;
}

}  // namespace ringshift::cli
