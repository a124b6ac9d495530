#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <istream>
#include <streambuf>

#include "topology/document.h"

namespace ringshift::topology::detail {
namespace {

// Ends the parse from inside a handler; never leaves this file.
struct Stop {
  int line;
  std::string message;
};

int line_at(const YAML::Mark& mark) { return mark.is_null() ? 0 : mark.line + 1; }

class Events final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Stop{line_at(mark), "a second document begins here: keep one in a file"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    check(mark, builder.scalar(Node::Kind::null, line_at(mark), {}));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    const bool null = tag != "!" && (value.empty() || value == "~" || value == "null");
    const auto kind = null ? Node::Kind::null : tag == "!" ? Node::Kind::quoted : Node::Kind::plain;
    check(mark, builder.scalar(kind, line_at(mark), value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    check(mark, builder.begin(Node::Kind::list, line_at(mark)));
  }
  void OnSequenceEnd() override { builder.end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    check(mark, builder.begin(Node::Kind::map, line_at(mark)));
  }
  void OnMapEnd() override { builder.end(); }

  Builder builder;

 private:
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) {
      throw Stop{line_at(mark), "anchors (&) and aliases (*) are not supported: write the value out"};
    }
  }
  static void check(const YAML::Mark& mark, std::string problem) {
    if (!problem.empty()) throw Stop{line_at(mark), std::move(problem)};
  }

  int documents_ = 0;
};

// Reads a view without copying it.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // A get area is never written to.
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

Result<Node> parse_yaml(std::string_view text, std::string_view place) {
  try {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    Events events;
    while (parser.HandleNextDocument(events)) {
    }
    return events.builder.take();
  } catch (const Stop& stop) {
    return fail(ErrorKind::invalid, fmt::format("{}:{}: {}", place, stop.line, stop.message));
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null())
      return fail(ErrorKind::invalid, fmt::format("{}: not YAML: {}", place, error.msg));
    return fail(ErrorKind::invalid, fmt::format("{}:{}: not YAML: {} (column {})", place, error.mark.line + 1,
                                                error.msg, error.mark.column + 1));
  } catch (const std::exception& error) {
    return fail(ErrorKind::invalid, fmt::format("{}: not YAML: {}", place, error.what()));
  }
}

}  // namespace ringshift::topology::detail
