#include "placement/peers/ketama.h"

#include <charconv>
#include <cmath>

#include "hashing/peers/md5.h"

namespace ringshift::placement::peers {

std::vector<std::uint32_t> ketama_digests(std::span<const Server> servers) {
  std::uint64_t total = 0;
  for (const Server& server : servers) total += static_cast<std::uint64_t>(server.weight);
  std::vector<std::uint32_t> digests;
  for (const Server& server : servers) {
    const float share = static_cast<float>(server.weight) / static_cast<float>(total);
    const float each = share * static_cast<float>(kKetamaPoints) / 4.0F * static_cast<float>(servers.size());
    digests.push_back(static_cast<std::uint32_t>(std::floor(each)));
  }
  return digests;
}

void add_digest(Points32& points, std::string_view label, MemberIndex member) {
  for (const std::uint32_t word : hashing::peers::md5(label)) points.push_back({word, member});
}

std::string numbered(std::string_view prefix, std::uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  std::string out(prefix);
  out.append(digits, end);
  return out;
}

std::vector<MemberIndex> by_weight(std::span<const Server> servers) {
  std::vector<MemberIndex> table;
  for (const Server& server : servers) {
    table.insert(table.end(), static_cast<std::size_t>(server.weight), server.index);
  }
  return table;
}

std::vector<MemberIndex> one_each(std::span<const Server> servers) {
  std::vector<MemberIndex> table;
  for (const Server& server : servers) table.push_back(server.index);
  return table;
}

}  // namespace ringshift::placement::peers
