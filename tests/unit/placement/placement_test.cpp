#include "placement/placement.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace ringshift::placement {
namespace {

using Ids = std::vector<std::string>;

std::vector<Member> equal(const Ids& ids) {
  std::vector<Member> out;
  for (const std::string& id : ids) out.push_back({id, 1.0, static_cast<MemberIndex>(out.size())});
  return out;
}

TEST(Ring, PointIsTheHashOfIdZeroAndLittleEndianNumber) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(Ring::point_hash("cache-1", 0x01020304), hashing::xxh3("cache-1\0\4\3\2\1"sv));
  const Ids ids{"cache-1"};
  const Ring ring(equal(ids), 2);
  const std::array<std::uint64_t, 2> expected{hashing::xxh3("cache-1\0\0\0\0\0"sv),
                                              hashing::xxh3("cache-1\0\1\0\0\0"sv)};
  ASSERT_EQ(ring.size(), 2U);
  EXPECT_EQ(ring.points()[0].hash, std::min(expected[0], expected[1]));
  EXPECT_EQ(ring.points()[1].hash, std::max(expected[0], expected[1]));
}

// Computed by another program (Python, libxxhash by ctypes, bisect over the sorted points). A change here
// moves every user's keys.
TEST(Ring, Pinned) {
  const Ids ids{"cache-1", "cache-2", "cache-3", "cache-4"};
  const Ring ring(equal(ids), 256);
  std::string owners;
  for (int i = 0; i < 32; ++i)
    owners += static_cast<char>('1' + ring.owner(hashing::xxh3("user:" + std::to_string(i))));
  EXPECT_EQ(owners, "41142424231224441331444411114311");
}

TEST(Ring, OwnerAtThePointsThemselves) {
  const Ids ids{"a", "b", "c"};
  const Ring ring(equal(ids), 16);
  const auto points = ring.points();
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(ring.owner(points[i].hash), points[i].member) << "a point owns its own hash";
    EXPECT_EQ(ring.owner(points[i].hash + 1), points[(i + 1) % points.size()].member)
        << "and nothing beyond it";
  }
  EXPECT_EQ(ring.owner(0), points[0].member);
  EXPECT_EQ(ring.owner(std::numeric_limits<std::uint64_t>::max()), points[0].member) << "past the end wraps";
}

TEST(Ring, EmptyAndTiny) {
  const Ring none({}, 256);
  EXPECT_EQ(none.size(), 0U);
  for (const std::uint64_t hash : {0ULL, 1ULL << 63, ~0ULL}) EXPECT_EQ(none.owner(hash), kNoMember);
  const Ids ids{"only"};
  const Ring one(equal(ids), 1);
  for (const std::uint64_t hash : {0ULL, 1ULL << 63, ~0ULL}) EXPECT_EQ(one.owner(hash), 0U);
}

// The index against the sorted array, at every point, beside it and in between, alone and in batches.
void expect_index_agrees(const Ring& ring) {
  const auto points = ring.points();
  std::vector<std::uint64_t> hashes{0, ~0ULL};
  for (const Ring::Point& point : points) {
    for (const std::uint64_t offset : {~0ULL, 0ULL, 1ULL}) hashes.push_back(point.hash + offset);
  }
  for (std::uint64_t i = 0; i < 20'000; ++i) hashes.push_back(hashing::mix(i));
  std::vector<MemberIndex> owners(hashes.size());
  ring.owners(hashes, owners);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const std::size_t first = ring.first_point(hashes[i]);
    const MemberIndex expected = points[first == points.size() ? 0 : first].member;
    wrong += ring.owner(hashes[i]) != expected || owners[i] != expected ? 1U : 0U;
  }
  EXPECT_EQ(wrong, 0U) << "of " << hashes.size();
}

TEST(Ring, TheIndexAgreesWithTheSortedPoints) {
  std::vector<std::string> ids;
  for (int i = 0; i < 300; ++i) ids.push_back("cache-" + std::to_string(i));
  for (const std::size_t members : {1U, 2U, 37U, 300U}) {
    std::vector<std::string> some(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(members));
    expect_index_agrees(Ring(equal(some), 256));
  }
}

// Points that crowd: next to each other, at both ends, and more of them in one part of the index (and of the
// sort) than it holds.
TEST(Ring, CrowdedPointsAreFoundToo) {
  for (const std::uint64_t start : {0ULL, 1ULL << 40, (1ULL << 63) - 700, ~0ULL - 2999}) {
    for (const std::uint64_t stride : {1ULL, 977ULL}) {
      std::vector<Ring::Point> points;
      for (MemberIndex i = 0; i < 3000 && (i == 0 || start + i * stride > start); ++i)
        points.push_back({start + i * stride, i % 7});
      points.push_back({start - 1'000'000, 8});
      expect_index_agrees(Ring(std::move(points)));
    }
  }
  for (MemberIndex count = 1; count < 40; ++count) {  // Around the number of points that fit a line.
    std::vector<Ring::Point> points;
    for (MemberIndex i = 0; i < count; ++i) points.push_back({(1ULL << 33) + i * (1ULL << 20), i});
    expect_index_agrees(Ring(std::move(points)));
  }
}

TEST(Ring, PointCountRounds) {
  EXPECT_EQ(Ring::point_count(1.0, 256), 256U);
  EXPECT_EQ(Ring::point_count(0.5, 3), 2U) << "halves round away from zero";
  EXPECT_EQ(Ring::point_count(0.001, 256), 0U);
}

TEST(Modulo, RepeatsByWeightInOrder) {
  const std::array<Member, 3> members{{{"a", 2, 0}, {"b", 1, 1}, {"c", 3, 2}}};
  const Modulo modulo(members);
  std::string owners;
  for (std::uint64_t hash = 0; hash < 8; ++hash) owners += "abc"[modulo.owner(hash)];
  EXPECT_EQ(owners, "aabcccaa");
}

TEST(Slots, EqualRangesAreThoseOfRedisCli) {
  const Ids ids{"a", "b", "c"};
  const Slots slots(equal(ids));
  // redis-cli --cluster create: 0-5460, 5461-10922, 10923-16383.
  EXPECT_EQ(slots.owner(5460), 0U);
  EXPECT_EQ(slots.owner(5461), 1U);
  EXPECT_EQ(slots.owner(10922), 1U);
  EXPECT_EQ(slots.owner(10923), 2U);
  EXPECT_EQ(slots.owner(16383), 2U);
}

TEST(Placement, TagThenHashThenOwner) {
  const Ids ids{"a", "b", "c", "d"};
  const std::vector<Member> members = equal(ids);
  const std::array<Placement, 3> all{Placement(hashing::HashTag("{}"), Ring(members, 64)),
                                     Placement(hashing::HashTag("{}"), Modulo(members)),
                                     Placement(hashing::HashTag("{}"), Slots(members))};
  for (const Placement& placement : all) {
    for (int i = 0; i < 200; ++i) {
      const std::string tag = std::to_string(i);
      EXPECT_EQ(placement.owner("x{" + tag + "}y"), placement.owner("{" + tag + "}"));
      EXPECT_EQ(placement.owner(tag), placement.owner_of(placement.hash(tag)));
      MemberIndex first = kNoMember;
      placement.walk(placement.hash(tag), [&](MemberIndex member) {
        first = member;
        return true;
      });
      EXPECT_EQ(first, placement.owner(tag)) << "a walk begins at the owner";
    }
  }
}

}  // namespace
}  // namespace ringshift::placement
