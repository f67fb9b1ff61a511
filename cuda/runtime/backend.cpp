#include "norma/cuda/runtime/backend.h"

#include "norma/core/device_start.h"
#include "norma/cuda/runtime/allocator.h"
#include "norma/cuda/runtime/driver.h"

namespace norma::cuda_kernels {

namespace {

/// In the emulator, slots without a CUDA kernel are those of the CPU: every test can run on
/// cuda(0), and docs/cuda.md tells which kernels are real. NORMA_EMULATOR_REFERENCE=0 leaves the
/// slots empty, as they are on a GPU.
const Backend& cuda_backend() {
  static const Backend table = [] {
    Backend filled;
    if (driver::serves_reference_kernels()) filled = cpu_backend();
    add_kernels(filled);
    return filled;
  }();
  return table;
}

}  // namespace

void add_kernels(Backend& table) {
  add_memory_kernels(table);
  add_row_norm_kernels(table);
  add_column_norm_kernels(table);
  add_pointwise_kernels(table);
  add_elementwise_kernels(table);
  add_reduction_kernels(table);
  add_index_kernels(table);
  add_rope_kernels(table);
  add_random_kernels(table);
  add_optimizer_kernels(table);
  add_squash_kernels(table);
  add_dual_norm_kernels(table);
  add_poly_norm_kernels(table);
  add_softmax_kernels(table);
  add_matmul_kernels(table);
  add_attention_kernels(table);
}

std::string start() {
  static const std::string reason = [] {
    std::string why = driver::unavailable();
    if (why.empty()) {
      // Never destroyed: tensors in static storage may outlive every other static object.
      set_allocator(DeviceType::cuda, new DeviceAllocator);
      set_backend(DeviceType::cuda, &cuda_backend());
    }
    return why;
  }();
  return reason;
}

}  // namespace norma::cuda_kernels

namespace norma {
std::string detail::start_cuda() { return cuda_kernels::start(); }
}  // namespace norma
