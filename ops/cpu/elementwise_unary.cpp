// Unary elementwise kernels with their derivatives: the loops around formulas/unary.h.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/stream.h"
#include "norma/ops/cpu/vec_math.h"
#include "norma/ops/formulas/unary.h"

namespace norma::cpu_kernels {

namespace {

/// Work of one element in units of a plain copy, for parallel_for.
constexpr std::int64_t cost_of(UnaryOp op) {
  if (op == UnaryOp::sin || op == UnaryOp::cos) return 16;
  return op >= UnaryOp::exp && !is_predicate(op) ? 4 : 1;
}

/// out[i] = f(i), by pieces that stay in the first-level cache until they are stored.
template <class Out, class F>
void fill(const Tensor& out, std::int64_t cost, F f) {
  constexpr std::int64_t piece = 1024;
  Out* const po = out.data<Out>();
  const std::int64_t total = out.numel();
  parallel_for((total + piece - 1) / piece, cost * piece,
               [=](std::int64_t begin, std::int64_t end) {
                 alignas(64) Out scratch[piece];
                 const RowStream<Out> stream(po, piece, total, scratch);
                 for (std::int64_t k = begin; k < end; ++k) {
                   const std::int64_t first = k * piece, count = std::min(piece, total - first);
                   Out* const to = count == piece ? stream.target(k) : po + first;
#pragma omp simd
                   for (std::int64_t i = 0; i < count; ++i) to[i] = f(first + i);
                   if (count == piece) stream.store(k, 1);
                 }
               });
}

void unary(UnaryOp op, const Tensor& x, const Tensor& out) {
  const auto run = [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    visit_op<UnaryOp::isfinite>(op, [&]<UnaryOp tag>(OpTag<tag>) {
      if constexpr (std::is_floating_point_v<C> || takes_integers(tag)) {
        using Out = std::conditional_t<is_predicate(tag), bool, T>;
        fill<Out>(out, cost_of(tag), [px = x.data<T>()](std::int64_t i) {
          return static_cast<Out>(formulas::unary<tag, VecMath>(static_cast<C>(px[i])));
        });
      }
    });
  };
  if (takes_integers(op))
    visit_all(x.dtype(), run);
  else
    visit_floating(x.dtype(), "unary", run);
}

void unary_backward(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& dy,
                    const Tensor& dx) {
  check<NotImplementedError>(is_differentiable(op), "unary_backward",
                             "the operation must have a gradient; got number {} of UnaryOp",
                             static_cast<int>(op));
  visit_floating(dy.dtype(), "unary_backward", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const px = x.data<T>();
    const T* const py = y.data<T>();
    const T* const pdy = dy.data<T>();
    visit_op<UnaryOp::isfinite>(op, [&]<UnaryOp tag>(OpTag<tag>) {
      if constexpr (is_differentiable(tag))
        fill<T>(dx, cost_of(tag), [=](std::int64_t i) {
          return static_cast<T>(formulas::unary_backward<tag, VecMath>(
              static_cast<C>(px[i]), static_cast<C>(py[i]), static_cast<C>(pdy[i])));
        });
    });
  });
}

}  // namespace

void add_unary_kernels(Backend& table) {
  table.unary = unary;
  table.unary_backward = unary_backward;
}

}  // namespace norma::cpu_kernels
