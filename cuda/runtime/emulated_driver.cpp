#include "norma/cuda/emulator/memory.h"
#include "norma/cuda/runtime/driver.h"
#include "norma/cuda/runtime/matmul_library.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace norma::cuda_kernels::driver {

std::string unavailable() { return {}; }

bool serves_reference_kernels() {
  const char* const text = std::getenv("NORMA_EMULATOR_REFERENCE");
  return text == nullptr || std::string_view(text) != "0";
}

void* allocate(std::size_t bytes) { return emulator::allocate_memory(bytes); }

void release(void* pointer) noexcept { emulator::release_memory(pointer); }

void copy_to_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_to_host(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

bool library_matmul(const MatmulCall&, void*) { return false; }

}  // namespace norma::cuda_kernels::driver
