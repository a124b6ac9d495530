// Whether the mover compares what arrived with what was sent, before anybody can see it (RESIZE.md gives no
// proof against a server that does not restore what it dumped).
//
// counts: a pass over the source that finds nothing is the proof that nothing was left behind; copies are
// what
//   RESTORE made of them. RESTORE itself refuses a payload whose checksum is wrong.
// sample, all: of one key in kVerifyOneIn, or of each, DUMP and time to live are taken at the destination in
//   the script that RESTOREs, and compared with the source's there: nobody saw the copy before. Two servers
//   may hold equal values in another order (sets and hashes whose order depends on a seed) or another
//   encoding; where the bytes differ, the copy is put aside in the same script, under `rs:copy:{k}`, and
//   digests decide that do not depend on order. Then it is put in place, if the claim still stands, or
//   dropped.
//
// Sound because nobody writes the original after HOLD (I2), and nobody the copy before it is in its place: it
// is not there yet for CLAIM and RESTORE of others. Comparing later, with the copy in place, would compare
// with what a client may have written there meanwhile. Counting keys on both sides proves nothing while
// clients create, delete and expire them; a pass that finds nothing does.
//
// What is put aside has a lifetime of kAsideMs, so that a mover that dies leaves nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringshift::transfer {

enum class Verify : std::uint8_t { counts, sample, all };
inline constexpr unsigned kVerifyOneIn = 16;

[[nodiscard]] std::string_view name(Verify verify) noexcept;
[[nodiscard]] std::optional<Verify> verify_by_name(std::string_view name) noexcept;

inline constexpr std::string_view kAsideMs = "10000";
[[nodiscard]] std::string aside_key(std::string_view key);

// KEYS: a key. Answers type and a digest of its value, or false. O(n log n) for sets and hashes.
void append_digest(std::string& out, std::string_view key);
// Puts the copy that lies aside in its place. Answers as RESTORE does; whatever it says, nothing lies aside
// afterwards.
void append_put_in_place(std::string& out, std::string_view key, std::string_view stamp,
                         std::string_view token, std::int64_t ttl_ms);
void append_drop_aside(std::string& out, std::string_view key);

}  // namespace ringshift::transfer
