// Column statistics in two stages: parts of the positions of each channel, then their merge in a
// fixed order. With inner = 1 neighbouring threads take neighbouring channels, else neighbouring
// positions: what lies side by side in memory.
#include "norma/cuda/kernels/column_norm.h"

#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/reduce.cuh"

namespace norma::cuda_kernels {

namespace {

using device::convert;

constexpr int lanes = 32;  // channels of a block where these lie side by side
constexpr int strips = 8;  // positions at a time
constexpr int block_threads = lanes * strips;

/// Count, mean and squared differences of the positions that are not masked; without `centred`
/// about zero instead of the mean.
template <class T>
struct MomentsOf {
  using C = statistic_t<T>;
  const T* x;
  const bool* mask;
  bool centred;
  __device__ Moments<C> start(std::int64_t) const { return {0, 0, 0}; }
  __device__ void add(Moments<C>& m, std::int64_t element, std::int64_t position,
                      std::int64_t) const {
    if (mask != nullptr && mask[position]) return;
    const C value = convert<C>(x[element]);
    if (centred) {
      m = merge(m, {C(1), value, C(0)});
    } else {
      m.count += C(1);
      m.m2 += value * value;
    }
  }
};

/// Sums of dy and of dy (x - mean), as the last two of three numbers.
template <class T>
struct SumsOf {
  using C = statistic_t<T>;
  const T* x;
  const C* mean;
  const T* dy;
  __device__ Moments<C> start(std::int64_t) const { return {0, 0, 0}; }
  __device__ void add(Moments<C>& m, std::int64_t element, std::int64_t,
                      std::int64_t channel) const {
    const C d = convert<C>(dy[element]);
    const C centre = mean != nullptr ? mean[channel] : C(0);
    m.mean += d;
    m.m2 += d * (convert<C>(x[element]) - centre);
  }
};

template <class T>
__device__ Moments<statistic_t<T>> join(const MomentsOf<T>&, const Moments<statistic_t<T>>& a,
                                        const Moments<statistic_t<T>>& b) {
  return merge(a, b);
}
template <class T>
__device__ Moments<statistic_t<T>> join(const SumsOf<T>&, const Moments<statistic_t<T>>& a,
                                        const Moments<statistic_t<T>>& b) {
  return {0, a.mean + b.mean, a.m2 + b.m2};
}

/// One part of 32 channels (inner = 1) or of one channel. parts [part, channel, 3].
template <class T, class Of, bool side_by_side>
__global__ void __launch_bounds__(block_threads)
    column_parts_kernel(ColumnShape s, ColumnParts cut, Of of, statistic_t<T>* parts) {
  using C = statistic_t<T>;
  NORMA_SHARED(C, scratch, 3 * block_threads);
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t groups = side_by_side ? (s.channels + lanes - 1) / lanes : s.channels;
  const std::int64_t part = blockIdx.x / groups;
  const std::int64_t group = blockIdx.x % groups;
  const std::int64_t channel = side_by_side ? group * lanes + t % lanes : group;
  const std::int64_t begin = part * cut.positions_per_part;
  const std::int64_t end = begin + cut.positions_per_part < s.positions()
                               ? begin + cut.positions_per_part
                               : s.positions();
  constexpr int step = side_by_side ? strips : block_threads;
  Moments<C> moments = of.start(channel);
  if (channel < s.channels) {
    for (std::int64_t p = begin + (side_by_side ? t / lanes : t); p < end; p += step)
      of.add(moments, (p / s.inner * s.channels + channel) * s.inner + p % s.inner, p, channel);
  }
  scratch[3 * t] = moments.count;
  scratch[3 * t + 1] = moments.mean;
  scratch[3 * t + 2] = moments.m2;
  // A tree over what belongs to one channel: threads t and t + half.
  constexpr int smallest = side_by_side ? lanes : 1;
  for (int half = block_threads / 2; half >= smallest; half /= 2) {
    __syncthreads();
    if (t >= half) continue;
    const Moments<C> other = {scratch[3 * (t + half)], scratch[3 * (t + half) + 1],
                              scratch[3 * (t + half) + 2]};
    moments = join(of, moments, other);
    scratch[3 * t] = moments.count;
    scratch[3 * t + 1] = moments.mean;
    scratch[3 * t + 2] = moments.m2;
  }
  if (t < smallest && channel < s.channels) {
    C* const out = parts + 3 * (part * s.channels + channel);
    out[0] = moments.count;
    out[1] = moments.mean;
    out[2] = moments.m2;
  }
}

/// The parts of each channel in their order.
template <class T, class Of>
__device__ Moments<statistic_t<T>> join_parts(const Of& of, const statistic_t<T>* parts,
                                              std::int64_t count, std::int64_t channels,
                                              std::int64_t channel) {
  Moments<statistic_t<T>> all = of.start(channel);
  for (std::int64_t part = 0; part < count; ++part) {
    const statistic_t<T>* const from = parts + 3 * (part * channels + channel);
    all = join(of, all, {from[0], from[1], from[2]});
  }
  return all;
}

template <class T>
__global__ void column_statistics_kernel(ColumnShape s, std::int64_t parts_count, MomentsOf<T> of,
                                         const statistic_t<T>* parts, statistic_t<T>* mean,
                                         statistic_t<T>* variance, statistic_t<T>* count) {
  using C = statistic_t<T>;
  for_each_index(s.channels, [&](std::int64_t channel) {
    const Moments<C> all = join_parts<T>(of, parts, parts_count, s.channels, channel);
    const C n = all.count > C(1) ? all.count : C(1);
    if (mean != nullptr) mean[channel] = all.mean;
    variance[channel] = all.m2 / n;
    if (channel == 0) *count = all.count;
  });
}

template <class T>
__global__ void column_sums_kernel(ColumnShape s, std::int64_t parts_count, SumsOf<T> of,
                                   const statistic_t<T>* parts, statistic_t<T>* sum_dy,
                                   statistic_t<T>* sum_dy_d) {
  for_each_index(s.channels, [&](std::int64_t channel) {
    const auto all = join_parts<T>(of, parts, parts_count, s.channels, channel);
    sum_dy[channel] = all.mean;
    sum_dy_d[channel] = all.m2;
  });
}

template <class T>
__global__ void column_affine_kernel(ColumnShape s, const T* x, const bool* mask,
                                     const statistic_t<T>* mean, const T* dy,
                                     const statistic_t<T>* a, const statistic_t<T>* b,
                                     const statistic_t<T>* c, T* out) {
  using C = statistic_t<T>;
  for_each_index(s.count(), [&](std::int64_t i) {
    const std::int64_t channel = i / s.inner % s.channels;
    const std::int64_t position = i / s.inner / s.channels * s.inner + i % s.inner;
    const C centre = mean != nullptr ? mean[channel] : C(0);
    C value = 0;
    if (mask == nullptr || !mask[position]) {
      if (b != nullptr) value = b[channel] * (convert<C>(x[i]) - centre);
      if (c != nullptr) value += c[channel];
    }
    if (dy != nullptr) value += a[channel] * convert<C>(dy[i]);
    out[i] = convert<T>(value);
  });
}

template <class T, class Of>
void launch_parts(const ColumnShape& s, const ColumnParts& cut, const Of& of,
                  statistic_t<T>* workspace, void* stream) {
  const bool side_by_side = s.inner == 1;
  const std::int64_t groups = side_by_side ? (s.channels + lanes - 1) / lanes : s.channels;
  device::launch(
      {.name = "column_parts",
       .grid = {static_cast<unsigned>(groups * cut.parts)},
       .block = {block_threads},
       .stream = stream},
      side_by_side ? column_parts_kernel<T, Of, true> : column_parts_kernel<T, Of, false>, s, cut,
      of, workspace);
}

}  // namespace

template <class T>
void column_statistics(const ColumnShape& s, const T* x, const bool* mask,
                       statistic_t<T>* workspace, statistic_t<T>* mean, statistic_t<T>* variance,
                       statistic_t<T>* count, void* stream) {
  if (s.channels == 0) return;
  const ColumnParts cut = column_parts(s);
  const MomentsOf<T> of{x, mask, mean != nullptr};
  launch_parts<T>(s, cut, of, workspace, stream);
  device::launch(loop_config("column_statistics", s.channels, stream), column_statistics_kernel<T>,
                 s, cut.parts, of, workspace, mean, variance, count);
}

template <class T>
void column_sums(const ColumnShape& s, const T* x, const statistic_t<T>* mean, const T* dy,
                 statistic_t<T>* workspace, statistic_t<T>* sum_dy, statistic_t<T>* sum_dy_d,
                 void* stream) {
  if (s.channels == 0) return;
  const ColumnParts cut = column_parts(s);
  const SumsOf<T> of{x, mean, dy};
  launch_parts<T>(s, cut, of, workspace, stream);
  device::launch(loop_config("column_sums", s.channels, stream), column_sums_kernel<T>, s,
                 cut.parts, of, workspace, sum_dy, sum_dy_d);
}

template <class T>
void column_affine(const ColumnShape& s, const T* x, const bool* mask, const statistic_t<T>* mean,
                   const T* dy, const statistic_t<T>* a, const statistic_t<T>* b,
                   const statistic_t<T>* c, T* out, void* stream) {
  if (s.count() == 0) return;
  device::launch(loop_config("column_affine", s.count(), stream), column_affine_kernel<T>, s, x,
                 mask, mean, dy, a, b, c, out);
}

#define NORMA_COLUMN_NORM(T)                                                                       \
  template void column_statistics<T>(const ColumnShape&, const T*, const bool*, statistic_t<T>*,   \
                                     statistic_t<T>*, statistic_t<T>*, statistic_t<T>*, void*);    \
  template void column_sums<T>(const ColumnShape&, const T*, const statistic_t<T>*, const T*,      \
                               statistic_t<T>*, statistic_t<T>*, statistic_t<T>*, void*);          \
  template void column_affine<T>(const ColumnShape&, const T*, const bool*, const statistic_t<T>*, \
                                 const T*, const statistic_t<T>*, const statistic_t<T>*,           \
                                 const statistic_t<T>*, T*, void*);
NORMA_COLUMN_NORM(float)
NORMA_COLUMN_NORM(double)
NORMA_COLUMN_NORM(Half)
NORMA_COLUMN_NORM(BFloat16)

}  // namespace norma::cuda_kernels
