# The dashboard: web/ built by scripts/web (Node, npm, Vite) and embedded in rs_admin, each file as it is and
# compressed. The build of web/ itself is shared by all presets and done once for each change of it (build/web).
function(ringshift_dashboard target)
  if(NOT RINGSHIFT_DASHBOARD)
    target_compile_definitions(${target} PRIVATE RINGSHIFT_DASHBOARD=0)
    return()
  endif()
  find_program(RINGSHIFT_NODE node)
  find_program(RINGSHIFT_NPM npm)
  if(NOT RINGSHIFT_NODE OR NOT RINGSHIFT_NPM)
    message(FATAL_ERROR "node and npm are missing, which build the dashboard: run scripts/setup, or apt-get install "
                        "nodejs npm, or build without it by -DRINGSHIFT_DASHBOARD=OFF")
  endif()
  target_compile_definitions(${target} PRIVATE RINGSHIFT_DASHBOARD=1)
  set(site ${CMAKE_BINARY_DIR}/generated/web)
  set(outputs)
  foreach(file index.html app.js app.css boot.js favicon.svg)
    list(APPEND outputs ${site}/${file} ${site}/${file}.gz)
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/* ${CMAKE_SOURCE_DIR}/web/public/*)
  add_custom_command(OUTPUT ${outputs} COMMAND ${CMAKE_SOURCE_DIR}/scripts/web ${site}
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/scripts/web ${CMAKE_SOURCE_DIR}/web/index.html
            ${CMAKE_SOURCE_DIR}/web/tsconfig.json ${CMAKE_SOURCE_DIR}/web/vite.config.ts ${CMAKE_SOURCE_DIR}/web/package-lock.json
    COMMENT "The dashboard (web/)" VERBATIM)
  add_custom_target(dashboard_site DEPENDS ${outputs})
  add_dependencies(${target} dashboard_site)
  foreach(file ${outputs})
    cmake_path(GET file FILENAME name)
    string(REPLACE "." "_" name ${name})
    ringshift_embed(${target} web_${name} ${file})
  endforeach()
endfunction()
