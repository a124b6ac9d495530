# Compiler flags and the two helpers with which folders and tests are declared.

add_library(ringshift_flags INTERFACE)
target_compile_options(ringshift_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
  # Placements must give the same bits on every machine: no fusing of a multiplication with an addition.
  -ffp-contract=off
  # GCC 12 mistakes which member of std::expected's union is alive, when enough of it is inlined (-O3), and then
  # frees the string of a moved error twice. With files joined, plan/vectors/assignments.cpp shows it.
  $<$<CXX_COMPILER_ID:GNU>:-fno-strict-aliasing>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # GCC 12 sees overlaps in string concatenation at -O3 that are not there (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # Clang blames the user of std::stable_sort for what GCC 12's header calls.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(RINGSHIFT_SANITIZE)
  add_compile_options(-fsanitize=${RINGSHIFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RINGSHIFT_SANITIZE})
  # GCC's flow warnings misfire on instrumented code.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()
add_compile_options(${RINGSHIFT_COMPILE_OPTIONS})
if(RINGSHIFT_FUZZ)
  # All code reports its coverage, or libFuzzer searches blindly. Its main() is linked to the fuzzers alone.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(RINGSHIFT_PROTOCOL_FAULTS)
  add_compile_options(-DRINGSHIFT_PROTOCOL_FAULTS=1)  # An option, so that the command line can be without it.
endif()

# With RINGSHIFT_UNITY the compiler gets several files of a folder at once: reading the same headers for each is
# most of its work. Not for folders whose files use the same private names throughout, nor for the files below
# that share a private name with a neighbour.
set(ringshift_not_united cli drill http import)
set(ringshift_alone hashing/peers/md5 net/listener net/loop placement/peers/hashring plan/vectors/cilium plan/vectors/reading
    plan/vectors/tables resize/mover topology/document_yaml)
function(ringshift_unite name)
  if(NOT RINGSHIFT_UNITY OR name IN_LIST ringshift_not_united)
    return()
  endif()
  set_target_properties(rs_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  foreach(file ${ringshift_alone})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${file}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()

# ringshift_folder(NAME deps...): the static library of src/NAME, from every .cpp in it. `deps` are the
# folders it may include and the external libraries it uses; tests/layering keeps includes to the same table.
function(ringshift_folder name)
  # Known even when it has no sources yet, so that it is never taken for an external library.
  set_property(GLOBAL APPEND PROPERTY RINGSHIFT_FOLDERS ${name})
  get_property(folders GLOBAL PROPERTY RINGSHIFT_FOLDERS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(rs_${name} STATIC ${sources})
  target_include_directories(rs_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
    PRIVATE ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(rs_${name} PRIVATE $<BUILD_INTERFACE:ringshift_flags>)
  set_target_properties(rs_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  ringshift_unite(${name})
  # The library for the command line's options takes the compiler longest of all, and nothing there is worth
  # optimising or a sanitizer's time: compiled alike in all presets, it is compiled once (by ccache). Not for
  # ThreadSanitizer: the linker may take any file's copy of an inline function, and one that is not instrumented
  # (std::shared_ptr's count, say) makes races of what is none.
  if(name STREQUAL cli AND NOT RINGSHIFT_SANITIZE STREQUAL thread)
    set_target_properties(rs_cli PROPERTIES COMPILE_OPTIONS -O1)
  endif()
  foreach(dep ${ARGN})
    if(TARGET rs_${dep})
      target_link_libraries(rs_${name} PUBLIC rs_${dep})
    elseif(NOT dep IN_LIST folders)
      target_link_libraries(rs_${name} PUBLIC ${dep})
    endif()
  endforeach()
endfunction()

# ringshift_embed(TARGET NAME FILE): the bytes of FILE in TARGET, between the symbols ringshift_NAME_begin and
# ringshift_NAME_end.
function(ringshift_embed target name file)
  set(source ${CMAKE_BINARY_DIR}/generated/embedded_${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[// Generated.
asm(R"(
.section .rodata
.global ringshift_@name@_begin
.global ringshift_@name@_end
ringshift_@name@_begin:
.incbin "@file@"
ringshift_@name@_end:
.previous
)");
]])
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${source})
endfunction()
