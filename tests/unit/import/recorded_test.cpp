// The recorded fleets of tests/vectors, written as the configuration that made them, imported, and asked for
// every key's owner: it must be the server that the real program chose.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/encoding.h"
#include "ringshift/snapshot.h"
#include "support.h"
#include "topology/document.h"

namespace ringshift::importing {
namespace {

using topology::Node;

constexpr std::string_view kBase62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

Node recording(const std::string& name) {
  const std::ifstream file(std::string(RINGSHIFT_SOURCE_DIR "/tests/vectors/") + name);
  std::stringstream text;
  text << file.rdbuf();
  auto node = topology::parse_json_document(text.str(), name);
  EXPECT_TRUE(node) << name;
  return node ? std::move(*node) : Node{};
}

std::string text(const Node& node, std::string_view name) {
  const Node* found = node.find(name);
  return found == nullptr ? "" : found->text;
}

const std::vector<std::string>& keys() {
  static const std::vector<std::string> all = [] {
    const Node root = recording("keys.json");
    std::vector<std::string> out;
    for (const Node& key : root.find("keys")->items) out.push_back(*base::from_hex(key.text));
    return out;
  }();
  return all;
}

std::shared_ptr<const topology::Snapshot> compiled(const topology::Spec& spec) {
  topology::Topology topology;
  topology.spec = spec;
  auto snapshot = topology::Snapshot::compile(std::move(topology), {0, 1});
  EXPECT_TRUE(snapshot) << snapshot.error().message;
  return snapshot ? *snapshot : nullptr;
}

// Counts the answers compared; a configuration "" leaves the case out.
std::size_t compare(Format format, const std::string& file,
                    const std::function<std::string(const Node&)>& write) {
  std::size_t compared = 0;
  const Node root = recording(file);
  for (const Node& one : root.find("cases")->items) {
    const std::string configuration = write(one);
    if (configuration.empty()) continue;
    const auto imported = import_as(format, configuration);
    EXPECT_TRUE(imported) << text(one, "id") << ": " << imported.error().message << "\n" << configuration;
    if (!imported) continue;
    const auto snapshot = compiled(imported->front().spec);
    const std::string assign = text(one, "assign");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < assign.size(); ++i) {
      if (assign[i] == '-') continue;
      ++compared;
      if (kBase62[snapshot->route(keys()[i]).member] != assign[i]) ++wrong;
    }
    EXPECT_EQ(wrong, 0U) << text(one, "id") << "\n" << configuration;
  }
  return compared;
}

TEST(Recorded, Twemproxy) {
  const std::size_t compared = compare(Format::nutcracker, "twemproxy.json", [](const Node& one) {
    std::string yaml =
        "pool:\n  listen: 127.0.0.1:1\n  redis: true\n  distribution: " + text(one, "distribution") +
        "\n  hash: " + text(one, "hash") + "\n";
    if (text(one, "hash_tag").size() == 2) yaml += "  hash_tag: \"" + text(one, "hash_tag") + "\"\n";
    yaml += "  servers:\n";
    for (const Node& server : one.find("servers")->items) yaml += "   - " + server.text + "\n";
    return yaml;
  });
  EXPECT_GT(compared, 30'000U);
}

TEST(Recorded, Nginx) {
  const std::size_t compared = compare(Format::nginx, "nginx_hash.json", [](const Node& one) {
    std::string block = "upstream cache {\n  " + text(one, "directive") + "\n";
    for (const Node& server : one.find("servers")->items) block += "  server " + server.text + ";\n";
    return block + "}\n";
  });
  EXPECT_GT(compared, 4'000U);
}

TEST(Recorded, Haproxy) {
  const std::size_t compared = compare(Format::haproxy, "haproxy_hash.json", [](const Node& one) {
    std::string section =
        "backend cache\n  balance " + text(one, "balance") + "\n  hash-type " + text(one, "hash_type") + "\n";
    for (const Node& server : one.find("servers")->items) {
      section += "  server " + text(server, "name") + " " + text(server, "addr") + " weight " +
                 text(server, "weight") + " id " + text(server, "id") + "\n";
    }
    return section;
  });
  EXPECT_GT(compared, 15'000U);
}

// What a configuration string can say: no murmur3, no spy, and the default hash by saying nothing.
TEST(Recorded, Libmemcached) {
  const std::size_t compared =
      compare(Format::libmemcached, "libmemcached.json", [](const Node& one) -> std::string {
        std::string distribution = text(one, "distribution"), hash = text(one, "hash");
        hash = hash.substr(0, hash.find('('));
        if (distribution.find("SPY") != std::string::npos ||
            distribution.find("WEIGHTED") != std::string::npos || hash == "murmur3")
          return "";
        std::string out = hash == "default" ? "" : "--HASH=" + hash + " ";
        out += distribution == "MODULA" ? "--DISTRIBUTION=modula" : "--DISTRIBUTION=consistent";
        for (const Node& node : one.find("nodes")->items) {
          out += " --SERVER=" + node.items[0].text + ":" + node.items[1].text;
          if (node.items[2].text != "0") out += "/?" + node.items[2].text;
        }
        return out;
      });
  EXPECT_GT(compared, 20'000U);
}

TEST(Recorded, RedisSlots) {
  const Node root = recording("redis_keyslot.json");
  const std::string id(40, '1');
  const auto imported = import_as(
      Format::redis_cluster, id + " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-5460 16000-16383\n" + id +
                                 " 10.0.0.2:7000@17000 master - 0 0 2 connected 5461-10922\n" + id +
                                 " 10.0.0.3:7000@17000 master - 0 0 3 connected 10923-15999\n");
  ASSERT_TRUE(imported) << imported.error().message;
  const auto snapshot = compiled(imported->front().spec);
  const Node* slots = root.find("slots");
  const Node* slot_keys = root.find("keys");
  ASSERT_TRUE(slots != nullptr && slot_keys != nullptr);
  for (std::size_t i = 0; i < slot_keys->items.size(); ++i) {
    const auto slot = base::parse_u64(slots->items[i].text).value_or(99'999);
    const std::size_t owner = slot <= 5460 || slot >= 16'000 ? 0 : slot <= 10'922 ? 1 : 2;
    EXPECT_EQ(snapshot->route(*base::from_hex(slot_keys->items[i].text)).member, owner);
  }
}

}  // namespace
}  // namespace ringshift::importing
