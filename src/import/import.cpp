#include "import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "import/draft.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

Drafts read(std::string_view text, const Request& request) {
  switch (request.format) {
    case Format::nutcracker:
      return read_nutcracker(text, request);
    case Format::libmemcached:
      return read_libmemcached(text, request);
    case Format::nginx:
      return read_nginx(text, request);
    case Format::haproxy:
      return read_haproxy(text, request);
    case Format::redis_cluster:
      break;
  }
  return read_redis_cluster(text, request);
}

}  // namespace

std::string_view name_of(Format format) noexcept {
  const auto found = std::ranges::find(kFormats, format, &std::pair<std::string_view, Format>::second);
  return found == kFormats.end() ? "" : found->first;
}

Result<std::vector<Imported>> import_text(std::string_view text, const Request& request) {
  if (text.size() > kMaxTextBytes) {
    return refuse(request.place, {},
                  fmt::format("{} bytes are more than the {} allowed: is it the right file?", text.size(),
                              kMaxTextBytes));
  }
  Drafts drafts = read(text, request);
  if (!drafts) return std::unexpected(drafts.error());
  if (drafts->size() > kMaxPools) {
    return refuse(request.place, (*drafts)[kMaxPools].mark,
                  fmt::format("more than {} pools: name one by --pool", kMaxPools));
  }
  if (drafts->empty()) {
    return request.pool.empty() ? refuse(request.place, {},
                                         fmt::format("nothing of {}'s to import here: is it the right file, "
                                                     "and --from the right format?",
                                                     name_of(request.format)))
                                : refuse(request.place, {},
                                         fmt::format("there is no pool {} here: see the names in the file",
                                                     topology::shown(request.pool)));
  }
  if (drafts->size() > 1 && !request.cluster.empty()) {
    std::vector<std::string> names;
    for (const Draft& draft : *drafts) names.push_back(draft.source);
    if (names.size() > 10) names.resize(10);
    return refuse(request.place, (*drafts)[1].mark,
                  fmt::format("--cluster names one cluster and here are {} pools: choose one by --pool ({})",
                              drafts->size(), fmt::join(names, ", ")));
  }
  std::vector<Imported> out;
  for (Draft& draft : *drafts) {
    Result<Imported> one = finish(std::move(draft), request);
    if (!one) return std::unexpected(one.error());
    out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace ringshift::importing
