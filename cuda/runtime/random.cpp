#include "norma/cuda/kernels/random.h"

#include "norma/cuda/runtime/backend.h"

namespace norma::cuda_kernels {

namespace {

void run_uniform(const Tensor& out, PhiloxState state, double low, double high) {
  visit_floating(out.dtype(), "uniform", [&]<class T>(TypeTag<T>) {
    uniform<T>(state, low, high, out.numel(), out.data<T>(), nullptr);
  });
}

void run_normal(const Tensor& out, PhiloxState state, double mean, double std) {
  visit_floating(out.dtype(), "normal", [&]<class T>(TypeTag<T>) {
    normal<T>(state, mean, std, out.numel(), out.data<T>(), nullptr);
  });
}

void run_randint(const Tensor& out, PhiloxState state, std::int64_t low, std::int64_t high) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    randint<T>(state, low, high, out.numel(), out.data<T>(), nullptr);
  });
}

}  // namespace

void add_random_kernels(Backend& table) {
  table.uniform = run_uniform;
  table.normal = run_normal;
  table.randint = run_randint;
}

}  // namespace norma::cuda_kernels
