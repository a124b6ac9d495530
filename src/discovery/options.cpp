#include "discovery/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/duration.h"
#include "base/encoding.h"
#include "discovery/instances.h"
#include "topology/document.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

using Text = std::string Options::*;
using List = std::vector<std::string> Options::*;
using Span = milliseconds Options::*;
using Flag = bool Options::*;
using Instances = std::vector<Instance> Options::*;

struct Field {
  FieldInfo info;
  std::variant<Text, List, Span, Flag, Instances> value;
  std::string_view words = {};  // The only ones there are, separated by blanks.
};

constexpr std::size_t kValueBytesMax = 1024;
constexpr std::size_t kListMax = 16;
constexpr milliseconds kSpanLeast{100};
constexpr milliseconds kSpanMost{600'000};  // Consul and Kubernetes let nobody wait for longer.

const Field kFields[] = {
    {{"instances", "static", "", "ID=ADDRESS,..."}, &Options::instances},
    {{"path", "file", "file", "The list's file, YAML or JSON"}, &Options::path},
    {{"name", "dns", "dns", "Host name, or name of the SRV records"}, &Options::name},
    {{"record", "dns", "", "address (A and AAAA), a, aaaa or srv [a name that begins with _: srv]"},
     &Options::record,
     "address a aaaa srv"},
    {{"port", "dns kubernetes", "", "The port of address records; of a Kubernetes service: its name, too"},
     &Options::port},
    {{"servers", "dns", "", "HOST:PORT,... of the DNS servers [the system's]"}, &Options::servers},
    {{"url", "consul nacos kubernetes", "", "http(s)://HOST:PORT, several separated by commas"},
     &Options::urls},
    {{"service", "consul nacos kubernetes", "consul nacos kubernetes", "Name of the service there"},
     &Options::service},
    {{"namespace", "registry consul nacos kubernetes", "", "Namespace there"}, &Options::name_space},
    {{"cluster", "registry", "", "Whose agents [this cluster's]"}, &Options::cluster},
    {{"datacenter", "consul", "", "Consul's datacenter [the agent's own]"}, &Options::datacenter},
    {{"tag", "consul", "", "Only instances that bear this tag"}, &Options::tag},
    {{"group", "nacos", "", "The service's group [DEFAULT_GROUP]"}, &Options::group},
    {{"clusters", "nacos", "", "Only these of the service's clusters"}, &Options::clusters},
    {{"stale", "consul", "", "true: any server may answer, not the leader alone"}, &Options::stale},
    {{"api", "nacos", "", "v1 or v2 [v1]"}, &Options::api, "v1 v2"},
    {{"id_from", "consul kubernetes", "",
      "What an instance's id is: service, node or both [service]; Kubernetes: pod or address [pod]"},
     &Options::id_from},
    {{"id_label", "consul nacos", "", "The metadata whose value is the id"}, &Options::id_label},
    {{"address", "kubernetes", "", "ip, or name: the pod's own name in the service [ip]"},
     &Options::address,
     "ip name"},
    {{"token_file", "consul kubernetes", "", "Holds the token, read anew for each question"},
     &Options::token_file},
    {{"auth_file", "nacos", "", "Holds user:NAME:PASSWORD"}, &Options::auth_file},
    {{"ca_file", "consul nacos kubernetes", "", "Who signs the server's certificate, PEM"},
     &Options::ca_file},
    {{"poll", "file dns nacos", "", "How often to look; dns: at least so often, whatever the TTL"},
     &Options::poll},
    {{"wait", "consul kubernetes", "", "How long a question waits for a change"}, &Options::wait},
    {{"timeout", "dns consul nacos kubernetes", "", "How long until there is no answer"}, &Options::timeout},
};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == word) return !word.empty();
    begin = end + 1;
  }
  return false;
}

std::string listed(std::string_view words) {
  std::string text(words);
  for (std::size_t at = 0; (at = text.find(' ', at)) != std::string::npos; at += 2) text.replace(at, 1, ", ");
  return text;
}

// Each says "" or what is wrong with the value.
std::string take_span(Options& options, Span member, const std::string& value) {
  const Result<milliseconds> span = base::parse_duration(value);
  if (!span) return span.error().message;
  if (*span < kSpanLeast || *span > kSpanMost) {
    return fmt::format("'{}' is not from {} ms to {} min", value, kSpanLeast.count(),
                       kSpanMost.count() / 60'000);
  }
  options.*member = *span;
  return {};
}

std::string take_list(Options& options, List member, const std::string& value) {
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    std::string item = value.substr(begin, end - begin);
    while (item.starts_with(' ')) item.erase(0, 1);
    while (item.ends_with(' ')) item.pop_back();
    if (item.empty()) return "has an empty entry: separate them by single commas";
    (options.*member).push_back(std::move(item));
    begin = end + 1;
  }
  return (options.*member).size() <= kListMax ? "" : fmt::format("has more than {} entries", kListMax);
}

std::string take_instances(Options& options, const std::string& value) {
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    const std::string_view item = std::string_view(value).substr(begin, end - begin);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return fmt::format("{} is no ID=ADDRESS", topology::shown(item));
    Instance instance;
    instance.id = item.substr(0, equals);
    instance.address = item.substr(equals + 1);
    options.instances.push_back(std::move(instance));
    begin = end + 1;
  }
  return {};
}

std::string take_value(Options& options, const Field& field, const std::string& value) {
  const bool clean = std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (value.empty()) return "is empty: leave it out, or give it a value";
  const bool instances = std::holds_alternative<Instances>(field.value);
  const std::size_t most = instances ? topology::kMaxTextBytes : kValueBytesMax;
  if (value.size() > most || !clean)
    return fmt::format("is no line of at most {} printable ASCII characters", most);
  if (instances) return take_instances(options, value);
  if (!field.words.empty() && !has_word(field.words, value)) {
    return fmt::format("{} is none of {}", topology::shown(value), listed(field.words));
  }
  if (const auto* text = std::get_if<Text>(&field.value)) {
    options.*(*text) = value;
    return {};
  }
  if (const auto* list = std::get_if<List>(&field.value)) return take_list(options, *list, value);
  if (const auto* span = std::get_if<Span>(&field.value)) return take_span(options, *span, value);
  if (value != "true" && value != "false")
    return fmt::format("{} is not true or false", topology::shown(value));
  options.*std::get<Flag>(field.value) = value == "true";
  return {};
}

using Wrong = std::optional<std::pair<std::string, std::string>>;  // The field and what is wrong with it.

Wrong check_urls(const Options& options) {
  for (const std::string& url : options.urls) {
    const bool tls = url.starts_with("https://");
    const std::size_t host = tls ? 8 : 7;
    if ((!tls && !url.starts_with("http://")) || url.size() <= host) {
      return {{"url", fmt::format("{} is no http://HOST:PORT or https://HOST:PORT", topology::shown(url))}};
    }
    // What stands in a URL shows in logs.
    if (url.find('@') != std::string::npos || url.find('?') != std::string::npos) {
      return {{"url", "has a user or a query in it: secrets go into a file, see the other fields"}};
    }
    if (!tls && !options.ca_file.empty()) {
      return {{"ca_file", fmt::format("is for https, and {} has no TLS", topology::shown(url))}};
    }
  }
  return std::nullopt;
}

Wrong check_dns(Options& options) {
  if (options.record.empty()) options.record = options.name.starts_with('_') ? "srv" : "address";
  if (options.record == "srv") {
    if (!options.port.empty()) return {{"port", "is in the SRV records themselves: leave it out"}};
    return std::nullopt;
  }
  const auto port = base::parse_u64(options.port);
  if (!port || *port < 1 || *port > 65535) {
    return {{"port", options.port.empty()
                         ? "is missing: address records have none; give a number, or record: srv"
                         : fmt::format("{} is not from 1 to 65535", topology::shown(options.port))}};
  }
  for (const std::string& server : options.servers) {
    if (const std::string wrong = topology::check_address(server); !wrong.empty())
      return {{"servers", fmt::format("{} {}: write HOST:PORT", topology::shown(server), wrong)}};
  }
  return std::nullopt;
}

Wrong check_static(Options& options) {
  if (options.instances.empty()) return {{"instances", "is missing: list them, each with id and address"}};
  if (auto wrong = sort_and_check(options.instances)) return {{"instances", *std::move(wrong)}};
  return std::nullopt;
}

Wrong check_kind(Options& options) {
  if (auto wrong = check_urls(options)) return wrong;
  if (options.kind == "static") return check_static(options);
  if (!options.instances.empty()) return {{"instances", "is for kind static: this one finds them by itself"}};
  if (options.kind == "dns") return check_dns(options);
  const std::string_view ids = options.kind == "consul" ? "service node both" : "pod address";
  if (!options.id_from.empty() && !has_word(ids, options.id_from)) {
    return {{"id_from", fmt::format("{} is none of {}", topology::shown(options.id_from), listed(ids))}};
  }
  if (options.urls.empty()) {
    if (options.kind == "consul") options.urls = {"http://127.0.0.1:8500"};
    if (options.kind == "nacos") options.urls = {"http://127.0.0.1:8848"};
  }
  if (options.kind != "registry") return std::nullopt;
  for (const auto& [field, name] :
       {std::pair{"namespace", &options.name_space}, {"cluster", &options.cluster}}) {
    if (name->empty()) continue;
    if (const std::string wrong = topology::check_name(*name); !wrong.empty()) return {{field, wrong}};
  }
  return std::nullopt;
}

}  // namespace

std::span<const FieldInfo> field_table() {
  static const std::vector<FieldInfo> kTable = [] {
    std::vector<FieldInfo> table;
    for (const Field& field : kFields) table.push_back(field.info);
    return table;
  }();
  return kTable;
}

Result<Options> read_options(std::string_view kind, const Fields& fields, std::vector<Instance> instances,
                             std::string_view place) {
  const auto refuse = [&](std::string_view field, std::string_view why) {
    return fail(ErrorKind::invalid, fmt::format("{}{}: {}", place, field, why));
  };
  if (std::ranges::find(kKinds, kind) == std::end(kKinds)) {
    return refuse("kind", fmt::format("{} is none of {}", topology::shown(kind), fmt::join(kKinds, ", ")));
  }
  Options options;
  options.kind = kind;
  options.instances = std::move(instances);
  std::vector<std::string_view> known;
  for (const Field& field : kFields)
    if (has_word(field.info.kinds, kind)) known.push_back(field.info.name);
  for (const auto& [name, value] : fields) {
    const auto field = std::ranges::find(kFields, name, [](const Field& one) { return one.info.name; });
    if (field == std::end(kFields) || !has_word(field->info.kinds, kind)) {
      const std::string near = topology::nearest(name, known);
      return refuse(name, fmt::format("is no field of kind {}{}", kind,
                                      near.empty() ? fmt::format(", which has {}", fmt::join(known, ", "))
                                                   : fmt::format("; did you mean '{}'?", near)));
    }
    if (const std::string wrong = take_value(options, *field, value); !wrong.empty())
      return refuse(name, wrong);
  }
  for (const Field& field : kFields) {
    if (has_word(field.info.required_by, kind) && !fields.contains(std::string(field.info.name)))
      return refuse(field.info.name, fmt::format("is missing, and kind {} needs it", kind));
  }
  if (const Wrong wrong = check_kind(options)) return refuse(wrong->first, wrong->second);
  return options;
}

}  // namespace ringshift::discovery
