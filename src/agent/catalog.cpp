#include "agent/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "http/server.h"

namespace ringshift::agent {
namespace {

// What says how to find instances, and nothing of how to make one known.
constexpr std::array<std::string_view, 7> kNotHere = {"id_from",    "id_label", "poll", "wait",
                                                      "datacenter", "stale",    "api"};

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorKind::invalid, fmt::format("--register: {}", why));
}

}  // namespace

Result<discovery::Options> parse_catalog(std::string_view words) {
  std::string kind;
  discovery::Fields fields;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word(words.substr(begin, end - begin));
    begin = end + 1;
    if (word.empty()) continue;
    if (kind.empty()) {
      kind = word;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      return refuse(fmt::format("'{}': write FIELD=VALUE, for example service=cache", word));
    if (!fields.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      return refuse(fmt::format("'{}' is there twice", word.substr(0, equals)));
  }
  if (kind != "consul" && kind != "nacos") {
    return refuse(fmt::format("'{}' is neither consul nor nacos: write 'consul service=NAME', say", kind));
  }
  for (const std::string_view name : kNotHere) {
    if (fields.contains(std::string(name)))
      return refuse(fmt::format("{} is for finding instances, not for making one known", name));
  }
  auto options = discovery::read_options(kind, fields, {}, "--register: ");
  if (options && options->clusters.size() > 1) return refuse("clusters: an instance is in one of them");
  return options;
}

Status check_catalog_address(std::string_view address) {
  if (!address.starts_with("unix:") && http::parse_host_port(address)) return {};
  return refuse(fmt::format("Consul and Nacos know HOST:PORT alone, and --address is '{}'", address));
}

std::unique_ptr<Catalog> make_catalog(discovery::Options options, std::chrono::seconds ttl) {
  if (options.kind == "consul") return make_consul_catalog(std::move(options), ttl);
  return make_nacos_catalog(std::move(options));
}

}  // namespace ringshift::agent
