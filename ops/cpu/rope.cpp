// CPU kernel of rotary positions.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"

namespace norma::cpu_kernels {

namespace {

template <class T, class C>
void rotate_halves(const T* x, const C* cos, const C* sin, C sign, std::int64_t half, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const C a = x[i], b = x[half + i], c = cos[i], s = sign * sin[i];
    out[i] = static_cast<T>(a * c - b * s);
    out[half + i] = static_cast<T>(b * c + a * s);
  }
}

template <class T, class C>
void rotate_neighbours(const T* x, const C* cos, const C* sin, C sign, std::int64_t half, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const C a = x[2 * i], b = x[2 * i + 1], c = cos[i], s = sign * sin[i];
    out[2 * i] = static_cast<T>(a * c - b * s);
    out[2 * i + 1] = static_cast<T>(b * c + a * s);
  }
}

void rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved, bool inverse,
          const Tensor& out) {
  visit_floating(x.dtype(), "apply_rope", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const std::int64_t heads = x.size(1), length = x.size(2), width = x.size(3);
    const std::int64_t half = cos.size(1);
    const Shape xs = x.strides(), os = out.strides();
    const T* const px = x.data<T>();
    T* const po = out.data<T>();
    const C* const pc = cos.data<C>();
    const C* const ps = sin.data<C>();
    const C sign = inverse ? C{-1} : C{1};
    parallel_for(x.size(0) * heads * length, width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t b = row / (heads * length), h = row / length % heads, i = row % length;
        const T* const from = px + b * xs[0] + h * xs[1] + i * xs[2];
        T* const to = po + b * os[0] + h * os[1] + i * os[2];
        if (interleaved)
          rotate_neighbours(from, pc + i * half, ps + i * half, sign, half, to);
        else
          rotate_halves(from, pc + i * half, ps + i * half, sign, half, to);
        std::copy(from + 2 * half, from + width, to + 2 * half);
      }
    });
  });
}

}  // namespace

void add_rope_kernels(Backend& table) { table.rope = rope; }

}  // namespace norma::cpu_kernels
