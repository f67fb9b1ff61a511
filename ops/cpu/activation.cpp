// Gated activations. Those of one tensor are unary kernels: elementwise_unary.cpp.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/vec_math.h"

namespace norma::cpu_kernels {

namespace {

constexpr std::int64_t cost = 4;  // of one exponential, in units of a copy

void swiglu(const Tensor& gate, const Tensor& up, const Tensor& out) {
  visit_floating(out.dtype(), "swiglu", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const pg = gate.data<T>();
    const T* const pu = up.data<T>();
    T* const po = out.data<T>();
    parallel_for(out.numel(), cost, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const C g = static_cast<C>(pg[i]);
        po[i] = static_cast<T>(g * VecMath::sigmoid(g) * static_cast<C>(pu[i]));
      }
    });
  });
}

void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                     const Tensor& dup) {
  visit_floating(dy.dtype(), "swiglu_backward", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const pg = gate.data<T>();
    const T* const pu = up.data<T>();
    const T* const pdy = dy.data<T>();
    T* const pdg = dgate.defined() ? dgate.data<T>() : nullptr;
    T* const pdu = dup.defined() ? dup.data<T>() : nullptr;
    parallel_for(dy.numel(), cost, [=](std::int64_t begin, std::int64_t end) {
      if (pdg != nullptr) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          const C g = static_cast<C>(pg[i]);
          const C s = VecMath::sigmoid(g);
          const C slope = s * (C(1) + g * (C(1) - s));
          pdg[i] = static_cast<T>(static_cast<C>(pdy[i]) * static_cast<C>(pu[i]) * slope);
        }
      }
      if (pdu != nullptr) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          const C g = static_cast<C>(pg[i]);
          pdu[i] = static_cast<T>(static_cast<C>(pdy[i]) * (g * VecMath::sigmoid(g)));
        }
      }
    });
  });
}

}  // namespace

void add_activation_kernels(Backend& table) {
  table.swiglu = swiglu;
  table.swiglu_backward = swiglu_backward;
}

}  // namespace norma::cpu_kernels
