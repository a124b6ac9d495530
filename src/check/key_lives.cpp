#include "check/key_lives.h"

#include <algorithm>
#include <array>

namespace ringshift::check {
namespace {

constexpr std::array<char, kKinds> kKindLetters = {'r', 'c', 'h', 'e', 'l', 's', 'z', 'x'};

}  // namespace

struct KeyLives::Life {
  Kind kind{};
  std::uint32_t number = 0;
  std::string name;
  std::uint32_t under_way = 0, unknowns = 0;
  bool given_up = false;
  std::vector<Operation> operations;
};

KeyLives::KeyLives(std::string prefix, std::uint32_t keys, Done done)
    : prefix_(std::move(prefix)),
      keys_(keys),
      operations_per_key_(static_cast<std::uint32_t>(std::clamp<std::size_t>(
          kMaxHeld / (std::size_t{keys} * kKinds), kLeastOperationsPerKey, kOperationsPerKey))),
      done_(std::move(done)),
      slots_(std::size_t{keys} * kKinds) {}

KeyLives::~KeyLives() = default;

KeyLives::Lease KeyLives::begin(Kind kind, std::uint32_t number, Operation& operation) {
  Slot& place = slot(kind, number);
  const std::lock_guard lock(place.mutex);
  if (!place.life) {
    place.life = std::make_shared<Life>();
    place.life->kind = kind;
    place.life->number = number;
    place.life->name = prefix_ + kKindLetters[static_cast<std::size_t>(kind)] + std::to_string(number) + "." +
                       std::to_string(place.generation++);
  }
  ++place.life->under_way;
  operation.kind = kind;
  operation.key = place.life->name;
  return place.life;
}

bool KeyLives::worn_out(const Life& life) const {
  // After a write of unknown outcome the deadline of a key is not known: see expiry.h.
  return life.operations.size() >= operations_per_key_ || life.unknowns >= kUnknownsPerKey ||
         (life.unknowns > 0 && life.kind == Kind::expiry);
}

void KeyLives::end(const Lease& lease, Operation operation) {
  std::vector<Operation> complete;
  {
    Slot& place = slot(lease->kind, lease->number);
    const std::lock_guard lock(place.mutex);
    if (operation.outcome == Outcome::unknown && is_write(operation.verb)) ++lease->unknowns;
    lease->operations.push_back(std::move(operation));
    if (!lease->given_up && worn_out(*lease)) {
      lease->given_up = true;
      place.life.reset();
    }
    if (--lease->under_way == 0 && lease->given_up) complete = std::move(lease->operations);
  }
  if (!complete.empty()) done_(std::move(complete));
}

void KeyLives::finish() {
  for (Slot& place : slots_) {
    if (!place.life) continue;
    if (!place.life->operations.empty()) done_(std::move(place.life->operations));
    place.life.reset();
  }
}

}  // namespace ringshift::check
