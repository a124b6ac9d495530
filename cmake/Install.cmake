# `cmake --install` and find_package(ringshift) come with the library; see examples/.
