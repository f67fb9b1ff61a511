# Configures, builds and runs consumer/ against norma, by WAY: find_package or add_subdirectory.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(options -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
            -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D WAY=${WAY})
if(WAY STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
  list(APPEND options -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D CMAKE_BUILD_TYPE=Release)
else()
  # -O0: this builds the whole library once more, only to see that it links and runs.
  list(APPEND options -D NORMA_SOURCE_DIR=${SOURCE_DIR} -D CMAKE_CXX_FLAGS=-O0
                      -D CMAKE_BUILD_TYPE=None)
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK_DIR}/build ${options})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --parallel 2)
run(${WORK_DIR}/build/consumer)
