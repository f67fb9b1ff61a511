#include "norma/cuda/kernels/memory.h"

#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/driver.h"
#include "norma/cuda/runtime/strided.h"

namespace norma::cuda_kernels {

namespace {

void fill_tensor(const Tensor& out, double value) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    fill<T>(out.data<T>(), out.numel(), static_cast<T>(value), nullptr);
  });
}

void copy_tensor(const Tensor& out, const Tensor& source) {
  const auto shape = strided_shape<2>(out.shape(), {out.strides(), source.strides()});
  visit_all(out.dtype(), [&]<class To>(TypeTag<To>) {
    visit_all(source.dtype(), [&]<class From>(TypeTag<From>) {
      copy<To, From>(out.data<To>(), source.data<From>(), shape, nullptr);
    });
  });
}

void copy_from_cpu(const Tensor& out, const Tensor& source) {
  if (out.numel() > 0) driver::copy_to_device(out.raw_data(), source.raw_data(), out.nbytes());
}
void copy_to_cpu(const Tensor& out, const Tensor& source) {
  if (out.numel() > 0) driver::copy_to_host(out.raw_data(), source.raw_data(), out.nbytes());
}

}  // namespace

void add_memory_kernels(Backend& table) {
  table.fill = fill_tensor;
  table.copy = copy_tensor;
  table.copy_from_cpu = copy_from_cpu;
  table.copy_to_cpu = copy_to_cpu;
}

}  // namespace norma::cuda_kernels
