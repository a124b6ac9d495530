# The folders of src/ in dependency order, each with what it may use. The same table is in
# tests/layering/layers.txt, which checks the includes; change both together.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(FMT REQUIRED IMPORTED_TARGET fmt)

# The library.
ringshift_folder(base PkgConfig::FMT Threads::Threads)
ringshift_folder(hashing base PkgConfig::XXHASH OpenSSL::Crypto)
ringshift_folder(placement hashing)
ringshift_folder(topology placement nlohmann_json::nlohmann_json yaml-cpp)
ringshift_folder(plan topology)
if(RINGSHIFT_LIBRARY_ONLY)
  return()
endif()

# The program.
find_package(CURL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent libevent_pthreads)
ringshift_folder(telemetry base)
ringshift_folder(protocol base)
ringshift_folder(net base PkgConfig::EVENT OpenSSL::SSL)
ringshift_folder(http net PkgConfig::EVENT CURL::libcurl)
ringshift_folder(store base SQLite::SQLite3)
ringshift_folder(registry store http nlohmann_json::nlohmann_json)
ringshift_folder(coord http topology CURL::libcurl nlohmann_json::nlohmann_json)
ringshift_folder(backend protocol net topology telemetry)
ringshift_folder(transfer backend)
ringshift_folder(proxy transfer backend)
ringshift_folder(resize transfer coord plan nlohmann_json::nlohmann_json)
ringshift_folder(drill backend SQLite::SQLite3)
ringshift_folder(import topology yaml-cpp)
ringshift_folder(cli topology proxy resize registry drill coord plan import CLI11::CLI11 spdlog::spdlog nlohmann_json::nlohmann_json)

if(TARGET rs_cli)
  # What `ringshift compare --html` writes: the page, and the library that draws its charts.
  find_file(RINGSHIFT_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
            NO_DEFAULT_PATH)
  if(NOT RINGSHIFT_CHART_JS)
    message(FATAL_ERROR "Chart.js is missing: run scripts/setup, or apt-get install libjs-chart.js, or give its "
                        "minified file by -DRINGSHIFT_CHART_JS=FILE")
  endif()
  ringshift_embed(rs_cli chart_js ${RINGSHIFT_CHART_JS})
  ringshift_embed(rs_cli compare_page ${CMAKE_SOURCE_DIR}/src/cli/pages/compare.html)
  add_executable(ringshift src/main.cpp)
  target_link_libraries(ringshift PRIVATE rs_cli ringshift_flags)
endif()
