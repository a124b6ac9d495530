# Installs the library into a fresh prefix, builds examples/embed against it with find_package, and runs it.
set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})
set(flags "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror")  # Public headers are clean for their users.
if(SANITIZE)
  string(APPEND flags " -fsanitize=${SANITIZE}")
endif()

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "'${ARGV}' ended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --build ${BUILD} --target libringshift)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix --component library)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/embed -B ${work}/embed -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${work}/prefix
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_FLAGS=${flags}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
run(${CMAKE_COMMAND} --build ${work}/embed)
run(${work}/embed/embed ${SOURCE}/examples/embed/four.yaml ${SOURCE}/examples/embed/five.yaml)

foreach(expected "user:0 -> cache-4\n" "version 0.1 -> 0.2\n" "moved: 0.2[0-9]+ of the keyspace by the exact diff, 0.2[0-9]+ of 100000 keys")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "the example did not print '${expected}' but:\n${output}")
  endif()
endforeach()
file(REMOVE_RECURSE ${work})
