#include "admin/bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/encoding.h"

namespace ringshift::admin {
namespace {

using nlohmann::json;

constexpr std::size_t kStepsMax = 100, kTextMax = 4096;
constexpr std::uint64_t kRateMax = 100'000'000, kBytesMax = std::uint64_t{1} << 60;

constexpr int kDepthMax = 24;  // A spec is 16 deep at most. What writes JSON again recurses.

// Whether brackets outside of texts are nested deeper.
bool deeper_than(std::string_view text, int most) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// One JSON object, whose fields are taken one after the other; the first thing that is wrong stays.
class Body {
 public:
  Body(json object, std::string path) : object_(std::move(object)), path_(std::move(path)) {
    if (!object_.is_object()) wrong("", "is no JSON object");
  }
  static Body parse(std::string_view text, bool may_be_empty) {
    if (text.empty() && may_be_empty) return {json::object(), ""};
    json object = deeper_than(text, kDepthMax) ? json(json::value_t::discarded)
                                               : json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) {
      Body bad(json::object(), "");
      bad.wrong("", "is no JSON, or nested too deep");
      return bad;
    }
    return {std::move(object), ""};
  }

  [[nodiscard]] bool has(const char* name) { return find(name) != nullptr; }

  void take(const char* name, std::string& out, std::size_t most = kTextMax) {
    const json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return wrong(name, "must be a text");
    out = value->get<std::string>();
    if (out.size() > most) wrong(name, fmt::format("has more than {} bytes", most));
  }
  void take(const char* name, bool& out) {
    const json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return wrong(name, "must be true or false");
    out = value->get<bool>();
  }
  void take(const char* name, std::uint64_t& out, std::uint64_t least, std::uint64_t most) {
    const json* value = find(name);
    if (value == nullptr) return;
    const bool fits = value->is_number_unsigned() && value->get<std::uint64_t>() >= least &&
                      value->get<std::uint64_t>() <= most;
    if (!fits) return wrong(name, fmt::format("must be a whole number from {} to {}", least, most));
    out = value->get<std::uint64_t>();
  }
  void take(const char* name, double& out, double least, double most, bool above = false) {
    const json* value = find(name);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(above ? number > least : number >= least) || number > most)
      return wrong(name, above ? fmt::format("must be a number above {}", least)
                               : fmt::format("must be a number from {} to {}", least, most));
    out = number;
  }
  template <class T, class... Bounds>
  void take(const char* name, std::optional<T>& out, Bounds... bounds) {
    if (!has(name)) return;
    T value{};
    take(name, value, bounds...);
    out = value;
  }
  void take(const char* name, std::vector<std::string>& out, std::size_t most = kListMax) {
    each(name, most, [&](const json& item) {
      if (!item.is_string()) return wrong(name, "must be a list of texts");
      out.push_back(item.get<std::string>());
    });
  }
  void take(const char* name, std::vector<double>& out, std::size_t most) {
    each(name, most, [&](const json& item) {
      if (!item.is_number()) return wrong(name, "must be a list of numbers");
      out.push_back(item.get<double>());
    });
  }
  template <class Visit>
  void each(const char* name, std::size_t most, Visit visit) {
    const json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return wrong(name, "must be a list");
    if (value->size() > most) return wrong(name, fmt::format("has more than {} entries", most));
    for (const json& item : *value) visit(item);
  }
  // The part below `name`; its errors become ours by adopt().
  [[nodiscard]] Body part(const char* name) {
    const json* value = find(name);
    return {value == nullptr ? json::object() : *value, path_to(name)};
  }
  [[nodiscard]] std::string path_to(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }
  void adopt(const Status& status) {
    if (!status && !error_) error_ = status.error();
  }
  void need(const char* name) {
    if (!has(name)) wrong(name, "is missing");
  }
  [[nodiscard]] const json* find(const char* name) {
    known_.emplace_back(name);
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void wrong(std::string_view name, std::string_view what) {
    if (error_) return;
    std::string where = path_;
    if (!name.empty()) where += (where.empty() ? "" : ".") + std::string(name);
    error_ = Error{ErrorKind::invalid, fmt::format("{}: {}", where.empty() ? "body" : where, what)};
  }
  // What is wrong, or a field that nobody asked for.
  [[nodiscard]] Status finish() {
    if (!error_ && object_.is_object()) {
      for (const auto& [name, ignored] : object_.items()) {
        if (std::ranges::find(known_, name) != known_.end()) continue;
        wrong(base::printable(name, 64),
              fmt::format("is unknown here; there are {}", fmt::join(known_, ", ")));
        break;
      }
    }
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  json object_;
  std::string path_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

topology::Member take_member(Body& body) {
  topology::Member member;
  body.need("id");
  body.need("address");
  body.take("id", member.id, 256);
  body.take("address", member.address, 512);
  body.take("weight", member.weight, 0, 1e9, /*above=*/true);
  body.take("zone", member.zone, 256);
  body.take("host", member.host, 256);
  body.take("label", member.label, 256);
  return member;
}

void take_members(Body& body, const char* name, std::vector<topology::Member>& out) {
  std::size_t i = 0;
  body.each(name, kListMax, [&](const json& item) {
    Body part(item, fmt::format("{}[{}]", body.path_to(name), i++));
    out.push_back(take_member(part));
    body.adopt(part.finish());
  });
}

void take_edit(Body& body, plan::Edit& edit) {
  take_members(body, "add", edit.add);
  body.take("remove", edit.remove);
  body.take("retire", edit.retire);
  const json* weights = body.find("weights");
  if (weights == nullptr) return;
  if (!weights->is_object() || weights->size() > kListMax)
    return body.wrong("weights",
                      fmt::format("must be an object of at most {} weights by member id", kListMax));
  for (const auto& [id, weight] : weights->items()) {
    if (!weight.is_number() || !(weight.get<double>() > 0))
      return body.wrong("weights", fmt::format("'{}' must be a number above 0", base::printable(id, 64)));
    edit.weights.emplace_back(id, weight.get<double>());
  }
}

Change take_change(Body& body) {
  Change change;
  if (const json* spec = body.find("spec")) {
    const auto parsed =
        topology::parse_spec(spec->is_string() ? spec->get<std::string>()
                                               : spec->dump(-1, ' ', false, json::error_handler_t::replace),
                             "change.spec");
    if (!parsed) {
      body.adopt(std::unexpected(parsed.error()));
    } else {
      change.spec = *parsed;
    }
  }
  if (body.has("edit")) {
    Body part = body.part("edit");
    change.edit.emplace();
    take_edit(part, *change.edit);
    body.adopt(part.finish());
  }
  if (const json* topology = body.find("topology")) {
    if (topology->is_number_unsigned()) {
      change.topology = std::to_string(topology->get<std::uint64_t>());
    } else if (topology->is_string()) {
      change.topology = topology->get<std::string>();
    } else {
      body.wrong("topology", "must be a revision");
    }
  }
  const int given = (body.has("spec") ? 1 : 0) + (change.edit ? 1 : 0) + (change.topology ? 1 : 0);
  if (given != 1) body.wrong("", "must have exactly one of spec, edit and topology");
  return change;
}

void take_words(Body& body, resize::StartWords& words) {
  body.take("steps", words.steps, kStepsMax);
  body.take("soak", words.soak, 64);
  body.take("at", words.at, 64);
  body.take("until", words.until, 64);
  body.take("abort_if", words.abort_if, 1024);
  body.take("keys_per_second", words.keys_per_second, 1, kRateMax);
  body.take("bytes_per_second", words.bytes_per_second, 1, kBytesMax);
  body.take("replace", words.replace);
  body.take("allow_foreign", words.allow_foreign);
  body.take("force", words.force);
  body.take("mode", words.mode, 16);
  body.take("rest", words.rest, 16);
  body.take("deadline", words.deadline, 64);
  body.take("big_keys", words.big_keys, 16);
  body.take("big_key_limit", words.big_key_limit, 0, kBytesMax);
  body.take("verify", words.verify, 16);
  body.take("lost", words.lost);
  body.take("origin_budget", words.origin_budget, std::uint64_t{0}, kRateMax);
}

void take_figures(Body& body, resize::GivenFigures& figures) {
  constexpr double kMost = 1e15;
  body.take("keys", figures.keys, std::uint64_t{0}, kBytesMax);
  body.take("value_bytes", figures.value_bytes, std::uint64_t{0}, kBytesMax);
  body.take("qps", figures.qps, 0.0, kMost);
  body.take("hit_rate", figures.hit_rate, 0.0, 1.0);
  body.take("cold_hit_rate", figures.cold_hit_rate, 0.0, 1.0);
  body.take("origin_limit_qps", figures.origin_limit_qps, 0.0, kMost);
}

resize::Request request_of(resize::Request::Action action) {
  resize::Request request;
  request.action = action;
  return request;
}

}  // namespace

Result<StartBody> parse_start_body(std::string_view text, StartKind kind) {
  Body body = Body::parse(text, kind == StartKind::member);
  StartBody out;
  if (kind == StartKind::start || kind == StartKind::plan) {
    body.need("change");
    Body part = body.part("change");
    out.change = take_change(part);
    body.adopt(part.finish());
  }
  if (body.has("options")) {
    Body part = body.part("options");
    take_words(part, out.words);
    body.adopt(part.finish());
  }
  if (kind == StartKind::plan) {
    body.take("live", out.live);
    if (body.has("figures")) {
      Body part = body.part("figures");
      take_figures(part, out.figures);
      body.adopt(part.finish());
    }
  } else {
    body.take("if_version", out.if_version, 64);
  }
  if (kind == StartKind::weight) {
    body.need("weight");
    body.take("weight", out.weight, 0, 1e9, /*above=*/true);
  }
  if (kind == StartKind::add) {
    body.need("members");
    take_members(body, "members", out.members);
    if (out.members.empty()) body.wrong("members", "names no member");
  }
  if (const Status good = body.finish(); !good) return std::unexpected(good.error());
  return out;
}

Result<resize::Request> parse_rate_body(std::string_view text) {
  Body body = Body::parse(text, false);
  resize::Request request = request_of(resize::Request::Action::set_rate);
  body.take("keys_per_second", request.keys_per_second, 1, kRateMax);
  body.take("bytes_per_second", request.bytes_per_second, 1, kBytesMax);
  if (request.keys_per_second == 0 && request.bytes_per_second == 0)
    body.wrong("keys_per_second", "say keys_per_second, bytes_per_second or both");
  if (const Status good = body.finish(); !good) return std::unexpected(good.error());
  return request;
}

Result<resize::Request> parse_big_keys_body(std::string_view text) {
  Body body = Body::parse(text, false);
  resize::Request request = request_of(resize::Request::Action::big_keys);
  body.need("big_keys");
  body.take("big_keys", request.big_keys, 16);
  body.take("big_key_limit", request.big_key_limit, 0, kBytesMax);
  const std::string& what = request.big_keys;
  if (what != "move" && what != "wait" && what != "refuse")
    body.wrong("big_keys", "is none of move, wait and refuse");
  if (const Status good = body.finish(); !good) return std::unexpected(good.error());
  return request;
}

Result<resize::Request> parse_lost_body(std::string_view text) {
  Body body = Body::parse(text, false);
  resize::Request request = request_of(resize::Request::Action::lost);
  body.need("members");
  body.need("origin_budget");
  body.take("members", request.lost);
  body.take("origin_budget", request.origin_budget, 0, kRateMax);
  body.take("force", request.force);
  if (request.lost.empty()) body.wrong("members", "names no member");
  if (const Status good = body.finish(); !good) return std::unexpected(good.error());
  return request;
}

Status parse_empty_body(std::string_view text) { return Body::parse(text, true).finish(); }

Result<RouteQuestion> parse_route_body(std::string_view text) {
  Body body = Body::parse(text, false);
  RouteQuestion question;
  std::uint64_t replicas = question.replicas;
  body.need("keys");
  body.take("keys", question.keys, kRouteKeysMax);
  body.take("hex", question.hex);
  body.take("replicas", replicas, 1, kReplicasMax);
  question.replicas = replicas;
  if (question.keys.empty()) body.wrong("keys", "names no key");
  for (const std::string& key : question.keys) {
    if (key.size() > kRouteKeyBytesMax)
      body.wrong("keys", fmt::format("a key has more than {} bytes", kRouteKeyBytesMax));
  }
  if (const Status good = body.finish(); !good) return std::unexpected(good.error());
  return question;
}

}  // namespace ringshift::admin
