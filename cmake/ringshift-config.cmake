# find_package(ringshift): the target ringshift::ringshift. Needs libssl-dev, libyaml-cpp-dev and libfmt-dev.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL)
find_dependency(yaml-cpp)
find_dependency(fmt)
include(${CMAKE_CURRENT_LIST_DIR}/ringshift-targets.cmake)
