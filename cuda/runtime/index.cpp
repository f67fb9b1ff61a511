#include "norma/cuda/kernels/index.h"

#include "norma/core/factory.h"
#include "norma/cuda/kernels/reduction.h"
#include "norma/cuda/kernels/sort.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/driver.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

void run_index_range(const Tensor& index, std::int64_t* low, std::int64_t* high) {
  const ReduceShape shape{1, index.numel(), 1};
  const TensorOptions options{.dtype = int64, .device = index.device()};
  const Tensor workspace = empty({workspace_elements(shape)}, options), range = empty({2}, options);
  std::int64_t* const on_device = range.data<std::int64_t>();
  for (const ReduceOp op : {ReduceOp::amin, ReduceOp::amax})
    reduce(op, shape, index.data<std::int64_t>(), workspace.data<std::int64_t>(),
           on_device + (op == ReduceOp::amax ? 1 : 0), nullptr);
  std::int64_t values[2];
  driver::copy_to_host(values, on_device, sizeof(values));
  *low = values[0];
  *high = values[1];
}

/// Calls use(Unit{}) with the widest unit of up to 16 bytes that rows of `bytes` at these addresses
/// consist of.
template <class Use>
void visit_units(std::size_t bytes, const void* a, const void* b, const Use& use) {
  const std::size_t together =
      bytes | reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b);
  if (together % 16 == 0) return use(Bytes16{});
  if (together % 8 == 0) return use(std::uint64_t{});
  if (together % 4 == 0) return use(std::uint32_t{});
  if (together % 2 == 0) return use(std::uint16_t{});
  use(std::uint8_t{});
}

void run_embedding(const Tensor& table, const Tensor& index, const Tensor& out) {
  const std::size_t bytes = static_cast<std::size_t>(table.size(1)) * table.element_size();
  visit_units(bytes, table.raw_data(), out.raw_data(), [&]<class Unit>(Unit) {
    embedding<Unit>(bits<Unit>(table), index.data<std::int64_t>(), index.numel(),
                    static_cast<std::int64_t>(bytes / sizeof(Unit)), bits<Unit>(out), nullptr);
  });
}

void run_embedding_backward(const Tensor& dy, const Tensor& index, std::int64_t padding_idx,
                            const Tensor& dtable) {
  const Tensor workspace =
      empty({sort_workspace_elements(index.numel())}, {.dtype = int64, .device = index.device()});
  visit_floating(dy.dtype(), "embedding_backward", [&]<class T>(TypeTag<T>) {
    embedding_backward<T>(dy.data<T>(), index.data<std::int64_t>(), index.numel(), padding_idx,
                          dtable.size(0), dtable.size(1), dtable.data<T>(),
                          workspace.data<std::int64_t>(), nullptr);
  });
}

/// Of an index, and of the table that it points into.
IndexShape shape_of(const Tensor& index, const Tensor& table, std::int64_t outer,
                    std::int64_t inner) {
  const std::int64_t lines = std::max<std::int64_t>(outer * inner, 1);
  return {outer, index.numel() / lines, inner, table.numel() / lines};
}

void run_gather(const Tensor& x, const Tensor& index, std::int64_t outer, std::int64_t inner,
                const Tensor& out) {
  visit_bits(x, [&]<class Bits>(TypeTag<Bits>) {
    gather<Bits>(bits<Bits>(x), index.data<std::int64_t>(), shape_of(index, x, outer, inner),
                 bits<Bits>(out), nullptr);
  });
}

void run_scatter(const Tensor& source, const Tensor& index, std::int64_t outer, std::int64_t inner,
                 bool add, const Tensor& out) {
  const IndexShape shape = shape_of(index, out, outer, inner);
  if (add)
    visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
      scatter_add<T>(source.data<T>(), index.data<std::int64_t>(), shape, out.data<T>(), nullptr);
    });
  else
    visit_bits(out, [&]<class Bits>(TypeTag<Bits>) {
      scatter<Bits>(bits<Bits>(source), index.data<std::int64_t>(), shape, bits<Bits>(out),
                    nullptr);
    });
}

}  // namespace

void add_index_kernels(Backend& table) {
  table.index_range = run_index_range;
  table.embedding = run_embedding;
  table.embedding_backward = run_embedding_backward;
  table.gather = run_gather;
  table.scatter = run_scatter;
}

}  // namespace norma::cuda_kernels
