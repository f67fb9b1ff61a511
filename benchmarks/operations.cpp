// Single operations, forward and backward, in float32: on a size that a last-level cache holds, and
// on two that it does not, with narrow rows and with wide ones.
#include <norma/core/autograd.h>
#include <norma/core/factory.h>
#include <norma/core/random.h>
#include <norma/norma.h>
#include <spdlog/fmt/fmt.h>

#include "case.h"

namespace norma::benchmarks {
namespace {

using OpFunction = std::function<Tensor(const TensorList&)>;

/// What a pass does at least. Only one of bytes and flops is set: the one that limits it.
struct Work {
  double bytes = 0.0;
  double flops = 0.0;
  double goal = 0.0;
};

/// Throws unless `actual` equals `expected` up to float32 rounding, relative to the largest
/// element.
void expect_close(const char* what, const Tensor& actual, const Tensor& expected) {
  const double scale = amax(abs(expected)).item();
  const double error = amax(abs(actual.to(float64) - expected)).item();
  check<ValueError>(
      error <= 1e-4 * scale, what,
      "must agree with the composite twin in float64; got an error of {} at a scale of {}", error,
      scale);
}

TensorList to_float64(const TensorList& inputs) {
  TensorList result;
  for (const Tensor& input : inputs)
    result.push_back(input.is_floating_point()
                         ? input.detach().to(float64).requires_grad_(input.requires_grad())
                         : input);
  return result;
}

TensorList leaves(const TensorList& inputs) {
  TensorList result;
  for (const Tensor& input : inputs)
    if (input.requires_grad()) result.push_back(input);
  return result;
}

/// Two cases: forward without a graph, and backward alone on a graph that is kept. Both pass the
/// same gate, `function` in float32 against its definition `twin` in float64.
void add_both(std::vector<Case>& cases, const std::string& operation, const std::string& shape,
              const OpFunction& function, const OpFunction& twin,
              const std::function<TensorList()>& make_inputs, double working_set,
              const Work& forward, const Work& backward) {
  struct Prepared {
    TensorList inputs;
    Tensor output, cotangent;
  };
  const auto prepared = std::make_shared<Prepared>();  // by the gate: cases not run take no memory
  const auto gate = [=] {
    const TensorList inputs = make_inputs();
    const Tensor output = function(inputs);
    const Tensor cotangent = randn(output.shape());
    const TensorList exact_inputs = to_float64(inputs);
    const Tensor exact = twin(exact_inputs);
    expect_close("forward", output.detach(), exact.detach());
    const TensorList gradients =
        grad({output}, leaves(inputs), {.grad_outputs = {cotangent}, .retain_graph = true});
    const TensorList exact_gradients =
        grad({exact}, leaves(exact_inputs), {.grad_outputs = {cotangent.to(float64)}});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      expect_close("backward", gradients[i], exact_gradients[i]);
    *prepared = {inputs, output, cotangent};
  };
  cases.push_back({.name = operation + "/forward/" + shape,
                   .gate = gate,
                   .run =
                       [=] {
                         const NoGradGuard no_grad;
                         function(prepared->inputs);
                       },
                   .bytes = forward.bytes,
                   .flops = forward.flops,
                   .working_set = working_set,
                   .goal = forward.goal});
  cases.push_back({.name = operation + "/backward/" + shape,
                   .gate = gate,
                   .run =
                       [=] {
                         grad({prepared->output}, leaves(prepared->inputs),
                              {.grad_outputs = {prepared->cotangent}, .retain_graph = true});
                       },
                   .bytes = backward.bytes,
                   .flops = backward.flops,
                   .working_set = working_set,
                   .goal = backward.goal});
}

Tensor parameter(const Shape& shape) { return randn(shape, {.requires_grad = true}); }

void add_rows(std::vector<Case>& cases, std::int64_t rows, std::int64_t width) {
  const std::string shape = fmt::format("{}x{}", rows, width);
  const double array = 4.0 * static_cast<double>(rows * width);
  const auto x = [=] { return parameter({rows, width}); };
  add_both(
      cases, "layer_norm", shape,
      [=](const TensorList& in) { return layer_norm(in[0], {width}, in[1], in[2]); },
      [=](const TensorList& in) { return composite::layer_norm(in[0], {width}, in[1], in[2]); },
      [=] {
        return TensorList{x(), parameter({width}), parameter({width})};
      },
      array, {.bytes = 2 * array, .goal = 0.85}, {.bytes = 3 * array, .goal = 0.75});
  add_both(
      cases, "rms_norm", shape,
      [=](const TensorList& in) { return rms_norm(in[0], {width}, in[1], 1e-6); },
      [=](const TensorList& in) { return composite::rms_norm(in[0], {width}, in[1], 1e-6); },
      [=] {
        return TensorList{x(), parameter({width})};
      },
      array, {.bytes = 2 * array, .goal = 0.85}, {.bytes = 3 * array, .goal = 0.75});
  add_both(
      cases, "softmax", shape, [](const TensorList& in) { return softmax(in[0], -1); },
      [](const TensorList& in) { return composite::softmax(in[0], -1); },
      [=] { return TensorList{x()}; }, array, {.bytes = 2 * array, .goal = 0.7},
      {.bytes = 3 * array, .goal = 0.7});
  add_both(
      cases, "gelu", shape, [](const TensorList& in) { return gelu(in[0]); },
      [](const TensorList& in) { return composite::gelu(in[0]); }, [=] { return TensorList{x()}; },
      array, {.bytes = 2 * array, .goal = 0.7}, {.bytes = 3 * array, .goal = 0.7});
}

void add_linear(std::vector<Case>& cases, std::int64_t rows, std::int64_t in_features,
                std::int64_t out_features) {
  const double flops = 2.0 * static_cast<double>(rows * in_features * out_features);
  const auto function = [](const TensorList& in) { return linear(in[0], in[1], in[2]); };
  const auto twin = [](const TensorList& in) { return composite::linear(in[0], in[1], in[2]); };
  add_both(cases, "linear", fmt::format("{}x{}x{}", rows, in_features, out_features), function,
           twin,
           [=] {
             return TensorList{parameter({rows, in_features}),
                               parameter({out_features, in_features}), parameter({out_features})};
           },
           0.0, {.flops = flops, .goal = 0.7}, {.flops = 2 * flops, .goal = 0.7});
}

void add_attention(std::vector<Case>& cases, bool causal) {
  constexpr std::int64_t batch = 32, heads = 4, length = 256, width = 32;
  const auto x = [=] { return parameter({batch, heads, length, width}); };
  // Forward: q k^T and p v. Backward: both again for the scores and three more. Half of it when
  // causal.
  const double product =
      2.0 * static_cast<double>(batch * heads * length * length * width) * (causal ? 0.5 : 1.0);
  const AttentionOptions options{.is_causal = causal};
  add_both(
      cases, causal ? "attention_causal" : "attention",
      fmt::format("{}x{}x{}x{}", batch, heads, length, width),
      [=](const TensorList& in) {
        return scaled_dot_product_attention(in[0], in[1], in[2], options);
      },
      [=](const TensorList& in) {
        return composite::scaled_dot_product_attention(in[0], in[1], in[2], options);
      },
      [=] {
        return TensorList{x(), x(), x()};
      },
      0.0, {.flops = 2 * product, .goal = 0.4}, {.flops = 5 * product, .goal = 0.4});
}

void add_cross_entropy(std::vector<Case>& cases) {
  constexpr std::int64_t rows = 4096, classes = 8192;
  const double array = 4.0 * rows * classes;
  const Tensor target = randint(0, classes, {rows});
  add_both(
      cases, "cross_entropy", fmt::format("{}x{}", rows, classes),
      [=](const TensorList& in) { return cross_entropy(in[0], target); },
      [=](const TensorList& in) { return composite::cross_entropy(in[0], target); },
      [=] {
        return TensorList{parameter({rows, classes})};
      },
      array, {.bytes = array, .goal = 0.7}, {.bytes = 2 * array, .goal = 0.7});
}

void add_embedding(std::vector<Case>& cases) {
  constexpr std::int64_t count = 8192, rows = 20000, width = 256;
  const Tensor index = randint(0, rows, {count});
  const double array = 4.0 * count * width;
  const double table = 4.0 * rows * width;
  add_both(
      cases, "embedding", fmt::format("{}x{}x{}", count, rows, width),
      [=](const TensorList& in) { return embedding(index, in[0]); },
      [=](const TensorList& in) { return index_select(in[0], 0, index); },
      [=] {
        return TensorList{parameter({rows, width})};
      },
      array, {.bytes = 2 * array, .goal = 0.5}, {.bytes = table + 3 * array, .goal = 0.7});
}

/// Has no twin: random. Its gate looks at what it promises instead.
void add_dropout(std::vector<Case>& cases, std::int64_t rows, std::int64_t width) {
  const double array = 4.0 * static_cast<double>(rows * width);
  const auto input = std::make_shared<Tensor>();
  const auto gate = [=] {
    const Tensor x = *input = ones({rows, width});
    const double mean = dropout(x, 0.1, true).mean().item();
    const double largest = amax(dropout(x, 0.1, true)).item();
    check<ValueError>(std::abs(mean - 1.0) < 0.01 && std::abs(largest - 1.0 / 0.9) < 1e-6,
                      "dropout", "must keep the mean and scale by 1 / (1 - p); got {} and {}", mean,
                      largest);
  };
  cases.push_back({.name = fmt::format("dropout/forward/{}x{}", rows, width),
                   .gate = gate,
                   .run = [=] { dropout(*input, 0.1, true); },
                   .bytes = 2 * array,
                   .working_set = array,
                   .goal = 0.7});
}

void add_addition(std::vector<Case>& cases, std::int64_t rows, std::int64_t width) {
  const double array = 4.0 * static_cast<double>(rows * width);
  const auto inputs = std::make_shared<TensorList>();
  const auto gate = [=] {
    *inputs = {randn({rows, width}), randn({rows, width})};
    expect_close("add", add(inputs->at(0), inputs->at(1)),
                 inputs->at(0).to(float64) + inputs->at(1).to(float64));
  };
  cases.push_back({.name = fmt::format("add/forward/{}x{}", rows, width),
                   .gate = gate,
                   .run = [=] { add(inputs->at(0), inputs->at(1)); },
                   .bytes = 3 * array,
                   .working_set = array,
                   .goal = 0.6});
}

/// One AdamW step over many tensors; the gate is the first step, which moves each weight by the
/// learning rate against the sign of its gradient.
void add_adamw(std::vector<Case>& cases) {
  constexpr std::int64_t count = 16, size = 1 << 18;
  const auto optimizer = std::make_shared<std::unique_ptr<optim::AdamW>>();
  const auto gate = [=] {
    TensorList weights;
    for (std::int64_t i = 0; i < count; ++i) {
      weights.push_back(zeros({size}, {.requires_grad = true}));
      weights.back().set_grad(randn({size}));
    }
    *optimizer = std::make_unique<optim::AdamW>(
        weights, optim::AdamWOptions{.lr = 1e-3, .eps = 0.0, .weight_decay = 0.01});
    (*optimizer)->step();
    expect_close("adamw", weights[0].detach(), sign(weights[0].grad()).to(float64) * -1e-3);
  };
  cases.push_back({.name = fmt::format("adamw/step/{}x{}", count, size),
                   .gate = gate,
                   .run = [=] { (*optimizer)->step(); },
                   .bytes = 7 * 4.0 * count * size,
                   .working_set = 4.0 * count * size,
                   .goal = 0.7});
}

/// A chain of 1,000 operations on single numbers and its backward: what recording costs.
void add_overhead(std::vector<Case>& cases) {
  const Tensor x = full({1}, 0.001, {.requires_grad = true});
  const auto chain = [=] {
    Tensor y = x;
    for (int i = 0; i < 500; ++i) y = (y + x) * x;
    y.backward();
  };
  const auto gate = [=] {
    chain();  // y = x^2 + x^3 + … + x^501 + x^501
    const double slope = x.grad().item();
    x.set_grad({});
    check<ValueError>(std::abs(slope - 0.002003) < 1e-6, "overhead",
                      "the gradient of x^2 + x^3 + … at 0.001 must be 0.002003; got {}", slope);
  };
  cases.push_back({.name = "overhead/step/1000", .gate = gate, .run = [=] {
                     chain();
                     x.set_grad({});
                   }});
}

}  // namespace

std::vector<Case> operation_cases() {
  std::vector<Case> cases;
  for (const auto& [rows, width] :
       {std::pair{4096, 256}, std::pair{8192, 1024}, std::pair{2048, 8192}}) {
    add_rows(cases, rows, width);
    add_dropout(cases, rows, width);
    add_addition(cases, rows, width);
  }
  add_linear(cases, 4096, 256, 1024);
  add_linear(cases, 4096, 1024, 256);
  add_attention(cases, false);
  add_attention(cases, true);
  add_cross_entropy(cases);
  add_embedding(cases);
  add_adamw(cases);
  add_overhead(cases);
  return cases;
}

}  // namespace norma::benchmarks
