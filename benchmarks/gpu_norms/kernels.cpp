#include "kernels.h"

#include <norma/core/autograd.h>
#include <norma/core/factory.h>
#include <norma/cuda/kernels/column_norm.h>
#include <norma/cuda/kernels/dual_norm.h>
#include <norma/cuda/kernels/pointwise.h>
#include <norma/cuda/kernels/poly_norm.h>
#include <norma/cuda/kernels/row_norm.h>
#include <norma/cuda/kernels/row_norm_plan.h>
#include <norma/cuda/kernels/squash.h>
#include <norma/cuda/runtime/pointers.h>
#include <norma/norma.h>

namespace norma::benchmarks {
namespace {

using namespace cuda_kernels;
using norma::detail::accumulate_dtype;

/// Both directions of a norm; Kernels come of it. The inputs of the backward are those of the
/// forward and a gradient for each output.
struct Norm {
  std::string name;
  std::function<std::vector<Shape>(std::int64_t rows, std::int64_t width)> inputs;
  std::size_t outputs;
  std::function<TensorList(const TensorList& in)> definition;
  std::function<Launch(const TensorList& in)> forward;
  std::function<Launch(const TensorList& in, const TensorList& dy)> backward;
  double forward_passes, backward_passes;
};

Tensor statistic(const Tensor& x, const Shape& shape) {
  return empty(shape, {.dtype = accumulate_dtype(x.dtype()), .device = x.device()});
}

template <class Use>
Launch in_dtype_of(const Tensor& x, const Use& use) {
  Launch result;
  visit_floating(x.dtype(), "gpu_norms",
                 [&]<class T>(TypeTag<T>) { result = use.template operator()<T>(); });
  return result;
}

// -- row norms: x, [residual], weight, [bias] -----------------------------------------------------

struct RowKind {
  RowNormParams params;
  bool bias, residual;
};

struct RowInputs {
  Tensor x, residual, weight, bias;
  RowInputs(const RowKind& kind, const TensorList& in)
      : x(in[0]),
        residual(kind.residual ? in[1] : Tensor()),
        weight(in[kind.residual ? 2 : 1]),
        bias(kind.bias ? in.back() : Tensor()) {}
};

RowNormShape row_shape(const Tensor& x) {
  return {.rows = x.size(0), .width = x.size(1), .columns = x.size(1)};
}
RowNormParams for_width(RowNormParams p, const Tensor& x) {
  p.statistic_width = x.size(1);
  p.divisor = static_cast<double>(x.size(1));
  return p;
}

/// kept: mean, rstd, what was normalized.
Launch row_forward(const RowKind& kind, const TensorList& in) {
  const RowInputs t(kind, in);
  return in_dtype_of(t.x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const Tensor out = empty_like(t.x), sum = kind.residual ? empty_like(t.x) : Tensor();
    const Tensor mean = kind.params.centred ? statistic(t.x, {t.x.size(0)}) : Tensor();
    const Tensor rstd = statistic(t.x, {t.x.size(0)});
    const RowNormForward<T> a{.shape = row_shape(t.x),
                              .params = for_width(kind.params, t.x),
                              .x = t.x.data<T>(),
                              .residual = pointer<T>(t.residual),
                              .weight = t.weight.data<T>(),
                              .bias = pointer<T>(t.bias),
                              .out = out.data<T>(),
                              .sum = pointer<T>(sum),
                              .mean = pointer<C>(mean),
                              .rstd = rstd.data<C>()};
    return {kind.residual ? TensorList{out, sum} : TensorList{out},
            {mean, rstd, kind.residual ? sum : t.x},
            [a](void* stream) { row_norm_forward(a, stream); }};
  });
}

Launch row_backward(const RowKind& kind, const TensorList& in, const TensorList& dy) {
  const RowInputs t(kind, in);
  const Launch forward = row_forward(kind, in);
  forward.run(nullptr);
  const Tensor mean = forward.kept[0], rstd = forward.kept[1], x = forward.kept[2];
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const RowNormShape shape = row_shape(x);
    const Tensor dx = empty_like(x), dresidual = kind.residual ? empty_like(x) : Tensor();
    const Tensor dweight = empty_like(t.weight), dbias = kind.bias ? empty_like(t.bias) : Tensor();
    const Tensor workspace = statistic(x, {workspace_elements(shape)});
    const RowNormBackward<T> a{.shape = shape,
                               .params = for_width(kind.params, x),
                               .x = x.data<T>(),
                               .weight = t.weight.data<T>(),
                               .mean = pointer<C>(mean),
                               .rstd = rstd.data<C>(),
                               .dy = dy[0].data<T>(),
                               .dsum = kind.residual ? dy[1].data<T>() : nullptr,
                               .dx = dx.data<T>(),
                               .dresidual = pointer<T>(dresidual),
                               .dweight = dweight.data<T>(),
                               .dbias = pointer<T>(dbias),
                               .workspace = workspace.data<C>()};
    TensorList outputs{dx};
    if (kind.residual) outputs.push_back(dresidual);
    outputs.push_back(dweight);
    if (kind.bias) outputs.push_back(dbias);
    return {
        outputs, {mean, rstd, x, workspace}, [a](void* stream) { row_norm_backward(a, stream); }};
  });
}

Norm row_norm(const std::string& name, const RowKind& kind) {
  const auto definition = [kind](const TensorList& in) -> TensorList {
    const RowInputs t(kind, in);
    const Shape width{t.x.size(1)};
    const double eps = kind.params.eps;
    if (!kind.residual)
      return {kind.params.centred ? layer_norm(t.x, width, t.weight, t.bias, eps)
                                  : rms_norm(t.x, width, t.weight, eps)};
    const ResidualOptions options{.norm = {.eps = eps}};
    const auto [out, sum] = kind.params.centred
                                ? add_layer_norm(t.x, t.residual, width, t.weight, t.bias, options)
                                : add_rms_norm(t.x, t.residual, width, t.weight, t.bias, options);
    return {out, sum};
  };
  return {name,
          [kind](std::int64_t rows, std::int64_t width) {
            std::vector<Shape> shapes{{rows, width}};
            if (kind.residual) shapes.push_back({rows, width});
            shapes.push_back({width});
            if (kind.bias) shapes.push_back({width});
            return shapes;
          },
          kind.residual ? 2u : 1u,
          definition,
          [kind](const TensorList& in) { return row_forward(kind, in); },
          [kind](const TensorList& in, const TensorList& dy) { return row_backward(kind, in, dy); },
          kind.residual ? 4.0 : 2.0,   // x, [residual], out, [sum]
          kind.residual ? 5.0 : 3.0};  // x, dy, [dsum], dx, [dresidual]
}

// -- two gains on one row: x, weight1, weight2 ----------------------------------------------------

Launch dual_forward(const RowNormParams& params, const TensorList& in) {
  const Tensor &x = in[0], &weight1 = in[1], &weight2 = in[2];
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const Tensor out1 = empty_like(x), out2 = empty_like(x), rstd = statistic(x, {x.size(0)});
    const DualNormForward<T> a{.shape = row_shape(x),
                               .params = for_width(params, x),
                               .x = x.data<T>(),
                               .weight = {weight1.data<T>(), weight2.data<T>()},
                               .bias = {nullptr, nullptr},
                               .out = {out1.data<T>(), out2.data<T>()},
                               .mean = nullptr,
                               .rstd = rstd.data<C>()};
    return {{out1, out2}, {rstd}, [a](void* stream) { dual_norm(a, stream); }};
  });
}

Launch dual_backward(const RowNormParams& params, const TensorList& in, const TensorList& dy) {
  const Tensor &x = in[0], &weight1 = in[1], &weight2 = in[2];
  const Launch forward = dual_forward(params, in);
  forward.run(nullptr);
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const RowNormShape shape = row_shape(x);
    const Tensor dx = empty_like(x), dweight1 = empty_like(weight1), dweight2 = empty_like(weight2);
    const Tensor workspace = statistic(x, {dual_norm_workspace(shape)});
    const DualNormBackward<T> a{.shape = shape,
                                .params = for_width(params, x),
                                .x = x.data<T>(),
                                .weight = {weight1.data<T>(), weight2.data<T>()},
                                .mean = nullptr,
                                .rstd = forward.kept[0].data<C>(),
                                .dy = {dy[0].data<T>(), dy[1].data<T>()},
                                .dx = dx.data<T>(),
                                .dweight = {dweight1.data<T>(), dweight2.data<T>()},
                                .dbias = {nullptr, nullptr},
                                .workspace = workspace.data<C>()};
    return {{dx, dweight1, dweight2}, {forward.kept[0], workspace}, [a](void* stream) {
              dual_norm_backward(a, stream);
            }};
  });
}

Norm dual_rms_norm_kernel() {
  const RowNormParams params{.eps = 1e-6};
  return {"dual_rms_norm",
          [](std::int64_t rows, std::int64_t width) {
            return std::vector<Shape>{{rows, width}, {width}, {width}};
          },
          2,
          [](const TensorList& in) -> TensorList {
            const auto [out1, out2] =
                dual_rms_norm(in[0], {.weight1 = in[1], .weight2 = in[2]}, {.eps = 1e-6});
            return {out1, out2};
          },
          [=](const TensorList& in) { return dual_forward(params, in); },
          [=](const TensorList& in, const TensorList& dy) { return dual_backward(params, in, dy); },
          3,   // x, two outputs
          4};  // x, two gradients, dx
}

// -- PolyNorm: x, weight [3], bias [1] ------------------------------------------------------------

Launch poly_forward(const TensorList& in) {
  const Tensor& x = in[0];
  return in_dtype_of(x, [&]<class T>() -> Launch {
    const Tensor out = empty_like(x), rstd = statistic(x, {x.size(0), 3});
    const PolyNormForward<T> a{.rows = x.size(0),
                               .width = x.size(1),
                               .eps = 1e-6,
                               .x = x.data<T>(),
                               .weight = in[1].data<T>(),
                               .bias = in[2].data<T>(),
                               .out = out.data<T>(),
                               .rstd = rstd.data<statistic_t<T>>()};
    return {{out}, {rstd}, [a](void* stream) { cuda_kernels::poly_norm(a, stream); }};
  });
}

Launch poly_backward(const TensorList& in, const TensorList& dy) {
  const Tensor& x = in[0];
  const Launch forward = poly_forward(in);
  forward.run(nullptr);
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const Tensor dx = empty_like(x), dweight = empty_like(in[1]), dbias = empty_like(in[2]);
    const Tensor workspace = statistic(x, {poly_norm_workspace(x.size(0))});
    const PolyNormBackward<T> a{.rows = x.size(0),
                                .width = x.size(1),
                                .x = x.data<T>(),
                                .weight = in[1].data<T>(),
                                .rstd = forward.kept[0].data<C>(),
                                .dy = dy[0].data<T>(),
                                .dx = dx.data<T>(),
                                .dweight = dweight.data<T>(),
                                .dbias = dbias.data<T>(),
                                .workspace = workspace.data<C>()};
    return {{dx, dweight, dbias}, {forward.kept[0], workspace}, [a](void* stream) {
              poly_norm_backward(a, stream);
            }};
  });
}

Norm poly_norm_kernel() {
  return {"poly_norm",
          [](std::int64_t rows, std::int64_t width) {
            return std::vector<Shape>{{rows, width}, {3}, {1}};
          },
          1,
          [](const TensorList& in) -> TensorList {
            return {norma::poly_norm(in[0], in[1], in[2], 1e-6)};
          },
          poly_forward,
          poly_backward,
          2,
          3};
}

// -- element-wise norms: x, [alpha], weight, [bias] -----------------------------------------------

struct SquashKind {
  Squash curve;
  bool alpha, bias;
};

struct SquashInputs {
  Tensor x, alpha, weight, bias;
  SquashInputs(const SquashKind& kind, const TensorList& in)
      : x(in[0]),
        alpha(kind.alpha ? in[1] : Tensor()),
        weight(in[kind.alpha ? 2 : 1]),
        bias(kind.bias ? in.back() : Tensor()) {}
};

Launch squash_launch(const SquashKind& kind, const TensorList& in) {
  const SquashInputs t(kind, in);
  return in_dtype_of(t.x, [&]<class T>() -> Launch {
    const Tensor out = empty_like(t.x);
    const SquashForward<T> a{.curve = kind.curve,
                             .shape = row_shape(t.x),
                             .x = t.x.data<T>(),
                             .alpha = pointer<T>(t.alpha),
                             .shift = nullptr,
                             .weight = t.weight.data<T>(),
                             .bias = pointer<T>(t.bias),
                             .out = out.data<T>()};
    return {{out}, {}, [a](void* stream) { squash(a, stream); }};
  });
}

Launch squash_backward_launch(const SquashKind& kind, const TensorList& in, const TensorList& dy) {
  const SquashInputs t(kind, in);
  return in_dtype_of(t.x, [&]<class T>() -> Launch {
    const RowNormShape shape = row_shape(t.x);
    const Tensor dx = empty_like(t.x), dweight = empty_like(t.weight);
    const Tensor dalpha = kind.alpha ? empty_like(t.alpha) : Tensor();
    const Tensor dbias = kind.bias ? empty_like(t.bias) : Tensor();
    const Tensor workspace = statistic(t.x, {squash_workspace(shape)});
    const SquashBackward<T> a{.curve = kind.curve,
                              .shape = shape,
                              .x = t.x.data<T>(),
                              .alpha = pointer<T>(t.alpha),
                              .shift = nullptr,
                              .weight = t.weight.data<T>(),
                              .dy = dy[0].data<T>(),
                              .dx = dx.data<T>(),
                              .dalpha = pointer<T>(dalpha),
                              .dshift = nullptr,
                              .dweight = dweight.data<T>(),
                              .dbias = pointer<T>(dbias),
                              .workspace = workspace.data<statistic_t<T>>()};
    TensorList outputs{dx};
    if (kind.alpha) outputs.push_back(dalpha);
    outputs.push_back(dweight);
    if (kind.bias) outputs.push_back(dbias);
    return {outputs, {workspace}, [a](void* stream) { squash_backward(a, stream); }};
  });
}

Norm squash_norm(const std::string& name, const SquashKind& kind) {
  const auto definition = [kind](const TensorList& in) -> TensorList {
    const SquashInputs t(kind, in);
    switch (kind.curve) {
      case Squash::tanh:
        return {dynamic_tanh(t.x, t.alpha, t.weight, t.bias)};
      case Squash::erf:
        return {dynamic_erf(t.x, t.alpha, Tensor(), t.weight, t.bias)};
      default:
        return {layer_scale(t.x, t.weight)};
    }
  };
  return {name,
          [kind](std::int64_t rows, std::int64_t width) {
            std::vector<Shape> shapes{{rows, width}};
            if (kind.alpha) shapes.push_back({1});
            shapes.push_back({width});
            if (kind.bias) shapes.push_back({width});
            return shapes;
          },
          1,
          definition,
          [kind](const TensorList& in) { return squash_launch(kind, in); },
          [kind](const TensorList& in, const TensorList& dy) {
            return squash_backward_launch(kind, in, dy);
          },
          2,
          3};
}

// -- soft cap: x ----------------------------------------------------------------------------------

constexpr double cap = 2.0;

Launch softcap_launch(const TensorList& in) {
  const Tensor& x = in[0];
  return in_dtype_of(x, [&]<class T>() -> Launch {
    const Tensor out = empty_like(x);
    return {{out}, {}, [from = x.data<T>(), to = out.data<T>(), n = x.numel()](void* stream) {
              cuda_kernels::softcap(from, n, cap, to, stream);
            }};
  });
}

Launch softcap_backward_launch(const TensorList& in, const TensorList& dy) {
  const Launch forward = softcap_launch(in);
  forward.run(nullptr);
  const Tensor y = forward.outputs[0];
  return in_dtype_of(y, [&]<class T>() -> Launch {
    const Tensor dx = empty_like(y);
    return {{dx},
            {y},
            [y = y.data<T>(), dy = dy[0].data<T>(), to = dx.data<T>(),
             n = y.numel()](void* stream) { softcap_backward(y, n, cap, dy, to, stream); }};
  });
}

Norm softcap_kernel() {
  return {"softcap",
          [](std::int64_t rows, std::int64_t width) {
            return std::vector<Shape>{{rows, width}};
          },
          1,
          [](const TensorList& in) -> TensorList { return {norma::softcap(in[0], cap)}; },
          softcap_launch,
          softcap_backward_launch,
          2,
          3};
}

// -- the kernels of BatchNorm and its kin: x [rows, channels] -------------------------------------

ColumnShape column_shape(const Tensor& x) {
  return {.outer = x.size(0), .channels = x.size(1), .inner = 1};
}

/// mean, variance.
Launch column_statistics_launch(const TensorList& in) {
  const Tensor& x = in[0];
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const ColumnShape shape = column_shape(x);
    const Tensor mean = statistic(x, {x.size(1)}), variance = statistic(x, {x.size(1)});
    const Tensor count = statistic(x, {1}), workspace = statistic(x, {workspace_elements(shape)});
    return {{mean, variance},
            {count, workspace},
            [shape, from = x.data<T>(), space = workspace.data<C>(), m = mean.data<C>(),
             v = variance.data<C>(), n = count.data<C>()](void* stream) {
              column_statistics<T>(shape, from, nullptr, space, m, v, n, stream);
            }};
  });
}

/// x, dy: sums of dy and of dy (x - mean).
Launch column_sums_launch(const TensorList& in) {
  const Tensor &x = in[0], &dy = in[1];
  const Launch statistics = column_statistics_launch({x});
  statistics.run(nullptr);
  const Tensor mean = statistics.outputs[0];
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const ColumnShape shape = column_shape(x);
    const Tensor sum_dy = statistic(x, {x.size(1)}), sum_dy_d = statistic(x, {x.size(1)});
    const Tensor workspace = statistic(x, {workspace_elements(shape)});
    return {{sum_dy, sum_dy_d},
            {mean, workspace},
            [shape, from = x.data<T>(), m = mean.data<C>(), dy = dy.data<T>(),
             space = workspace.data<C>(), s = sum_dy.data<C>(), sd = sum_dy_d.data<C>()](
                void* stream) { column_sums<T>(shape, from, m, dy, space, s, sd, stream); }};
  });
}

/// x, b, c: b x + c; or x, dy, a, b, c: a dy + b x + c.
Launch column_affine_launch(const TensorList& in) {
  const bool backward = in.size() == 5;
  const Tensor &x = in[0], dy = backward ? in[1] : Tensor();
  const auto coefficient = [&](std::size_t i) { return in[i].to(accumulate_dtype(x.dtype())); };
  const Tensor a = backward ? coefficient(2) : Tensor();
  const Tensor b = coefficient(in.size() - 2), c = coefficient(in.size() - 1);
  return in_dtype_of(x, [&]<class T>() -> Launch {
    using C = statistic_t<T>;
    const Tensor out = empty_like(x);
    return {{out},
            {a, b, c},
            [shape = column_shape(x), from = x.data<T>(), dy = pointer<T>(dy), a = pointer<C>(a),
             b = b.data<C>(), c = c.data<C>(), to = out.data<T>()](void* stream) {
              column_affine<T>(shape, from, nullptr, nullptr, dy, a, b, c, to, stream);
            }};
  });
}

void add_column_kernels(std::vector<Kernel>& kernels) {
  const auto shapes = [](int rows_tensors, int column_tensors) {
    return [=](std::int64_t rows, std::int64_t width) {
      std::vector<Shape> result(rows_tensors, Shape{rows, width});
      result.insert(result.end(), column_tensors, Shape{width});
      return result;
    };
  };
  kernels.push_back({"column_statistics/forward", 1, shapes(1, 0),
                     [](const TensorList& in) -> TensorList {
                       const Tensor mean = norma::mean(in[0], {0});
                       const Tensor d = in[0] - mean;
                       return {mean, norma::mean(d * d, {0})};
                     },
                     column_statistics_launch});
  kernels.push_back({"column_affine/forward", 2, shapes(1, 2),
                     [](const TensorList& in) -> TensorList { return {in[1] * in[0] + in[2]}; },
                     column_affine_launch});
  kernels.push_back({"column_sums/backward", 2, shapes(2, 0),
                     [](const TensorList& in) -> TensorList {
                       const Tensor d = in[0] - norma::mean(in[0], {0});
                       return {sum(in[1], {0}), sum(in[1] * d, {0})};
                     },
                     column_sums_launch});
  kernels.push_back(
      {"column_affine/backward", 3, shapes(2, 3),
       [](const TensorList& in) -> TensorList { return {in[2] * in[1] + in[3] * in[0] + in[4]}; },
       column_affine_launch});
}

// -------------------------------------------------------------------------------------------------

void add_norm_kernels(std::vector<Kernel>& kernels, const Norm& norm) {
  kernels.push_back({norm.name + "/forward", norm.forward_passes, norm.inputs,
                     [norm](const TensorList& in) { return norm.definition(in); }, norm.forward});
  const auto split = [norm](const TensorList& in) {
    const auto end = in.end() - static_cast<std::ptrdiff_t>(norm.outputs);
    return std::pair<TensorList, TensorList>{{in.begin(), end}, {end, in.end()}};
  };
  kernels.push_back({norm.name + "/backward", norm.backward_passes,
                     [norm](std::int64_t rows, std::int64_t width) {
                       std::vector<Shape> shapes = norm.inputs(rows, width);
                       shapes.insert(shapes.end(), norm.outputs, Shape{rows, width});
                       return shapes;
                     },
                     [norm, split](const TensorList& in) {
                       auto [leaves, dy] = split(in);
                       for (Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
                       return grad(norm.definition(leaves), leaves, {.grad_outputs = dy});
                     },
                     [norm, split](const TensorList& in) {
                       const auto [inputs, dy] = split(in);
                       return norm.backward(inputs, dy);
                     }});
}

}  // namespace

std::vector<Kernel> norm_kernels() {
  const RowNormParams layer{.centred = true, .eps = 1e-5}, rms{.eps = 1e-6};
  std::vector<Kernel> kernels;
  add_norm_kernels(kernels,
                   row_norm("layer_norm", {.params = layer, .bias = true, .residual = false}));
  add_norm_kernels(kernels,
                   row_norm("rms_norm", {.params = rms, .bias = false, .residual = false}));
  add_norm_kernels(kernels,
                   row_norm("add_layer_norm", {.params = layer, .bias = true, .residual = true}));
  add_norm_kernels(kernels,
                   row_norm("add_rms_norm", {.params = rms, .bias = false, .residual = true}));
  add_norm_kernels(kernels, dual_rms_norm_kernel());
  add_norm_kernels(kernels, poly_norm_kernel());
  add_norm_kernels(kernels,
                   squash_norm("dyt", {.curve = Squash::tanh, .alpha = true, .bias = true}));
  add_norm_kernels(kernels,
                   squash_norm("derf", {.curve = Squash::erf, .alpha = true, .bias = true}));
  add_norm_kernels(
      kernels,
      squash_norm("layer_scale", {.curve = Squash::identity, .alpha = false, .bias = false}));
  add_norm_kernels(kernels, softcap_kernel());
  add_column_kernels(kernels);
  return kernels;
}

}  // namespace norma::benchmarks
