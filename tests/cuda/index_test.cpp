// The CUDA kernels that read and write by index against the CPU's, bit for bit where nothing is
// rounded.
#include "cuda/kernel_cases.h"
#include "norma/cuda/kernels/sort.h"

namespace norma::test {
namespace {

/// `count` indices in [0, limit), many of them equal.
Tensor indices(std::int64_t count, std::int64_t limit, std::uint64_t seed = 9) {
  return random({count}, seed, 0.0, static_cast<double>(limit)).to(int64);
}

Tensor embedding_of(const Tensor& table, const Tensor& index, const Device& device,
                    std::int64_t offset) {
  const Tensor out = output({index.numel(), table.size(1)}, table.dtype(), device);
  backend(device).embedding(placed(table, device, offset), index.to(device), out);
  return out;
}

Tensor table_gradient(const Tensor& dy, const Tensor& index, std::int64_t rows,
                      std::int64_t padding_idx, const Device& device) {
  const Tensor out = output({rows, dy.size(1)}, dy.dtype(), device);
  backend(device).embedding_backward(placed(dy, device), index.to(device), padding_idx, out);
  return out;
}

struct Extent {
  std::int64_t outer, length, inner, table_length;
};
constexpr Extent extents[] = {{1, 1, 1, 1},  {1, 40, 1, 7},  {3, 5, 1, 33}, {2, 33, 31, 4},
                              {5, 1, 40, 3}, {257, 2, 3, 2}, {2, 0, 3, 4},  {0, 3, 2, 4}};

Tensor gathered(const Extent& e, DType dtype, const Device& device) {
  const Tensor index = indices(e.outer * e.length * e.inner, e.table_length);
  const Tensor out = output({e.outer, e.length, e.inner}, dtype, device);
  backend(device).gather(placed(numbers({e.outer, e.table_length, e.inner}, dtype, 1), device, 1),
                         index.to(device), e.outer, e.inner, out);
  return out;
}

Tensor scattered(const Extent& e, DType dtype, bool add, const Device& device) {
  const Tensor index = indices(e.outer * e.length * e.inner, e.table_length);
  const Tensor out = placed(numbers({e.outer, e.table_length, e.inner}, dtype, 1), device, 1);
  backend(device).scatter(placed(numbers({e.outer, e.length, e.inner}, dtype, 2), device, 1),
                          index.to(device), e.outer, e.inner, add, out);
  return out;
}

}  // namespace

TEST_CASE("CUDA: positions are sorted by key, equal ones in their order") {
  if (!has_device()) return;
  struct Case {
    std::int64_t count, limit;
  };
  for (const Case& c : {Case{0, 5}, Case{1, 1}, Case{33, 3}, Case{1023, 256}, Case{1024, 257},
                        Case{3001, 70000}, Case{2100, 20'000'000}}) {
    INFO(c.count << " below " << c.limit);
    const Tensor keys = indices(c.count, c.limit).to(cuda(0));
    const std::vector<std::int64_t> values = keys.to_vector<std::int64_t>();
    std::vector<std::int64_t> expected(values.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::int64_t>(i);
    std::stable_sort(expected.begin(), expected.end(), [&](std::int64_t a, std::int64_t b) {
      return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)];
    });
    for (const emulator::Schedule& schedule : emulator::all_schedules(1)) {
      const emulator::ScheduleGuard guard(schedule);
      const Tensor workspace = empty({cuda_kernels::sort_workspace_elements(c.count)},
                                     {.dtype = int64, .device = cuda(0)});
      std::int64_t* const start = workspace.data<std::int64_t>();
      const std::int64_t* const order =
          cuda_kernels::sort_positions(keys.data<std::int64_t>(), c.count, c.limit, start, nullptr);
      CHECK(workspace.narrow(0, order - start, c.count).to_vector<std::int64_t>() == expected);
    }
  }
}

TEST_CASE("CUDA: the smallest and largest index are found") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const std::int64_t count : {1, 33, 1025, 9001}) {
    const Tensor index = random({count}, 4, -1e15, 1e15).to(int64);
    const auto range = [&](const Device& device) {
      std::int64_t low = 0, high = 0;
      backend(device).index_range(index.to(device), &low, &high);
      return std::pair{low, high};
    };
    CHECK(range(cuda(0)) == range(cpu));
  }
}

TEST_CASE("CUDA: embedding rows are those of the CPU in every dtype and alignment") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const std::int64_t width : {1, 3, 6, 16, 33, 64})
      for (const std::int64_t offset : {0, 1, 2}) {
        INFO(dtype_name(dtype) << " " << width << " +" << offset);
        const Tensor table = numbers({11, width}, dtype, 1);
        for (const std::int64_t count : {0, 1, 70})
          CHECK(bitwise_equal(embedding_of(table, indices(count, 11), cuda(0), offset),
                              embedding_of(table, indices(count, 11), cpu, offset)));
      }
}

TEST_CASE("CUDA: gradients of embeddings agree with the CPU and repeat bit for bit") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  struct Case {
    std::int64_t count, rows, width;
  };
  for (const Case& c : {Case{0, 5, 3}, Case{1, 1, 1}, Case{40, 3, 33}, Case{257, 300, 65},
                        Case{1500, 2, 7}, Case{33, 70000, 2}, Case{7, 4, 0}})
    for (const DType dtype : floating_dtypes)
      for (const std::int64_t padding_idx : {-1, 1}) {
        INFO(c.count << " of " << c.rows << " x " << c.width << " " << dtype_name(dtype));
        if (c.rows > 1000 && dtype != float32) continue;
        const Tensor dy = values({c.count, c.width}, dtype, 1);
        const Tensor index = indices(c.count, c.rows);
        const auto run = [&](const Device& device) {
          return TensorList{table_gradient(dy, index, c.rows, padding_idx, device)};
        };
        check_devices(run, dtype, [&](std::size_t) { return c.count; });
        if (dtype == float32 && c.rows <= 1000) check_repeats(run);
      }
}

TEST_CASE("CUDA: gather and scatter are those of the CPU in every dtype and shape") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const Extent& e : extents) {
      INFO(e.outer << " x " << e.length << " x " << e.inner << " of " << e.table_length << " "
                   << dtype_name(dtype));
      CHECK(bitwise_equal(gathered(e, dtype, cuda(0)), gathered(e, dtype, cpu)));
      for (const bool add : {false, true})
        CHECK(allclose(scattered(e, dtype, add, cuda(0)), scattered(e, dtype, add, cpu), {}));
    }
}

}  // namespace norma::test
