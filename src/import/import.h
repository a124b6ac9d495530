// Another program's configuration as specs of ours, under which every key belongs to the server that had it.
//
// Invariant: what decides the owner of a key is carried over exactly or refused, with its place and what to
// do about it; what does not is carried over or named in a note. Nothing is dropped in silence, and each spec
// passes topology's own validation. Pure: no file, no socket; any thread.
// Bounds: kMaxTextBytes of text, kMaxPools pools, kMaxNotes notes a pool; members as topology bounds them.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/mark.h"
#include "ringshift/topology.h"

namespace ringshift::importing {

inline constexpr std::size_t kMaxTextBytes = 8U << 20;
inline constexpr std::size_t kMaxPools = 1024;
inline constexpr std::size_t kMaxNotes = 4096;

enum class Format { nutcracker, libmemcached, nginx, haproxy, redis_cluster };

inline constexpr auto kFormats =
    std::to_array<std::pair<std::string_view, Format>>({{"nutcracker", Format::nutcracker},
                                                        {"libmemcached", Format::libmemcached},
                                                        {"nginx", Format::nginx},
                                                        {"haproxy", Format::haproxy},
                                                        {"redis-cluster", Format::redis_cluster}});

[[nodiscard]] std::string_view name_of(Format format) noexcept;
// What the text looks like; nullopt when like none of them.
[[nodiscard]] std::optional<Format> guess(std::string_view text);

// What a spec cannot say, or what was assumed.
struct Note {
  Mark mark;
  std::string words;  // The source's own.
  std::string text;   // Why it was not carried over and what to do.
};

struct Imported {
  std::string source;  // The pool, upstream or backend as the source names it.
  topology::Spec spec;
  std::vector<Note> notes;
};

struct Request {
  Format format = Format::nutcracker;
  std::string_view place;  // The file's name, for errors.
  std::string pool;        // Only this one; "" for all.
  std::string cluster;     // The spec's cluster; "" for the pool's name.
};

// Never empty. Errors are "place:line:column: ...".
[[nodiscard]] Result<std::vector<Imported>> import_text(std::string_view text, const Request& request);

// The spec as YAML that parse_spec reads back to the same spec, after a comment of where it came from and
// what was not carried over.
[[nodiscard]] std::string to_yaml(const Imported& imported, Format format, std::string_view place);

}  // namespace ringshift::importing
