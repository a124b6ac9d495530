// `ringshift compare --html`: one file that needs nothing else, neither a server nor a network.
//
// The page (pages/compare.html) and Chart.js are in the program; the figures go in as JSON that no browser
// can take for markup: every < is written as \u003c, and all beyond ASCII is escaped. The page sets every
// name as text, never as HTML.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/compare.h"

extern "C" {
extern const char ringshift_chart_js_begin[], ringshift_chart_js_end[];
extern const char ringshift_compare_page_begin[], ringshift_compare_page_end[];
}

namespace ringshift::cli::compare {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::string html(const Report& report) {
  const std::string_view page(ringshift_compare_page_begin, ringshift_compare_page_end);
  const std::string library(ringshift_chart_js_begin, ringshift_chart_js_end);
  constexpr std::string_view kData = "@DATA@", kLibrary = "@CHART_JS@";
  const auto data = page.find(kData), chart = page.find(kLibrary);
  // Pieces, so that nothing in one is taken for the place of another.
  std::string out(page.substr(0, data));
  out += replaced(json(report), "<", "\\u003c");
  out += page.substr(data + kData.size(), chart - data - kData.size());
  out += replaced(library, "</script", "<\\/script");
  out += page.substr(chart + kLibrary.size());
  return out;
}

Status write_whole(const std::string& path, std::string_view text) {
  const auto failed = [&](const char* what) {
    return fail(ErrorKind::internal, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
  };
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return failed("cannot be written");
  // mkstemp's files are the owner's alone; this one is as any other.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  constexpr mode_t kAll = 0666;
  Status status;
  if (::fchmod(fd, kAll & ~mask) != 0) status = failed("cannot be made readable");
  for (std::size_t done = 0; status && done < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) status = failed("cannot be written");
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  if (::close(fd) != 0 && status) status = failed("cannot be written");
  if (status && std::rename(temporary.c_str(), path.c_str()) != 0)
    status = failed("cannot be renamed into place");
  if (!status) ::unlink(temporary.c_str());
  return status;
}

}  // namespace ringshift::cli::compare
