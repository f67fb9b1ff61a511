#include "norma/cuda/kernels/rope.h"

#include "norma/cuda/runtime/backend.h"

namespace norma::cuda_kernels {

namespace {

void run_rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved, bool inverse,
              const Tensor& out) {
  const Shape& from = x.strides();
  const Shape& to = out.strides();
  const RopeShape shape{.batch = x.size(0),
                        .heads = x.size(1),
                        .length = x.size(2),
                        .width = x.size(3),
                        .half = cos.size(1),
                        .x_strides = {from[0], from[1], from[2]},
                        .out_strides = {to[0], to[1], to[2]}};
  visit_floating(x.dtype(), "apply_rope", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    rope<T, C>(shape, x.data<T>(), cos.data<C>(), sin.data<C>(), interleaved, inverse,
               out.data<T>(), nullptr);
  });
}

}  // namespace

void add_rope_kernels(Backend& table) { table.rope = run_rope; }

}  // namespace norma::cuda_kernels
