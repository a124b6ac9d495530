#include "registry/request.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/encoding.h"
#include "store/errors.h"

namespace ringshift::registry {
namespace {

using Json = nlohmann::json;

struct Bad {  // Thrown and caught in this file alone.
  std::string message;
};

// The first JSON value of `text`, brackets matched by hand; `text` moves past it. nullopt: only white space.
std::optional<std::string_view> next_value(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  if (text[begin] != '{') {
    throw Bad{
        fmt::format("a request is a JSON object: it begins with '{{', not with {:?}", text.substr(begin, 1))};
  }
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kNestingMax)
        throw Bad{fmt::format("the JSON is nested deeper than {} levels", kNestingMax)};
    } else if ((c == '}' || c == ']') && --depth == 0) {
      const std::string_view value = text.substr(begin, i + 1 - begin);
      text.remove_prefix(i + 1);
      return value;
    }
  }
  throw Bad{"the JSON ends in the middle: a bracket or a quote is not closed"};
}

Json parse_object(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Bad{"the request is not valid JSON"};
  return json;
}

Json parse_body(std::string_view body) {
  const std::optional<std::string_view> value = next_value(body);
  return value ? parse_object(*value) : Json::object();
}

std::string camel(std::string_view snake) {
  std::string out;
  for (std::size_t i = 0; i < snake.size(); ++i) {
    const bool up = snake[i] == '_' && i + 1 < snake.size();
    if (up) ++i;
    out.push_back(up ? static_cast<char>(snake[i] - ('a' - 'A')) : snake[i]);
  }
  return out;
}

const Json* find(const Json& object, std::string_view name) {
  auto found = object.find(std::string(name));
  if (found == object.end()) found = object.find(camel(name));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t integer(const Json& object, std::string_view name) {
  const Json* field = find(object, name);
  if (field == nullptr) return 0;
  if (field->is_number_integer() &&
      !(field->is_number_unsigned() && field->get<std::uint64_t>() > std::uint64_t{INT64_MAX})) {
    return field->get<std::int64_t>();
  }
  if (field->is_string()) {
    const auto& text = field->get_ref<const std::string&>();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  throw Bad{fmt::format("field '{}' must be a 64-bit integer, as a string or a number", name)};
}

bool boolean(const Json& object, std::string_view name) {
  const Json* field = find(object, name);
  if (field == nullptr) return false;
  if (!field->is_boolean()) throw Bad{fmt::format("field '{}' must be true or false", name)};
  return field->get<bool>();
}

std::string bytes(const Json& object, std::string_view name) {
  const Json* field = find(object, name);
  if (field == nullptr) return {};
  if (field->is_string()) {
    if (auto decoded = base::from_base64(field->get_ref<const std::string&>())) return *std::move(decoded);
  }
  throw Bad{fmt::format("field '{}' must be base64 with padding", name)};
}

template <std::size_t N>
int choice_of(const Json& field, std::string_view name, const std::string_view (&names)[N]) {
  for (std::size_t i = 0; i < N; ++i) {
    if (field == names[i] || field == i) return static_cast<int>(i);
  }
  throw Bad{fmt::format("unknown value {} for field '{}'",
                        field.dump(-1, ' ', false, Json::error_handler_t::replace), name)};
}

template <std::size_t N>
int choice(const Json& object, std::string_view name, const std::string_view (&names)[N]) {
  const Json* field = find(object, name);
  return field == nullptr ? 0 : choice_of(*field, name, names);
}

// The elements of an array of objects.
template <class Each>
void each(const Json& object, std::string_view name, Each use) {
  const Json* field = find(object, name);
  if (field == nullptr) return;
  if (!field->is_array()) throw Bad{fmt::format("field '{}' must be an array", name)};
  for (const Json& element : *field) {
    if (!element.is_object()) throw Bad{fmt::format("field '{}' must hold objects", name)};
    use(element);
  }
}

const Json* object_field(const Json& object, std::string_view name) {
  const Json* field = find(object, name);
  if (field != nullptr && !field->is_object()) throw Bad{fmt::format("field '{}' must be an object", name)};
  return field;
}

store::RangeRequest range_of(const Json& json) {
  constexpr std::string_view kOrders[] = {"NONE", "ASCEND", "DESCEND"};
  constexpr std::string_view kTargets[] = {"KEY", "VERSION", "CREATE", "MOD", "VALUE"};
  store::RangeRequest r;
  r.key = bytes(json, "key");
  r.range_end = bytes(json, "range_end");
  r.limit = integer(json, "limit");
  r.revision = integer(json, "revision");
  r.order = static_cast<store::SortOrder>(choice(json, "sort_order", kOrders));
  r.target = static_cast<store::SortTarget>(choice(json, "sort_target", kTargets));
  (void)boolean(json, "serializable");  // One machine: every read is current.
  r.keys_only = boolean(json, "keys_only");
  r.count_only = boolean(json, "count_only");
  r.min_mod = integer(json, "min_mod_revision");
  r.max_mod = integer(json, "max_mod_revision");
  r.min_create = integer(json, "min_create_revision");
  r.max_create = integer(json, "max_create_revision");
  return r;
}

store::PutRequest put_of(const Json& json) {
  store::PutRequest r;
  r.key = bytes(json, "key");
  r.value = bytes(json, "value");
  r.lease = integer(json, "lease");
  r.previous = boolean(json, "prev_kv");
  r.ignore_value = boolean(json, "ignore_value");
  r.ignore_lease = boolean(json, "ignore_lease");
  return r;
}

store::DeleteRequest delete_of(const Json& json) {
  return {bytes(json, "key"), bytes(json, "range_end"), boolean(json, "prev_kv")};
}

store::Compare compare_of(const Json& json) {
  constexpr std::string_view kTargets[] = {"VERSION", "CREATE", "MOD", "VALUE", "LEASE"};
  constexpr std::string_view kResults[] = {"EQUAL", "GREATER", "LESS", "NOT_EQUAL"};
  store::Compare c;
  c.key = bytes(json, "key");
  c.range_end = bytes(json, "range_end");
  c.target = static_cast<store::Compare::Target>(choice(json, "target", kTargets));
  c.result = static_cast<store::Compare::Result>(choice(json, "result", kResults));
  switch (c.target) {
    case store::Compare::Target::version:
      c.number = integer(json, "version");
      break;
    case store::Compare::Target::create:
      c.number = integer(json, "create_revision");
      break;
    case store::Compare::Target::mod:
      c.number = integer(json, "mod_revision");
      break;
    case store::Compare::Target::lease:
      c.number = integer(json, "lease");
      break;
    case store::Compare::Target::value:
      c.value = bytes(json, "value");
      break;
  }
  return c;
}

store::Op op_of(const Json& json) {
  if (const Json* range = object_field(json, "request_range")) return range_of(*range);
  if (const Json* put = object_field(json, "request_put")) return put_of(*put);
  if (const Json* remove = object_field(json, "request_delete_range")) return delete_of(*remove);
  if (find(json, "request_txn") != nullptr) {
    throw Bad{"a transaction inside a transaction (request_txn) is not supported by this registry: send two"};
  }
  throw Bad{store::errors::kKeyNotFound};  // So says etcd of an empty operation.
}

WatchCommand command_of(const Json& json) {
  constexpr std::string_view kFilters[] = {"NOPUT", "NODELETE"};
  if (const Json* create = object_field(json, "create_request")) {
    WatchCreate w{bytes(*create, "key"),
                  bytes(*create, "range_end"),
                  integer(*create, "start_revision"),
                  integer(*create, "watch_id"),
                  boolean(*create, "progress_notify"),
                  boolean(*create, "prev_kv"),
                  false,
                  false};
    if (w.key.empty()) w.key.assign(1, '\0');
    if (const Json* filters = find(*create, "filters")) {
      if (!filters->is_array()) throw Bad{"field 'filters' must be an array"};
      for (const Json& filter : *filters)
        (choice_of(filter, "filters", kFilters) == 0 ? w.no_put : w.no_delete) = true;
    }
    return w;
  }
  if (const Json* cancel = object_field(json, "cancel_request"))
    return WatchCancel{integer(*cancel, "watch_id")};
  return WatchProgress{};
}

template <class Parse>
auto parsed(Parse parse) -> Result<decltype(parse())> {
  try {
    return parse();
  } catch (const Bad& bad) {
    return fail(ErrorKind::invalid, bad.message);
  }
}

void check_size(std::size_t size) {
  if (size > kRequestBytesMax) throw Bad{store::errors::kTooLarge};
}

}  // namespace

Result<store::RangeRequest> parse_range(std::string_view body) {
  return parsed([&] { return range_of(parse_body(body)); });
}

Result<store::PutRequest> parse_put(std::string_view body) {
  return parsed([&] {
    store::PutRequest put = put_of(parse_body(body));
    constexpr std::size_t kEnvelope = 32;  // What etcd's own framing adds, about.
    check_size(put.key.size() + put.value.size() + kEnvelope);
    return put;
  });
}

Result<store::DeleteRequest> parse_delete(std::string_view body) {
  return parsed([&] { return delete_of(parse_body(body)); });
}

Result<store::TxnRequest> parse_txn(std::string_view body) {
  return parsed([&] {
    const Json json = parse_body(body);
    store::TxnRequest txn;
    std::size_t size = 0;
    each(json, "compare", [&](const Json& c) { txn.compares.push_back(compare_of(c)); });
    const auto collect = [&](std::vector<store::Op>& ops) {
      return [&](const Json& op) {
        ops.push_back(op_of(op));
        if (const auto* put = std::get_if<store::PutRequest>(&ops.back()))
          size += put->key.size() + put->value.size();
      };
    };
    each(json, "success", collect(txn.success));
    each(json, "failure", collect(txn.failure));
    check_size(size);
    return txn;
  });
}

Result<store::Revision> parse_compaction(std::string_view body) {
  return parsed([&] { return integer(parse_body(body), "revision"); });
}

Result<LeaseRequest> parse_lease(std::string_view body) {
  return parsed([&] {
    const Json json = parse_body(body);
    return LeaseRequest{integer(json, "ID"), integer(json, "TTL"), boolean(json, "keys")};
  });
}

Result<std::vector<WatchCommand>> parse_watch(std::string_view body) {
  return parsed([&] {
    std::vector<WatchCommand> commands;
    while (const auto value = next_value(body)) {
      const Json json = parse_object(*value);
      if (!json.empty()) commands.push_back(command_of(json));
    }
    return commands;
  });
}

}  // namespace ringshift::registry
