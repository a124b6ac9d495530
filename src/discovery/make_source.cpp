#include <fmt/format.h>

#include "discovery/file.h"
#include "discovery/options.h"
#include "discovery/static.h"

namespace ringshift::discovery {

Result<std::unique_ptr<Source>> make_source(Options options, const Surroundings&) {
  if (options.kind == "static") return make_static_source(std::move(options));
  if (options.kind == "file") return make_file_source(std::move(options));
  return fail(ErrorKind::invalid, fmt::format("there is no source of kind '{}'", options.kind));
}

}  // namespace ringshift::discovery
