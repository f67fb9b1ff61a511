# Options, and the compile flags that follow from them.
if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
  set(NORMA_IS_TOP_LEVEL ON)
  set(NORMA_DEFAULT_MARCH native)
else()
  set(NORMA_IS_TOP_LEVEL OFF)
  set(NORMA_DEFAULT_MARCH x86-64-v3)
endif()

set(NORMA_CUDA OFF CACHE STRING "CUDA backend: ON, EMULATE (kernels run on the CPU) or OFF")
set_property(CACHE NORMA_CUDA PROPERTY STRINGS OFF ON EMULATE)
set(NORMA_CUDA_ARCHITECTURES "80;90;100;120" CACHE STRING
    "GPUs that NORMA_CUDA=ON compiles for, as CMAKE_CUDA_ARCHITECTURES")
option(NORMA_BUILD_TESTS "Build the tests" ${NORMA_IS_TOP_LEVEL})
option(NORMA_BUILD_EXAMPLES "Build the example programs" ${NORMA_IS_TOP_LEVEL})
option(NORMA_BUILD_BENCHMARKS "Build the benchmarks (needs Google Benchmark)" OFF)
option(NORMA_WERROR "Treat warnings as errors" OFF)
set(NORMA_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined")
set(NORMA_MARCH ${NORMA_DEFAULT_MARCH} CACHE STRING
    "Instruction set: native (this machine only), x86-64-v3 (any x86-64 since 2013), or empty")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

if(NORMA_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  find_program(NORMA_CCACHE ccache)
  if(NORMA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${NORMA_CCACHE})
  endif()
  # Precompiled headers save a third of a build from scratch. ccache saves more of the next one, and
  # does not go together with them.
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endif()

include(CheckCXXCompilerFlag)

add_library(norma_warnings INTERFACE)
# Not of CUDA sources: what nvcc makes of them for the host compiler is full of warnings that are not theirs.
set(cxx "$<COMPILE_LANGUAGE:CXX>")
target_compile_options(norma_warnings INTERFACE "$<${cxx}:-Wall;-Wextra;-Wpedantic;-Wshadow>"
                       $<$<AND:${cxx},$<BOOL:${NORMA_WERROR}>>:-Werror>)

# GCC 12 takes std::string's short buffer for out of bounds once it is inlined (GCC bugs 105329, 105651):
# the warnings that find it report nothing else here.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(norma_warnings INTERFACE
                         "$<${cxx}:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>")
endif()

# How vectors of 32 bytes are passed without AVX changed long ago; here they are only passed inline.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(norma_warnings INTERFACE $<${cxx}:-Wno-psabi>)
endif()

# What GCC's optimizer believes to see depends on the instruction set and on what it inlined, so that a
# clean build here says nothing about another machine: those stay warnings.
if(NORMA_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(warning array-bounds dangling-pointer free-nonheap-object maybe-uninitialized nonnull restrict
                  stringop-overflow stringop-overread uninitialized use-after-free)
    check_cxx_compiler_flag(-Wno-error=${warning} NORMA_HAVE_WNO_ERROR_${warning})
    if(NORMA_HAVE_WNO_ERROR_${warning})
      target_compile_options(norma_warnings INTERFACE $<${cxx}:-Wno-error=${warning}>)
    endif()
  endforeach()
endif()

if(NORMA_SANITIZE)
  add_compile_options(-fsanitize=${NORMA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${NORMA_SANITIZE})
  # AddressSanitizer stops at null pointers and overruns itself, and vptr is left to other builds: these
  # three checks took 11 % and 30 % of the compile time of two files.
  if(NORMA_SANITIZE MATCHES "address")
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
endif()

# The instruction set holds for every source of this project alike, not only for the kernels: an
# inline function compiled twice with different flags is one function to the linker, which keeps
# either.
if(NORMA_MARCH)
  string(MAKE_C_IDENTIFIER "NORMA_HAVE_MARCH_${NORMA_MARCH}" have_march)
  check_cxx_compiler_flag(-march=${NORMA_MARCH} ${have_march})
  if(${have_march})
    add_compile_options(-march=${NORMA_MARCH})
    # GCC's tuning prefers 256-bit vectors even where 512-bit ones are as fast per instruction.
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -march=${NORMA_MARCH})
    check_cxx_source_compiles("
      #ifndef __AVX512F__
      #error no AVX-512
      #endif
      int main() {}" ${have_march}_AVX512)
    unset(CMAKE_REQUIRED_FLAGS)
    if(${have_march}_AVX512)
      add_compile_options(-mprefer-vector-width=512)
    endif()
  endif()
endif()

# What lets GCC vectorize the kernels and keeps IEEE infinities and NaN: attention masks are -inf, and
# anomaly mode looks for NaN. So never -ffast-math nor -ffinite-math-only.
set(NORMA_KERNEL_FLAGS -fno-math-errno -fno-trapping-math -ffp-contract=fast)
