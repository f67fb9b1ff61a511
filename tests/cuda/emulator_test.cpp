// The emulator runs what CUDA runs, and finds what hardware does not: each kind of bug is planted
// here in a kernel, next to the same kernel without it.
#include "support/catch.h"

#include "norma/cuda/device.cuh"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace norma::test {
namespace {

using device::all_lanes;
using device::launch;
using emulator::all_schedules;
using emulator::KernelError;
using emulator::Order;
using emulator::Schedule;
using emulator::ScheduleGuard;

/// Device memory with the values of a vector.
template <class T>
class Array {
 public:
  explicit Array(std::size_t count)
      : data_(static_cast<T*>(emulator::allocate_memory(count * sizeof(T)))), count_(count) {}
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    std::copy(values.begin(), values.end(), data_);
  }
  ~Array() { emulator::release_memory(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T* data() const { return data_; }
  std::vector<T> values() const { return {data_, data_ + count_}; }

 private:
  T* data_;
  std::size_t count_;
};

std::vector<float> iota(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const KernelError& error) {
    return error.what();
  }
  return "no error";
}

// -- what must work -------------------------------------------------------------------------------

__global__ void indices(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] += static_cast<int>(block * threads + thread);
}

enum class Bug { none, no_barrier_after_write, no_barrier_in_tree, no_barrier_before_reuse };

/// Row sums: one block takes every row in turn, by a tree in shared memory.
template <Bug bug>
__global__ void row_sums(const float* x, int rows, float* sums) {
  NORMA_SHARED(float, scratch, 64);
  const int t = static_cast<int>(threadIdx.x);
  for (int row = 0; row < rows; ++row) {
    scratch[t] = x[row * 64 + t];
    if (bug != Bug::no_barrier_after_write) __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
      if (t < half) scratch[t] += scratch[t + half];
      if (bug != Bug::no_barrier_in_tree || half > 1) __syncthreads();
    }
    if (t == 63) sums[row] = scratch[0];
    if (bug != Bug::no_barrier_before_reuse) __syncthreads();
  }
}

/// The same with shuffles inside of warps, as the norm kernels do it.
template <bool barrier_before_reuse>
__global__ void row_sums_by_warps(const float* x, int rows, float* sums) {
  NORMA_SHARED(float, scratch, 2);
  const int t = static_cast<int>(threadIdx.x);
  for (int row = 0; row < rows; ++row) {
    float value = x[row * 64 + t];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(all_lanes, value, step);
    if (t % 32 == 0) scratch[t / 32] = value;
    __syncthreads();
    if (t == 33) sums[row] = scratch[0] + scratch[1];
    if (barrier_before_reuse) __syncthreads();
  }
}

template <class Kernel>
std::vector<float> run_row_sums(Kernel kernel) {
  const Array<float> x(iota(5 * 64));
  const Array<float> sums(5);
  launch({.name = "row_sums", .block = {64}}, kernel, x.data(), 5, sums.data());
  return sums.values();
}

/// How many schedules give something else than the right sums.
template <class Kernel>
int wrong_schedules(Kernel kernel) {
  const std::vector<float> x = iota(5 * 64);
  std::vector<float> expected;
  for (auto row = x.begin(); row != x.end(); row += 64)
    expected.push_back(std::accumulate(row, row + 64, 0.0F));
  int wrong = 0;
  for (const Schedule& schedule : all_schedules()) {
    const ScheduleGuard guard(schedule);
    wrong += run_row_sums(kernel) != expected;
  }
  return wrong;
}

}  // namespace

TEST_CASE("a launch runs every thread of every block once, with its indices") {
  for (const Schedule& schedule : all_schedules()) {
    const ScheduleGuard guard(schedule);
    const Array<int> out(std::vector<int>(2 * 3 * 4 * 5 * 6 * 7, 0));
    launch({.name = "indices", .grid = {2, 3, 4}, .block = {5, 6, 7}}, indices, out.data());
    std::vector<int> expected(2 * 3 * 4 * 5 * 6 * 7);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(out.values() == expected);
  }
}

TEST_CASE("a correct kernel gives the same in every order") {
  CHECK(wrong_schedules(row_sums<Bug::none>) == 0);
  CHECK(wrong_schedules(row_sums_by_warps<true>) == 0);
}

// -- missing barriers -----------------------------------------------------------------------------

TEST_CASE("a missing barrier shows as a difference between schedules") {
  CHECK(wrong_schedules(row_sums<Bug::no_barrier_after_write>) > 0);
  CHECK(wrong_schedules(row_sums<Bug::no_barrier_in_tree>) > 0);
  CHECK(wrong_schedules(row_sums<Bug::no_barrier_before_reuse>) > 0);
}

TEST_CASE("a write that overtakes a read shows when one warp runs ahead") {
  CHECK(wrong_schedules(row_sums_by_warps<false>) > 0);
  const ScheduleGuard greedy({Order::greedy});
  CHECK(run_row_sums(row_sums_by_warps<false>) != run_row_sums(row_sums_by_warps<true>));
}

namespace {
template <bool synchronize>
__global__ void neighbour(int* out) {
  NORMA_SHARED(int, values, 32);
  const int lane = static_cast<int>(threadIdx.x);
  values[lane] = lane;
  if (synchronize) __syncwarp();
  out[lane] = values[(lane + 1) % 32];
}
}  // namespace

TEST_CASE("a missing __syncwarp shows, too") {
  const auto run = [](auto kernel, const Schedule& schedule) {
    const ScheduleGuard guard(schedule);
    const Array<int> out(32);
    launch({.name = "neighbour", .block = {32}}, kernel, out.data());
    return out.values();
  };
  const std::vector<int> expected = run(neighbour<true>, {Order::forward});
  int wrong = 0;
  for (const Schedule& schedule : all_schedules()) {
    CHECK(run(neighbour<true>, schedule) == expected);
    wrong += run(neighbour<false>, schedule) != expected;
  }
  CHECK(wrong > 0);
}

// -- divergent barriers ---------------------------------------------------------------------------

namespace {
__global__ void barrier_in_branch() {
  if (threadIdx.x < 40) __syncthreads();
}
__global__ void two_barriers() {
  if (threadIdx.x == 3)
    __syncthreads();
  else
    __syncthreads();
}
/// Fewer rows than threads leave before the barrier.
__global__ void early_return(int rows) {
  if (static_cast<int>(threadIdx.x) >= rows) return;
  __syncthreads();
}
}  // namespace

TEST_CASE("a divergent barrier is an error that names kernel, block, thread and site") {
  const auto run = [](auto kernel, auto... arguments) {
    return error_of([=] {
      const ScheduleGuard forward({Order::forward});
      launch({.name = "my_kernel", .grid = {2}, .block = {64}}, kernel, arguments...);
    });
  };
  using Catch::Contains;
  const std::string branch = run(barrier_in_branch);
  CHECK_THAT(branch, Contains("[my_kernel] every thread of a block must reach the same barrier"));
  CHECK_THAT(branch, Contains("thread (0, 0, 0) at the barrier emulator_test.cpp:"));
  CHECK_THAT(branch, Contains("thread (40, 0, 0) at its end in block (0, 0, 0)"));
  CHECK_THAT(run(two_barriers), Contains("thread (3, 0, 0) at the barrier emulator_test.cpp:"));
  CHECK_THAT(run(early_return, 10), Contains("thread (10, 0, 0) at its end"));
  CHECK(run(early_return, 64) == "no error");
  // The error leaves nothing behind.
  CHECK(wrong_schedules(row_sums<Bug::none>) == 0);
}

// -- memory ---------------------------------------------------------------------------------------

namespace {
__global__ void write_at(float* out, int index) { out[index] = 1.0F; }
__global__ void write_shared_at(int index) {
  NORMA_SHARED(float, values, 8);
  values[index] = 1.0F;
}
__global__ void write_dynamic_at(int index) {
  NORMA_DYNAMIC_SHARED(float, values);
  values[index] = 1.0F;
}
__global__ void read_at(const float* x, int index, float* out) { *out = x[index]; }
template <class T>
__global__ void read_uninitialized(T* out) {
  NORMA_SHARED(T, values, 4);
  if (blockIdx.x == 0) values[1] = T(1);
  out[blockIdx.x] = values[1];
  out[blockIdx.x + 2] = values[2];
}
__global__ void read_vector(const float* x, float* out) { *out = device::load<4>(x)[0]; }
}  // namespace

#ifdef __SANITIZE_ADDRESS__
#define NORMA_UNDER_ASAN 1
#else
#define NORMA_UNDER_ASAN 0
#endif

// Under AddressSanitizer these end in its report, which CTest looks for (tests/CMakeLists.txt).
TEST_CASE("a write outside of an array is an error that names the kernel",
          NORMA_UNDER_ASAN ? "[.]" : "") {
  const auto run = [](auto kernel, int index, unsigned shared_bytes = 0) {
    return error_of([=] {
      launch({.name = "write_shared", .block = {1}, .shared_bytes = shared_bytes}, kernel, index);
    });
  };
  const Array<float> out(10);
  const auto global = [&](int index) {
    return error_of([&] { launch({.name = "write", .block = {1}}, write_at, out.data(), index); });
  };
  using Catch::Contains;
  CHECK(global(9) == "no error");
  CHECK_THAT(global(10), Contains("[write] must stay inside of its arrays; got a write past the "
                                  "end of a block of 40 bytes of device memory"));
  CHECK_THAT(global(-1), Contains("before the start"));
  CHECK(global(0) == "no error");
  CHECK(run(write_shared_at, 7) == "no error");
  CHECK_THAT(run(write_shared_at, 8), Contains("past the end of \"values\" (32 bytes) in block"));
  CHECK_THAT(run(write_shared_at, -1), Contains("before the start of \"values\""));
  CHECK(run(write_dynamic_at, 4, 20) == "no error");
  CHECK_THAT(run(write_dynamic_at, 5, 20), Contains("past the end of \"dynamic shared memory\""));
}

TEST_CASE("damage that only the release of memory finds is thrown at the next launch, once",
          NORMA_UNDER_ASAN ? "[.]" : "") {
  auto* const data = static_cast<float*>(emulator::allocate_memory(3 * sizeof(float)));
  data[3] = 1.0F;
  emulator::release_memory(data);
  const Array<float> out(1);
  const auto launched = [&] { launch({.name = "write", .block = {1}}, write_at, out.data(), 0); };
  CHECK_THROWS_WITH(launched(),
                    Catch::Contains("[emulator] nobody may write outside of a block of device "
                                    "memory; got a write past the end of one of 12 bytes"));
  CHECK_NOTHROW(launched());
}

TEST_CASE("a read past the end of an array is NaN", NORMA_UNDER_ASAN ? "[.]" : "") {
  const Array<float> x(iota(3));
  const Array<float> out(1);
  launch({.name = "read", .block = {1}}, read_at, x.data(), 3, out.data());
  CHECK(std::isnan(out.values()[0]));
}

TEST_CASE("uninitialized memory is NaN, also where another block wrote before") {
  const ScheduleGuard forward({Order::forward});
  const auto run = []<class T>(T) {
    const Array<T> out(4);
    launch({.name = "read_uninitialized", .grid = {2}, .block = {1}}, read_uninitialized<T>,
           out.data());
    const std::vector<T> values = out.values();
    CHECK(static_cast<double>(values[0]) == 1.0);
    for (std::size_t i = 1; i < 4; ++i) CHECK(std::isnan(static_cast<double>(values[i])));
  };
  run(0.0F);
  run(0.0);
  run(Half());
  run(BFloat16());
  const Array<float> fresh(2);
  CHECK(std::isnan(fresh.values()[1]));
}

TEST_CASE("a misaligned vector access is an error") {
  const Array<float> x(iota(8));
  const Array<float> out(1);
  const auto run = [&](std::size_t offset) {
    return error_of([&] {
      launch({.name = "read_vector", .block = {1}}, read_vector, x.data() + offset, out.data());
    });
  };
  CHECK(run(4) == "no error");
  CHECK_THAT(run(1), Catch::Contains("an access of 16 bytes must be aligned"));
}

// -- warps ----------------------------------------------------------------------------------------

namespace {
__global__ void shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_sync(all_lanes, lane, lane / 2);
  out[32 + lane] = __shfl_up_sync(all_lanes, lane, 3, 8);
  out[64 + lane] = __shfl_down_sync(all_lanes, lane, 3, 8);
  out[96 + lane] = __shfl_xor_sync(all_lanes, lane, 5, 8);
  out[128 + lane] = static_cast<int>(__ballot_sync(all_lanes, lane % 4 == 0) >> 16);
  out[160 + lane] = __any_sync(all_lanes, lane == 7) + 2 * __all_sync(all_lanes, lane < 31);
  // Halves of the warp go their own ways.
  if (lane < 16)
    out[192 + lane] = __shfl_xor_sync(0x0000ffffu, lane, 1);
  else
    out[192 + lane] = __shfl_xor_sync(0xffff0000u, lane, 2);
}
__global__ void mask_without_caller(int* out) {
  *out = __shfl_xor_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 1);
}
__global__ void full_mask_in_branch(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(all_lanes, 1, 1);
}
__global__ void source_outside_of_mask(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1, 16);
}
__global__ void full_mask(int* out) { out[threadIdx.x] = __shfl_xor_sync(all_lanes, 1, 1); }
}  // namespace

TEST_CASE("shuffles and votes are those of CUDA") {
  for (const Schedule& schedule : all_schedules()) {
    const ScheduleGuard guard(schedule);
    const Array<int> out(224);
    launch({.name = "shuffles", .block = {32}}, shuffles, out.data());
    const std::vector<int> values = out.values();
    for (int lane = 0; lane < 32; ++lane) {
      const auto value = [&](int block) {
        return values[static_cast<std::size_t>(32 * block + lane)];
      };
      CHECK(value(0) == lane / 2);
      CHECK(value(1) == (lane % 8 < 3 ? lane : lane - 3));
      CHECK(value(2) == (lane % 8 > 4 ? lane : lane + 3));
      CHECK(value(3) == (lane ^ 5));
      CHECK(value(4) == 0x1111);
      CHECK(value(5) == 1);
      CHECK(value(6) == (lane ^ (lane < 16 ? 1 : 2)));
    }
  }
}

TEST_CASE("a wrong warp mask is an error") {
  const Array<int> out(64);
  const auto run = [&](auto kernel, unsigned threads) {
    return error_of([&] { launch({.name = "masks", .block = {threads}}, kernel, out.data()); });
  };
  using Catch::Contains;
  CHECK_THAT(run(mask_without_caller, 32),
             Contains("[masks] the mask of a warp-wide call must name the calling lane; got mask "
                      "0x0000ffff from lane"));
  CHECK_THAT(run(full_mask_in_branch, 32),
             Contains("all lanes of a mask must make the same warp-wide call"));
  CHECK_THAT(run(source_outside_of_mask, 32),
             Contains("must read from a lane that its mask names"));
  CHECK_THAT(run(full_mask, 40), Contains("must name lanes that exist; got mask 0xffffffff in a "
                                          "warp of 8 threads"));
  CHECK(run(full_mask, 64) == "no error");
}

// -- launches -------------------------------------------------------------------------------------

namespace {
__global__ void count_up(int* counter) { atomicAdd(counter, 1); }
__global__ void throws_in_thread(int block) {
  if (static_cast<int>(blockIdx.x) == block && threadIdx.x == 5) throw std::runtime_error("inside");
  __syncthreads();
}
}  // namespace

TEST_CASE("atomics count over all blocks and host threads") {
  const Array<int> counter(std::vector<int>{0});
  launch({.name = "count_up", .grid = {100}, .block = {256}}, count_up, counter.data());
  CHECK(counter.values()[0] == 25600);
}

TEST_CASE("launches that a GPU refuses are errors") {
  const auto run = [](device::Extent grid, device::Extent block, unsigned shared = 0) {
    return error_of([=] {
      launch({.name = "refused", .grid = grid, .block = block, .shared_bytes = shared},
             barrier_in_branch);
    });
  };
  using Catch::Contains;
  CHECK_THAT(run({0}, {32}), Contains("[refused] a launch must have blocks and threads"));
  CHECK_THAT(run({1}, {1025}), Contains("at most 1024 threads"));
  CHECK_THAT(run({1, 65536}, {32}), Contains("65535"));
  CHECK_THAT(run({1}, {32}, 300u << 10), Contains("shared memory"));
}

TEST_CASE("an exception of a thread reaches the host") {
  CHECK_THROWS_WITH(launch({.name = "throws", .grid = {100}, .block = {64}}, throws_in_thread, 70),
                    "inside");
  CHECK_NOTHROW(launch({.name = "throws", .grid = {100}, .block = {64}}, throws_in_thread, 100));
}

}  // namespace norma::test
