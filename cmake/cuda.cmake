# The CUDA backend (cuda/runtime and cuda/kernels), by NORMA_CUDA:
#
#   ON       compiled by nvcc; the program needs no CUDA library to start, and no GPU
#   EMULATE  the same sources compiled by the C++ compiler: kernels run in the emulator, and cuda(0)
#            is a device on every machine
#   OFF      left out
file(GLOB NORMA_CUDA_RUNTIME CONFIGURE_DEPENDS cuda/runtime/*.cpp)
file(GLOB NORMA_CUDA_KERNELS CONFIGURE_DEPENDS cuda/kernels/*.cu)
list(FILTER NORMA_CUDA_RUNTIME EXCLUDE REGEX "_driver\\.cpp$")

if(NORMA_CUDA STREQUAL "ON")
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake before 3.26 does not know nvcc's C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(NORMA_CUDA_SOURCES ${NORMA_CUDA_RUNTIME} ${NORMA_CUDA_KERNELS}
                         ${CMAKE_CURRENT_SOURCE_DIR}/cuda/runtime/cuda_driver.cpp
                         ${CMAKE_CURRENT_SOURCE_DIR}/cuda/runtime/cublaslt_driver.cpp)
elseif(NORMA_CUDA STREQUAL "EMULATE")
  set_source_files_properties(${NORMA_CUDA_KERNELS} PROPERTIES LANGUAGE CXX)
  set(NORMA_CUDA_SOURCES ${NORMA_CUDA_RUNTIME} ${NORMA_CUDA_KERNELS}
                         ${CMAKE_CURRENT_SOURCE_DIR}/cuda/runtime/emulated_driver.cpp)
elseif(NORMA_CUDA STREQUAL "OFF")
  set(NORMA_CUDA_SOURCES "")
else()
  message(FATAL_ERROR "NORMA_CUDA must be ON, EMULATE or OFF; got ${NORMA_CUDA}")
endif()

if(NORMA_CUDA_SOURCES)
  list(REMOVE_ITEM NORMA_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/ops/no_cuda.cpp)
  list(APPEND NORMA_SOURCES ${NORMA_CUDA_SOURCES})
endif()

function(norma_link_cuda target)
  if(NOT NORMA_CUDA STREQUAL "ON")
    return()
  endif()
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${NORMA_CUDA_ARCHITECTURES}"
                                             CUDA_STANDARD 20)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  # The static runtime, so that the program starts where CUDA is not installed.
  # cuBLASLt, half a gigabyte, is opened when a program first multiplies matrices on a GPU.
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()
