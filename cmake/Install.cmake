# `cmake --install BUILD --prefix DIR`: the library as one archive with its headers and a CMake package, so that
# find_package(ringshift) gives ringshift::ringshift; and the program. Component `library` is the first alone.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(libringshift STATIC)
set_target_properties(libringshift PROPERTIES OUTPUT_NAME ringshift EXPORT_NAME ringshift LINKER_LANGUAGE CXX
                                              POSITION_INDEPENDENT_CODE ON)
foreach(folder base hashing placement topology plan)
  if(TARGET rs_${folder})
    target_sources(libringshift PRIVATE $<TARGET_OBJECTS:rs_${folder}>)
  endif()
endforeach()
target_include_directories(libringshift INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(libringshift INTERFACE cxx_std_23)
# Whole names, for the users' side: ringshift-config.cmake finds them. xxHash is compiled in.
target_link_libraries(libringshift INTERFACE
  $<INSTALL_INTERFACE:OpenSSL::Crypto> $<INSTALL_INTERFACE:yaml-cpp> $<INSTALL_INTERFACE:fmt::fmt>
  $<INSTALL_INTERFACE:Threads::Threads>)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ringshift)
install(TARGETS libringshift EXPORT ringshift ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ringshift DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT ringshift NAMESPACE ringshift:: FILE ringshift-targets.cmake DESTINATION ${package_dir}
        COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/ringshift-config-version.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/ringshift-config.cmake
              ${CMAKE_BINARY_DIR}/generated/ringshift-config-version.cmake
        DESTINATION ${package_dir} COMPONENT library)
if(TARGET ringshift)
  install(TARGETS ringshift RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
