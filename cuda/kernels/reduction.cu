// A block reduces several outputs, each by `lanes` threads with four chains of their own, which
// hide the latency of memory and keep sums of floats short. Long reductions with few outputs are
// cut into parts, whose results a second launch combines.
#include "norma/cuda/kernels/reduction.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/reduce.cuh"

#include <algorithm>
#include <limits>

namespace norma::cuda_kernels {

namespace {

constexpr int threads = 256;
constexpr int chains = 4;

// -- what is reduced ------------------------------------------------------------------------------

struct Sum {
  template <class T>
  using accumulator = compute_t<T>;
  template <class A>
  __device__ static A identity() {
    return A(0);
  }
  template <class A>
  __device__ static A combine(A a, A b) {
    return a + b;
  }
};
struct Prod {
  template <class T>
  using accumulator = compute_t<T>;
  template <class A>
  __device__ static A identity() {
    return A(1);
  }
  template <class A>
  __device__ static A combine(A a, A b) {
    return a * b;
  }
};
/// Maximum and minimum let NaN win, as PyTorch's do.
struct Max {
  template <class T>
  using accumulator = compute_t<T>;
  template <class A>
  __device__ static A identity() {
    if constexpr (std::is_floating_point_v<A>) return -std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::lowest();
  }
  template <class A>
  __device__ static A combine(A a, A b) {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  template <class T>
  using accumulator = compute_t<T>;
  template <class A>
  __device__ static A identity() {
    if constexpr (std::is_floating_point_v<A>) return std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::max();
  }
  template <class A>
  __device__ static A combine(A a, A b) {
    return b < a || b != b ? b : a;
  }
};
struct Any {
  template <class T>
  using accumulator = bool;
  template <class A>
  __device__ static A identity() {
    return false;
  }
  template <class A>
  __device__ static A combine(A a, A b) {
    return a || b;
  }
};
struct All {
  template <class T>
  using accumulator = bool;
  template <class A>
  __device__ static A identity() {
    return true;
  }
  template <class A>
  __device__ static A combine(A a, A b) {
    return a && b;
  }
};
/// All elements are finite.
struct AllFinite : All {};

template <class Op, class T>
__device__ __forceinline__ auto load(T value) {
  const auto x = element<compute_t<T>>(value);
  if constexpr (std::is_same_v<Op, AllFinite>)
    return x - x == 0;
  else if constexpr (std::is_same_v<Op, Any> || std::is_same_v<Op, All>)
    return x != 0;
  else
    return x;
}

// -- how ------------------------------------------------------------------------------------------

/// How a launch is cut.
struct ReduceCut {
  int lanes;  ///< threads that share an output: a power of two
  unsigned parts;
  std::int64_t part_length;
  __host__ __device__ int slots() const { return threads / lanes; }  ///< outputs of a block
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Without parts.
ReduceCut whole(const ReduceShape& s) {
  // A run is read by neighbouring threads; beside others, neighbours read neighbouring outputs.
  int lanes = s.inner > 1 ? 8 : s.reduced > 1024 ? threads : warp_size;
  while (lanes > 1 && lanes / 2 * chains >= s.reduced) lanes /= 2;
  return {lanes, 1, s.reduced};
}

ReduceCut cut_of(const ReduceShape& s) {
  constexpr std::int64_t enough_blocks = 2048;  // for the largest GPUs
  constexpr std::int64_t shortest = 4 * chains;
  ReduceCut cut = whole(s);
  const std::int64_t tiles = ceil_div(s.outputs(), cut.slots());
  const std::int64_t parts = std::min(s.reduced / (shortest * cut.lanes),
                                      enough_blocks / std::max<std::int64_t>(tiles, 1));
  if (parts < 2) return cut;
  cut.part_length = ceil_div(s.reduced, parts);
  cut.parts = static_cast<unsigned>(ceil_div(s.reduced, cut.part_length));
  return cut;
}

/// Which output a thread works on, and which share of it.
struct Share {
  int lane, slot;
  unsigned part;
  std::int64_t output;
  __device__ Share(const ReduceShape& s, const ReduceCut& cut) {
    const int t = static_cast<int>(threadIdx.x);
    lane = s.inner == 1 ? t % cut.lanes : t / cut.slots();
    slot = s.inner == 1 ? t / cut.lanes : t % cut.slots();
    output = static_cast<std::int64_t>(blockIdx.x / cut.parts) * cut.slots() + slot;
    part = blockIdx.x % cut.parts;
  }
};

/// out [outer, parts, inner].
template <class Op, class T, class Out>
__global__ void __launch_bounds__(threads)
    reduce_kernel(const T* x, ReduceShape s, ReduceCut cut, Out* out) {
  using A = typename Op::template accumulator<T>;
  NORMA_SHARED(A, scratch, threads);
  const Share mine(s, cut);
  const std::int64_t outer = mine.output / s.inner, inner = mine.output % s.inner;
  A values[chains];
  NORMA_UNROLL
  for (A& value : values) value = Op::template identity<A>();
  if (outer < s.outer) {
    const T* const from = x + outer * s.reduced * s.inner + inner;
    const std::int64_t begin = mine.part * cut.part_length;
    const std::int64_t end =
        begin + cut.part_length < s.reduced ? begin + cut.part_length : s.reduced;
    for (std::int64_t i = begin + mine.lane; i < end; i += chains * cut.lanes) {
      NORMA_UNROLL
      for (int c = 0; c < chains; ++c) {
        const std::int64_t at = i + c * cut.lanes;
        if (at < end) values[c] = Op::combine(values[c], load<Op>(from[at * s.inner]));
      }
    }
  }
  A total = Op::combine(Op::combine(values[0], values[1]), Op::combine(values[2], values[3]));
  scratch[mine.lane * cut.slots() + mine.slot] = total;
  for (int half = cut.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (mine.lane >= half) continue;
    total = Op::combine(total, scratch[(mine.lane + half) * cut.slots() + mine.slot]);
    scratch[mine.lane * cut.slots() + mine.slot] = total;
  }
  if (mine.lane == 0 && outer < s.outer)
    out[(outer * cut.parts + mine.part) * s.inner + inner] = element<Out>(total);
}

template <class Op, class T, class Out>
void launch_reduce(const T* x, const ReduceShape& s, const ReduceCut& cut, Out* out, void* stream) {
  const std::int64_t tiles = ceil_div(s.outputs(), cut.slots());
  device::launch({.name = "reduce",
                  .grid = {static_cast<unsigned>(tiles * cut.parts)},
                  .block = {threads},
                  .stream = stream},
                 reduce_kernel<Op, T, Out>, x, s, cut, out);
}

/// Both stages; `Parts` combines partial results.
template <class Op, class Parts, class T, class A, class Out>
void run_reduce(const T* x, const ReduceShape& s, A* workspace, Out* out, void* stream) {
  if (s.outputs() == 0) return;
  const ReduceCut cut = cut_of(s);
  if (cut.parts == 1) return launch_reduce<Op>(x, s, cut, out, stream);
  launch_reduce<Op>(x, s, cut, workspace, stream);
  const ReduceShape rest{s.outer, cut.parts, s.inner};
  launch_reduce<Parts>(static_cast<const A*>(workspace), rest, whole(rest), out, stream);
}

// -- along a dimension ----------------------------------------------------------------------------

/// A value and where it stands; nothing: a negative index.
template <class C>
struct Candidate {
  C value;
  std::int64_t index;
  /// Whether `other` is the answer if only one of both can be: NaN before all others, then the
  /// better value, then the smaller index.
  __device__ __forceinline__ bool yields_to(const Candidate& other, bool largest) const {
    if (index < 0 || other.index < 0) return index < 0;
    const bool nan = value != value, other_nan = other.value != other.value;
    if (nan != other_nan) return other_nan;
    if (!nan && value != other.value) return largest ? other.value > value : other.value < value;
    return other.index < index;
  }
};

template <class T>
__global__ void __launch_bounds__(threads)
    argreduce_kernel(bool largest, const T* x, ReduceShape s, ReduceCut cut, std::int64_t* out) {
  using C = compute_t<T>;
  NORMA_SHARED(C, values, threads);
  NORMA_SHARED(std::int64_t, indices, threads);
  const Share mine(s, cut);
  const std::int64_t outer = mine.output / s.inner, inner = mine.output % s.inner;
  Candidate<C> best{C(0), -1};
  if (outer < s.outer) {
    const T* const from = x + outer * s.reduced * s.inner + inner;
    for (std::int64_t i = mine.lane; i < s.reduced; i += cut.lanes) {
      const Candidate<C> next{element<C>(from[i * s.inner]), i};
      if (best.yields_to(next, largest)) best = next;
    }
  }
  const int at = mine.lane * cut.slots() + mine.slot;
  values[at] = best.value;
  indices[at] = best.index;
  for (int half = cut.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (mine.lane >= half) continue;
    const int from = at + half * cut.slots();
    const Candidate<C> other{values[from], indices[from]};
    if (best.yields_to(other, largest)) best = other;
    values[at] = best.value;
    indices[at] = best.index;
  }
  if (mine.lane == 0 && outer < s.outer) out[mine.output] = best.index;
}

/// A block a line, a tile of `threads` elements at a time.
template <class T, class Out>
__global__ void __launch_bounds__(threads)
    cumsum_kernel(const T* x, ReduceShape s, std::int64_t lines, bool reverse, Out* out) {
  using C = compute_t<T>;
  constexpr int warps = threads / warp_size;
  NORMA_SHARED(C, totals, warps);
  const int t = static_cast<int>(threadIdx.x), lane = t % warp_size, warp = t / warp_size;
  for (std::int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    const std::int64_t first = line / s.inner * s.reduced * s.inner + line % s.inner;
    C before_tile = 0;
    for (std::int64_t tile = 0; tile < s.reduced; tile += threads) {
      const std::int64_t i = tile + t;
      const std::int64_t at = first + (reverse ? s.reduced - 1 - i : i) * s.inner;
      C sum = i < s.reduced ? element<C>(x[at]) : C(0);
      NORMA_UNROLL
      for (int step = 1; step < warp_size; step *= 2) {
        const C lower = __shfl_up_sync(all_lanes, sum, step);
        if (lane >= step) sum += lower;
      }
      if (lane == warp_size - 1) totals[warp] = sum;
      __syncthreads();
      C before = before_tile;
      for (int w = 0; w < warps; ++w) {
        if (w < warp) before += totals[w];
        before_tile += totals[w];
      }
      __syncthreads();  // the next tile writes the totals
      if (i < s.reduced) out[at] = element<Out>(before + sum);
    }
  }
}

}  // namespace

std::int64_t workspace_elements(const ReduceShape& shape) {
  const ReduceCut cut = cut_of(shape);
  return cut.parts == 1 ? 0 : shape.outputs() * cut.parts;
}

template <class T, class C, class Out>
void reduce(ReduceOp op, const ReduceShape& shape, const T* x, C* workspace, Out* out,
            void* stream) {
  switch (op) {
    case ReduceOp::sum:
      return run_reduce<Sum, Sum>(x, shape, workspace, out, stream);
    case ReduceOp::prod:
      return run_reduce<Prod, Prod>(x, shape, workspace, out, stream);
    case ReduceOp::amax:
      return run_reduce<Max, Max>(x, shape, workspace, out, stream);
    default:
      return run_reduce<Min, Min>(x, shape, workspace, out, stream);
  }
}
template <class T>
void reduce_logical(ReduceOp op, const ReduceShape& shape, const T* x, bool* workspace, bool* out,
                    void* stream) {
  if (op == ReduceOp::any)
    run_reduce<Any, Any>(x, shape, workspace, out, stream);
  else
    run_reduce<All, All>(x, shape, workspace, out, stream);
}
template <class T>
void reduce_finite(const ReduceShape& shape, const T* x, bool* workspace, bool* out, void* stream) {
  run_reduce<AllFinite, All>(x, shape, workspace, out, stream);
}

template <class T>
void argreduce(bool largest, const ReduceShape& shape, const T* x, std::int64_t* out,
               void* stream) {
  if (shape.outputs() == 0) return;
  const ReduceCut cut = whole(shape);
  device::launch({.name = "argreduce",
                  .grid = {static_cast<unsigned>(ceil_div(shape.outputs(), cut.slots()))},
                  .block = {threads},
                  .stream = stream},
                 argreduce_kernel<T>, largest, x, shape, cut, out);
}

template <class T, class Out>
void cumsum(const ReduceShape& shape, bool reverse, const T* x, Out* out, void* stream) {
  if (shape.outputs() == 0) return;
  device::launch({.name = "cumsum",
                  .grid = {static_cast<unsigned>(std::min<std::int64_t>(shape.outputs(), 1 << 20))},
                  .block = {threads},
                  .stream = stream},
                 cumsum_kernel<T, Out>, x, shape, shape.outputs(), reverse, out);
}

#define NORMA_REDUCE(T, C, Out) \
  template void reduce<T, C, Out>(ReduceOp, const ReduceShape&, const T*, C*, Out*, void*);
NORMA_REDUCE(float, float, float)
NORMA_REDUCE(double, double, double)
NORMA_REDUCE(std::int64_t, std::int64_t, std::int64_t)
NORMA_REDUCE(Half, float, Half)
NORMA_REDUCE(Half, float, float)
NORMA_REDUCE(BFloat16, float, BFloat16)
NORMA_REDUCE(BFloat16, float, float)
NORMA_REDUCE(std::int32_t, std::int64_t, std::int32_t)
NORMA_REDUCE(std::int32_t, std::int64_t, std::int64_t)
NORMA_REDUCE(bool, std::int64_t, bool)
NORMA_REDUCE(bool, std::int64_t, std::int64_t)
#define NORMA_REDUCE_TO_BOOL(T)                                                                 \
  template void reduce_logical<T>(ReduceOp, const ReduceShape&, const T*, bool*, bool*, void*); \
  template void argreduce<T>(bool, const ReduceShape&, const T*, std::int64_t*, void*);
NORMA_FOR_ALL_TYPES(NORMA_REDUCE_TO_BOOL)
#define NORMA_REDUCE_FLOATING(T)                                                     \
  template void reduce_finite<T>(const ReduceShape&, const T*, bool*, bool*, void*); \
  template void cumsum<T, T>(const ReduceShape&, bool, const T*, T*, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_REDUCE_FLOATING)
#define NORMA_CUMSUM(T) \
  template void cumsum<T, std::int64_t>(const ReduceShape&, bool, const T*, std::int64_t*, void*);
NORMA_CUMSUM(bool)
NORMA_CUMSUM(std::int32_t)
NORMA_CUMSUM(std::int64_t)

}  // namespace norma::cuda_kernels
