#include "norma/cuda/kernels/memory.h"

#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/driver.h"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

void fill_tensor(const Tensor& out, double value) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    fill<T>(out.data<T>(), out.numel(), static_cast<T>(value), nullptr);
  });
}

/// Dimensions from the outermost to the innermost by destination stride, merged where both sides
/// run on without a gap.
CopyShape copy_shape(const Tensor& out, const Tensor& source) {
  struct Dim {
    std::int64_t size, to, from;
  };
  std::array<Dim, CopyShape::max_rank> dims{};
  std::size_t rank = 0;
  for (std::int64_t d = 0; d < out.dim(); ++d)
    if (out.shape()[d] != 1) dims[rank++] = {out.shape()[d], out.strides()[d], source.strides()[d]};
  std::stable_sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank),
                   [](const Dim& a, const Dim& b) { return a.to > b.to; });
  CopyShape shape;
  shape.count = out.numel();
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim& dim = dims[i];
    if (shape.rank > 0) {
      const auto last = static_cast<std::size_t>(shape.rank - 1);
      if (shape.to[last] == dim.to * dim.size && shape.from[last] == dim.from * dim.size) {
        shape.sizes[last] *= dim.size;
        shape.to[last] = dim.to;
        shape.from[last] = dim.from;
        continue;
      }
    }
    const auto next = static_cast<std::size_t>(shape.rank++);
    shape.sizes[next] = dim.size;
    shape.to[next] = dim.to;
    shape.from[next] = dim.from;
  }
  return shape;
}

void copy_tensor(const Tensor& out, const Tensor& source) {
  const CopyShape shape = copy_shape(out, source);
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
