#include "norma/ops/reduction.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/view.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {
namespace {

using Reduction = Tensor (*)(const Tensor&, const Shape&, bool);

OpSample reduce(const char* label, const Tensor& x, const OpFunction& run,
                const OpFunction& composite = nullptr, bool large = false) {
  return {label, {x}, run, composite, large};
}

/// The usual ways to reduce. `large` sizes cross the chunks of the kernels.
std::vector<OpSample> usual_samples(Reduction f, Reduction composite = nullptr) {
  const auto call = [](Reduction g, const Shape& dims, bool keepdim) -> OpFunction {
    if (g == nullptr) return nullptr;
    return [=](const TensorList& in) { return TensorList{g(in[0], dims, keepdim)}; };
  };
  const auto sample = [&](const char* label, const Shape& shape, const Shape& dims, bool keepdim,
                          bool large = false) {
    // Large sums of both signs would cancel to rounding errors.
    const Tensor x = large ? random(shape, 21, 0.5, 1.5) : random(shape, 21);
    return reduce(label, x, call(f, dims, keepdim), call(composite, dims, keepdim), large);
  };
  return {sample("all", {3, 4}, {}, false),
          sample("last", {3, 5}, {-1}, false),
          sample("first, kept", {4, 3}, {0}, true),
          sample("middle", {2, 3, 4}, {1}, false),
          sample("outer two", {2, 3, 4}, {0, 1}, false),
          sample("around the middle, kept", {2, 3, 2, 2}, {2, 0}, true),
          sample("sizes of 1", {1, 3, 1}, {0, 2}, false),
          sample("scalar", {}, {}, false),
          sample("no slices", {0, 3}, {1}, false),
          sample("long rows", {3, 40000}, {1}, false, true),
          sample("long columns", {1000, 300}, {0}, false, true)};
}

std::vector<OpErrorSample> usual_errors(const char* name, Reduction f) {
  const Tensor x = random({2, 3}, 1);
  const std::string prefix = std::string("[") + name + "] ";
  return {{"dim", [=] { f(x, {2}, false); }, prefix + "dimension must be in [-2, 1]; got 2"},
          {"twice",
           [=] {
             f(x, {1, -1}, false);
           },
           prefix + "each dimension may be named once"}};
}

Tensor var_unbiased(const Tensor& x, const Shape& dims, bool keepdim) {
  return var(x, dims, 1, keepdim);
}
Tensor std_unbiased(const Tensor& x, const Shape& dims, bool keepdim) {
  return std(x, dims, 1, keepdim);
}

/// Without slices of one element, whose unbiased variance is NaN.
std::vector<OpSample> without_single(std::vector<OpSample> samples) {
  std::erase_if(samples,
                [](const OpSample& s) { return s.label == "scalar" || s.label == "sizes of 1"; });
  return samples;
}

/// Distinct values well apart: no ties, no kinks within a step.
Tensor distinct(const Shape& shape) {
  const Tensor flat = arange(static_cast<double>(shape.numel()), {.dtype = float64});
  return reshape(sin(flat * 1.7) * 3.0, shape);
}

template <class F>
OpSample on_distinct(const char* label, const Shape& shape, const F& f) {
  return {label, {distinct(shape)}, [f](const TensorList& in) { return TensorList{f(in[0])}; }};
}

/// Rows and columns for two threads. Multiples of 1/64 in [0, 1): every dtype has the same ties.
template <class F>
OpSample on_many(const char* label, const F& f, const Shape& shape = {257, 263}) {
  const Tensor x = random(shape, 23, 0.0, 64.0).to(int64).to(float64) / 64.0;
  return {.label = label,
          .inputs = {x},
          .run = [f](const TensorList& in) { return TensorList{f(in[0])}; },
          .large = true};
}

void add_extrema(OpTable& table) {
  const Tensor empty_rows = zeros({2, 0}, {.dtype = float64});
  const Tensor x = distinct({2, 3});
  const auto extremum = [&](const char* name, Reduction f) {
    table.push_back(
        {.name = name,
         .samples = {on_distinct("all", {3, 4}, [f](auto& t) { return f(t, {}, false); }),
                     on_distinct("last, kept", {3, 4}, [f](auto& t) { return f(t, {-1}, true); }),
                     on_distinct("outer two", {2, 2, 3},
                                 [f](auto& t) {
                                   return f(t, {0, 1}, false);
                                 }),
                     on_distinct("scalar", {}, [f](auto& t) { return f(t, {}, false); }),
                     on_distinct("no slices", {0, 3}, [f](auto& t) { return f(t, {1}, false); }),
                     on_many("many rows", [f](auto& t) { return f(t, {1}, false); }),
                     on_many("many columns", [f](auto& t) { return f(t, {0}, false); })},
         .errors = {{"nothing", [=] { f(empty_rows, {1}, false); },
                     "must have elements; got shape [2, 0]"},
                    {"dim", [=] { f(x, {2}, false); }, std::string("[") + name + "] dimension"}}});
  };
  extremum("amax", amax);
  extremum("amin", amin);

  using At = ValuesAndIndices (*)(const Tensor&, std::int64_t, bool);
  const auto at = [&](const char* name, At f) {
    table.push_back(
        {.name = name,
         .samples = {on_distinct("columns", {3, 4}, [f](auto& t) { return f(t, 0, false).values; }),
                     on_distinct("rows, kept", {2, 2, 3},
                                 [f](auto& t) { return f(t, -1, true).values; }),
                     on_distinct("scalar", {}, [f](auto& t) { return f(t, 0, false).values; }),
                     on_distinct("no slices", {0, 3},
                                 [f](auto& t) { return f(t, 1, false).values; }),
                     on_many("many rows", [f](auto& t) { return f(t, 1, false).values; })},
         .errors = {{"nothing", [=] { f(empty_rows, 1, false); }, "must have elements"}}});
  };
  at("max", max);
  at("min", min);

  using Arg = Tensor (*)(const Tensor&, std::int64_t, bool);
  const auto arg = [&](const char* name, Arg f) {
    table.push_back(
        {.name = name,
         .samples = {on_distinct("rows", {3, 4}, [f](auto& t) { return f(t, 1, false); }),
                     on_distinct("columns", {3, 4}, [f](auto& t) { return f(t, 0, true); }),
                     on_distinct("no slices", {0, 3}, [f](auto& t) { return f(t, 1, false); }),
                     on_many("many columns", [f](auto& t) { return f(t, 0, false); })},
         .errors = {{"nothing", [=] { f(empty_rows, 1, false); }, "must have elements"}},
         .differentiable = false});
  };
  arg("argmax", argmax);
  arg("argmin", argmin);
}

}  // namespace

void add_reduction_ops(OpTable& table) {
  const Tensor integers = arange(6).reshape({2, 3});
  table.push_back(
      {.name = "sum", .samples = usual_samples(sum), .errors = usual_errors("sum", sum)});
  auto mean_errors = usual_errors("mean", mean);
  mean_errors.push_back(
      {"integers", [=] { mean(integers); }, "needs a floating-point tensor; got int64"});
  table.push_back({.name = "mean", .samples = usual_samples(mean), .errors = mean_errors});

  table.push_back({.name = "var",
                   .samples = without_single(usual_samples(var_unbiased)),
                   .errors = usual_errors("var", var_unbiased)});
  table.back().samples.push_back(reduce("biased", random({3, 4}, 22), [](const TensorList& in) {
    return TensorList{var(in[0], {1}, 0)};
  }));
  table.back().errors.push_back({"correction", [=] { var(random({2}, 1), {}, -1); },
                                 "correction must not be negative; got -1"});
  table.push_back({.name = "std",
                   .samples = without_single(usual_samples(std_unbiased)),
                   .errors = usual_errors("std", std_unbiased)});

  // Products of many values leave float16's range.
  table.push_back({.name = "prod",
                   .samples = usual_samples(prod, composite::prod),
                   .errors = usual_errors("prod", prod)});
  std::erase_if(table.back().samples, [](const OpSample& s) { return s.large; });
  table.back().samples.push_back(
      {"zeros",
       {tensor({{1.5, 0.0, -2.0}, {0.0, 3.0, 0.0}, {1.0, 2.0, -0.5}}, {.dtype = float64})},
       [](const TensorList& in) { return TensorList{prod(in[0], {1})}; },
       [](const TensorList& in) { return TensorList{composite::prod(in[0], {1})}; }});
  // Near 1: products of 263 of them stay in range.
  table.back().samples.push_back(reduce(
      "many rows", random({257, 263}, 24, 0.95, 1.05),
      [](const TensorList& in) { return TensorList{prod(in[0], {1})}; },
      [](const TensorList& in) { return TensorList{composite::prod(in[0], {1})}; }, true));
  table.push_back({.name = "logsumexp",
                   .samples = usual_samples(logsumexp, composite::logsumexp),
                   .errors = usual_errors("logsumexp", logsumexp)});
  table.push_back({.name = "vector_norm",
                   .samples = usual_samples(vector_norm,
                                            [](const Tensor& x, const Shape& dims, bool keepdim) {
                                              return sqrt(sum(square(x), dims, keepdim));
                                            }),
                   .errors = usual_errors("vector_norm", vector_norm),
                   .stored = 2,
                   .stored_because = "the gradient is x times one over the output, both rounded"});

  table.push_back(
      {.name = "cumsum",
       .samples = {on_distinct("rows", {3, 4}, [](auto& t) { return cumsum(t, 1); }),
                   on_distinct("columns", {3, 4}, [](auto& t) { return cumsum(t, 0); }),
                   on_distinct("scalar", {}, [](auto& t) { return cumsum(t, 0); }),
                   on_distinct("empty", {3, 0}, [](auto& t) { return cumsum(t, 1); }),
                   on_many("many rows", [](auto& t) { return cumsum(t, 1); }, {8192, 9})},
       .errors = {{"dim", [=] { cumsum(integers, 2); }, "[cumsum] dimension"}}});
  table.push_back(
      {.name = "sum_to_size",
       .samples = {on_distinct("front and inside", {2, 3, 4},
                               [](auto& t) {
                                 return sum_to_size(t, {3, 1});
                               }),
                   on_distinct("scalar", {2, 3}, [](auto& t) { return sum_to_size(t, {}); }),
                   on_distinct("of nothing", {0, 3}, [](auto& t) { return sum_to_size(t, {3}); }),
                   on_distinct("as it is", {2, 3},
                               [](auto& t) {
                                 return sum_to_size(t, {2, 3});
                               }),
                   on_many("many columns", [](auto& t) { return sum_to_size(t, {263}); })},
       .errors = {
           {"shape", [=] { sum_to_size(integers, {2}); }, "must broadcast to [2, 3]; got [2]"}}});

  const auto logic = [&](const char* name, Reduction f) {
    table.push_back(
        {.name = name,
         .samples = {on_distinct("all", {2, 3}, [f](auto& t) { return f(t, {}, false); }),
                     on_distinct("rows", {2, 3}, [f](auto& t) { return f(t, {1}, true); }),
                     on_distinct("of nothing", {2, 0}, [f](auto& t) { return f(t, {1}, false); }),
                     on_many("many rows", [f](auto& t) { return f(t, {1}, false); })},
         .errors = usual_errors(name, f),
         .differentiable = false});
  };
  logic("any", any);
  logic("all", all);
  add_extrema(table);
}

}  // namespace norma::test
