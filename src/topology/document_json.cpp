#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "topology/document.h"

namespace ringshift::topology::detail {
namespace {

// nlohmann's SAX interface: no tree of its own, so the bounds hold while it parses.
class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return take(builder.scalar(Node::Kind::null, 0, {})); }
  bool boolean(bool value) override { return plain(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return plain(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { return plain(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { return plain(text); }
  bool string(string_t& value) override { return take(builder.scalar(Node::Kind::quoted, 0, value)); }
  bool binary(binary_t&) override { return take("binary data"); }
  bool start_object(std::size_t) override { return take(builder.begin(Node::Kind::map, 0)); }
  bool key(string_t& name) override { return take(builder.key(0, name)); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return take(builder.begin(Node::Kind::list, 0)); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    offset = position;
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at line ...: why"
    if (const auto bracket = what.find("] "); bracket != std::string_view::npos)
      what.remove_prefix(bracket + 2);
    problem = what;
    return false;
  }

  Builder builder;
  std::string problem;
  std::size_t offset = 0;

 private:
  bool plain(std::string_view text) { return take(builder.scalar(Node::Kind::plain, 0, text)); }
  bool take(std::string what) {
    problem = std::move(what);
    return problem.empty();
  }
  bool end() {
    builder.end();
    return true;
  }
};

}  // namespace

Result<Node> parse_json(std::string_view text, std::string_view place) {
  Events events;
  try {
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return events.builder.take();
  } catch (const std::exception& error) {
    events.problem = error.what();
  }
  // It quotes the text, which may be no text at all.
  constexpr std::size_t kMaxShown = 400;
  return fail(ErrorKind::invalid,
              fmt::format("{}: not JSON: {}", place, base::printable(events.problem, kMaxShown)));
}

}  // namespace ringshift::topology::detail
