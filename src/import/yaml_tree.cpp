#include "import/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "import/draft.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

// Ends the parse from inside a handler; never leaves this file.
struct Stop {
  Mark mark;
  std::string message;
};

Mark at(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<std::uint32_t>(mark.line) + 1, static_cast<std::uint32_t>(mark.column) + 1};
}

class Events final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Stop{at(mark), "a second document begins here: keep one in a file"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    leaf(mark, anchor, YamlNode::Kind::null, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    leaf(mark, anchor, YamlNode::Kind::scalar, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { end(); }

  YamlNode root;

 private:
  struct Open {
    YamlNode node;
    bool has_key = false;
    std::set<std::string, std::less<>> names;
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) throw Stop{at(mark), "anchors (&) and aliases (*) are not read: write the value out"};
  }
  void leaf(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind, const std::string& text) {
    refuse_anchor(mark, anchor);
    if (++nodes_ > kMaxYamlNodes)
      throw Stop{at(mark), fmt::format("more than {} values: is it the right file?", kMaxYamlNodes)};
    if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::map && !open_.back().has_key) {
      Open& map = open_.back();
      if (!map.names.insert(text).second)
        throw Stop{at(mark), fmt::format("{} is given twice: keep one", topology::shown(text))};
      map.node.keys.push_back({text, at(mark)});
      map.has_key = true;
      return;
    }
    add({kind, at(mark), text, {}, {}});
  }
  void begin(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_anchor(mark, anchor);
    if (++nodes_ > kMaxYamlNodes || open_.size() >= kMaxYamlDepth)
      throw Stop{at(mark), fmt::format("nested deeper than {}: is it the right file?", kMaxYamlDepth)};
    if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::map && !open_.back().has_key)
      throw Stop{at(mark), "a list or map cannot be a key"};
    open_.emplace_back().node = {kind, at(mark), {}, {}, {}};
  }
  void end() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }
  void add(YamlNode node) {
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    open_.back().has_key = false;
    open_.back().node.items.push_back(std::move(node));
  }

  std::vector<Open> open_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

}  // namespace

Result<YamlNode> parse_yaml(std::string_view text, std::string_view place) {
  Events events;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    return std::move(events.root);
  } catch (const Stop& stop) {
    return refuse(place, stop.mark, stop.message);
  } catch (const YAML::Exception& error) {
    return refuse(place, at(error.mark), fmt::format("not YAML: {}", error.msg));
  } catch (const std::exception& error) {
    return refuse(place, {}, fmt::format("not YAML: {}", error.what()));
  }
}

}  // namespace ringshift::importing
