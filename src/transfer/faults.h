// Switches that break the resize protocol on purpose, so that the checkers can prove that they notice.
// Read once from RINGSHIFT_BREAK (names with commas between). Only in builds with RINGSHIFT_PROTOCOL_FAULTS;
// in all others broken() is a constant false and the compiler removes what depends on it.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::transfer {

enum class Fault : std::uint8_t {
  no_hold,                  // The controller publishes DUAL without a barrier, a second late.
  write_without_pull,       // A write in DUAL goes to NEW at once.
  restore_without_token,    // RESTORE does not look at the claim.
  no_seal_after_busy,       // A pull that found the key on NEW counts without a seal.
  compare_and_delete_seal,  // The seal removes only the claim of its own token.
  wrong_copy,               // The mover's copies are not what their originals are.
  no_fence,                 // HOLD ends without cutting off who did not acknowledge.
  no_purge,                 // Leftovers stay on NEW.
  no_gate,                  // NEW is published with the gates open.
  exists_on_new_is_enough,  // A write to a key that NEW has does not wait for OLD to let go, nor seal.
  read_miss_without_seal,   // A read that found nothing on OLD asks NEW without a seal.
  new_first_only,           // A read that found nothing on NEW does not ask OLD.
};

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
[[nodiscard]] bool broken(Fault fault) noexcept;
void set_broken(Fault fault, bool on) noexcept;  // For tests inside one process.
// Ends the process here as kill -9 would, if RINGSHIFT_CRASH_AT says "point", or "point:3" for the third
// time.
void crash_point(std::string_view point) noexcept;
#else
[[nodiscard]] constexpr bool broken(Fault) noexcept { return false; }
constexpr void crash_point(std::string_view) noexcept {}
#endif

}  // namespace ringshift::transfer
