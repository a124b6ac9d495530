#include "admin/dashboard.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "hashing/sha256.h"

#if RINGSHIFT_DASHBOARD
// From web/, by CMake: each file as it is, and compressed.
#define RINGSHIFT_WEB_FILE(name)                                                        \
  extern "C" {                                                                          \
  extern const char ringshift_web_##name##_begin[], ringshift_web_##name##_end[];       \
  extern const char ringshift_web_##name##_gz_begin[], ringshift_web_##name##_gz_end[]; \
  }                                                                                     \
  static_assert(true)
RINGSHIFT_WEB_FILE(index_html);
RINGSHIFT_WEB_FILE(app_js);
RINGSHIFT_WEB_FILE(app_css);
RINGSHIFT_WEB_FILE(boot_js);
RINGSHIFT_WEB_FILE(favicon_svg);
#endif

namespace ringshift::admin {
namespace {

struct DashboardFile {
  std::string_view path, content_type, plain, gzip;
  std::string etag, gzip_etag;  // Quoted.
};

std::string etag_of(std::string_view bytes) { return "\"" + hashing::sha256_hex(bytes).substr(0, 32) + "\""; }

#if RINGSHIFT_DASHBOARD
#define RINGSHIFT_WEB_ENTRY(path, type, name)                                            \
  dashboard_file(path, type, {ringshift_web_##name##_begin, ringshift_web_##name##_end}, \
                 {ringshift_web_##name##_gz_begin, ringshift_web_##name##_gz_end})

DashboardFile dashboard_file(std::string_view path, std::string_view type, std::string_view plain,
                             std::string_view gzip) {
  return {path, type, plain, gzip, etag_of(plain), etag_of(gzip)};
}

std::array<DashboardFile, 5> dashboard_files() {
  return {RINGSHIFT_WEB_ENTRY("/", "text/html; charset=utf-8", index_html),
          RINGSHIFT_WEB_ENTRY("/app.js", "text/javascript; charset=utf-8", app_js),
          RINGSHIFT_WEB_ENTRY("/app.css", "text/css; charset=utf-8", app_css),
          RINGSHIFT_WEB_ENTRY("/boot.js", "text/javascript; charset=utf-8", boot_js),
          RINGSHIFT_WEB_ENTRY("/favicon.svg", "image/svg+xml", favicon_svg)};
}
#else
std::array<DashboardFile, 1> dashboard_files() {
  constexpr std::string_view kPage =
      "<!doctype html><meta charset=\"utf-8\"><title>Ringshift</title><p>This program was built without its "
      "dashboard (-DRINGSHIFT_DASHBOARD=OFF). The same figures: <code>ringshift top</code>, <code>ringshift "
      "resize status</code>, and this server's <code>/metrics</code>.</p>\n";
  return {DashboardFile{"/", "text/html; charset=utf-8", kPage, {}, etag_of(kPage), {}}};
}
#endif

// Whether an Accept-Encoding header allows gzip. One that names it with q=0 is all that forbids it.
bool allows_gzip(std::string_view accepted) {
  const auto at = accepted.find("gzip");
  if (at == std::string_view::npos) return false;
  std::string_view rest = accepted.substr(at + 4);
  rest = rest.substr(0, rest.find(','));
  const auto q = rest.find("q=");
  return q == std::string_view::npos ||
         rest.substr(q + 2).find_first_of("123456789") != std::string_view::npos;
}

void add_safety_headers(http::Exchange& exchange) {
  exchange.add_header("Content-Security-Policy",
                      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                      "object-src 'none'");
  exchange.add_header("X-Content-Type-Options", "nosniff");
  exchange.add_header("Referrer-Policy", "no-referrer");
}

void send_file(const DashboardFile& file, const http::Request& request, http::Exchange& exchange) {
  const bool gzip = !file.gzip.empty() && allows_gzip(request.header("Accept-Encoding").value_or(""));
  const std::string& etag = gzip ? file.gzip_etag : file.etag;
  exchange.add_header("ETag", etag);
  exchange.add_header("Cache-Control", "no-cache");  // Kept, and asked for again each time.
  exchange.add_header("Vary", "Accept-Encoding");
  if (request.header("If-None-Match").value_or("").find(etag) != std::string::npos) {
    exchange.reply(304, file.content_type, "");
    return;
  }
  if (gzip) exchange.add_header("Content-Encoding", "gzip");
  exchange.reply(200, file.content_type, gzip ? file.gzip : file.plain);
}

}  // namespace

http::Handler dashboard() {
  return [files = std::make_shared<const decltype(dashboard_files())>(dashboard_files())](
             const http::Request& request, http::Exchange& exchange) {
    add_safety_headers(exchange);
    const std::string_view path = request.path == "/index.html" ? "/" : std::string_view(request.path);
    for (const DashboardFile& file : *files) {
      if (file.path == path) return send_file(file, request, exchange);
    }
    exchange.reply(404, "text/plain; charset=utf-8",
                   "nothing is at " + std::string(path.substr(0, 200)) + ": the dashboard is at /\n");
  };
}

}  // namespace ringshift::admin
