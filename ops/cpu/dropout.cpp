#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/philox_simd.h"

#include <cmath>

namespace norma::cpu_kernels {

namespace {

void dropout(const Tensor& x, double p, PhiloxState state, const Tensor& out) {
  // uniform(word) = (word >> 8) / 2^24 >= p, in integers and so exact.
  const auto threshold = static_cast<std::int32_t>(std::ceil(p * 16777216.0));
  visit_floating(x.dtype(), "dropout", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const C scale = p < 1.0 ? static_cast<C>(1.0 / (1.0 - p)) : C(0);
    const T* const px = x.data<T>();
    T* const po = out.data<T>();
    const std::int64_t numel = x.numel();
    const std::int64_t chunks = (numel + philox_chunk - 1) / philox_chunk;
    parallel_for(chunks, 2 * philox_chunk, [=](std::int64_t begin, std::int64_t end) {
      alignas(64) std::uint32_t words[philox_chunk];
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        philox_words(state, static_cast<std::uint64_t>(chunk * philox_lanes), words);
        const T* const cx = px + chunk * philox_chunk;
        T* const co = po + chunk * philox_chunk;
        const auto keep = [&](std::int64_t i) {
          const bool kept = static_cast<std::int32_t>(words[i] >> 8) >= threshold;
          const C value = static_cast<C>(cx[i]) * scale;
          co[i] = static_cast<T>(kept ? value : C(0));
        };
        const std::int64_t count = std::min(philox_chunk, numel - chunk * philox_chunk);
        if (count == philox_chunk) {
#pragma omp simd
          for (std::int64_t i = 0; i < philox_chunk; ++i) keep(i);
        } else {
          for (std::int64_t i = 0; i < count; ++i) keep(i);
        }
      }
    });
  });
}

}  // namespace

void add_dropout_kernels(Backend& table) { table.dropout = dropout; }

}  // namespace norma::cpu_kernels
