# Third-party packages. Debian names stand in the Makefile.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)

# oneDNN by hand: Debian's dnnl config demands OpenCL headers, even under QUIET.
add_library(norma_gemm_libraries INTERFACE)
find_library(NORMA_DNNL_LIBRARY dnnl)
find_path(NORMA_DNNL_INCLUDE dnnl.h)
if(NORMA_DNNL_LIBRARY AND NORMA_DNNL_INCLUDE)
  target_link_libraries(norma_gemm_libraries INTERFACE ${NORMA_DNNL_LIBRARY})
  target_include_directories(norma_gemm_libraries INTERFACE ${NORMA_DNNL_INCLUDE})
  target_compile_definitions(norma_gemm_libraries INTERFACE NORMA_HAVE_DNNL)
endif()
find_package(BLAS REQUIRED)
target_link_libraries(norma_gemm_libraries INTERFACE BLAS::BLAS)
find_path(NORMA_CBLAS_INCLUDE cblas.h PATH_SUFFIXES x86_64-linux-gnu openblas)
target_include_directories(norma_gemm_libraries INTERFACE ${NORMA_CBLAS_INCLUDE})
