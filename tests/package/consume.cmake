# Configures, builds and runs consumer/ against norma, by WAY: find_package or add_subdirectory. The latter builds the
# library once more, so it can also install it with its headers elsewhere.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(consume build)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${build} -G ${GENERATOR}
      -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${ARGN})
  run(${CMAKE_COMMAND} --build ${build} --parallel 2)
  run(${build}/consumer)
endfunction()

# Installs what `build` holds, and consumes it.
function(consume_installed build)
  run(${CMAKE_COMMAND} --install ${build} --prefix ${WORK_DIR}/prefix)
  consume(${WORK_DIR}/installed -D WAY=find_package -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
          -D CMAKE_BUILD_TYPE=Release)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
if(WAY STREQUAL "find_package")
  consume_installed(${BUILD_DIR})
else()
  # -O0: this builds the whole library once more, only to see that it links and runs.
  consume(${WORK_DIR}/build -D WAY=add_subdirectory -D NORMA_SOURCE_DIR=${SOURCE_DIR}
          -D CMAKE_CXX_FLAGS=-O0 -D CMAKE_BUILD_TYPE=None
          -D CMAKE_INSTALL_INCLUDEDIR=headers/all)
  consume_installed(${WORK_DIR}/build)
endif()
