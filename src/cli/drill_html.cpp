// The report of a drill as one file that needs nothing else, neither a server nor a network; made as
// compare_html.cpp makes its own.
#include "cli/drill_report.h"

extern "C" {
extern const char ringshift_chart_js_begin[], ringshift_chart_js_end[];
extern const char ringshift_drill_page_begin[], ringshift_drill_page_end[];
}

namespace ringshift::cli::drilling {
namespace {

std::string with_all_replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::string html(const Report& report) {
  const std::string_view page(ringshift_drill_page_begin, ringshift_drill_page_end);
  const std::string library(ringshift_chart_js_begin, ringshift_chart_js_end);
  constexpr std::string_view kData = "@DATA@", kLibrary = "@CHART_JS@";
  const auto data = page.find(kData), chart = page.find(kLibrary);
  // Pieces, so that nothing in one is taken for the place of another. No browser takes the JSON for markup:
  // the page sets every text as text, and there is no < in it.
  std::string out(page.substr(0, data));
  out += with_all_replaced(json(report), "<", "\\u003c");
  out += page.substr(data + kData.size(), chart - data - kData.size());
  out += with_all_replaced(library, "</script", "<\\/script");
  out += page.substr(chart + kLibrary.size());
  return out;
}

}  // namespace ringshift::cli::drilling
