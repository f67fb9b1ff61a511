#include "norma/ops/elementwise.h"
#include "norma/core/factory.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {

namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// Values in (low, high), on shapes that meet every path: a row, a matrix, a scalar, nothing, more
/// than one thread's share.
OpEntry unary(const char* name, Unary function, double low, double high) {
  const OpFunction run = [function](const TensorList& in) { return TensorList{function(in[0])}; };
  OpEntry entry{.name = name};
  entry.samples = {{"matrix", {random({3, 5}, 1, low, high)}, run},
                   {"row with a tail", {random({13}, 2, low, high)}, run},
                   {"scalar", {random({}, 3, low, high)}, run},
                   {"empty", {random({0, 3}, 4, low, high)}, run},
                   {.label = "two threads",
                    .inputs = {random({257, 263}, 5, low, high)},
                    .run = run,
                    .large = true}};
  entry.errors = {{"undefined", [function] { function(Tensor()); }, "must be defined"}};
  return entry;
}

/// `entry`, with `count` roundings to the dtype between inputs and result.
OpEntry stored(OpEntry entry, int count, const char* because) {
  entry.stored = count;
  entry.stored_because = because;
  return entry;
}

OpEntry binary(const char* name, Binary function, double low, double high) {
  const OpFunction run = [function](const TensorList& in) {
    return TensorList{function(in[0], in[1])};
  };
  const auto pair = [&](const char* label, const Shape& a, const Shape& b) {
    return OpSample{label, {random(a, 11, low, high), random(b, 12, low, high)}, run};
  };
  // Of thousands of gradients some cancel: near 1 little is left of the roundings of 16-bit types.
  const auto large_pair = [&](const char* label, const Shape& a, const Shape& b) {
    return OpSample{.label = label,
                    .inputs = {random(a, 13, 1.0, 1.25), random(b, 14, 1.0, 1.25)},
                    .run = run,
                    .large = true};
  };
  OpEntry entry{.name = name};
  entry.samples = {pair("one shape", {3, 5}, {3, 5}),
                   pair("row", {3, 5}, {5}),
                   pair("column", {3, 1}, {3, 5}),
                   pair("outer product", {4, 1}, {1, 3}),
                   pair("scalar tensor", {}, {2, 3}),
                   pair("middle dimension", {2, 1, 3}, {2, 4, 1}),
                   pair("empty", {0, 3}, {3}),
                   large_pair("two threads", {257, 263}, {257, 263}),
                   large_pair("two threads, broadcast", {2, 1, 17000}, {2, 17000})};
  entry.errors = {{"shapes",
                   [function] {
                     function(zeros({2, 3}), zeros({2, 4}));
                   },
                   name},
                  {"undefined", [function] { function(zeros({2}), Tensor()); }, "must be defined"}};
  return entry;
}

OpEntry comparison(const char* name, Binary function) {
  OpEntry entry = binary(name, function, -1.0, 1.0);
  entry.differentiable = false;
  entry.samples.push_back(
      {"equal elements",
       {tensor({1.0, 2.0, 0.0}, {.dtype = float64}), tensor({1.0, 3.0, -1.0}, {.dtype = float64})},
       entry.samples[0].run});
  return entry;
}

OpEntry predicate(const char* name, Unary function) {
  OpEntry entry = unary(name, function, -1.0, 1.0);
  entry.differentiable = false;
  return entry;
}

/// Operations of a number and a tensor.
OpEntry with_scalar(const char* name, const std::vector<std::pair<const char*, Unary>>& calls,
                    double low, double high) {
  OpEntry entry{.name = name};
  for (const auto& [text, function] : calls) {
    const auto sample = [&, text = text, function = function](const char* what, const Shape& shape,
                                                              bool large = false) {
      return OpSample{
          .label = fmt::format("{}, {}", text, what),
          .inputs = {random(shape, 21, low, high)},
          .run = [function](const TensorList& in) { return TensorList{function(in[0])}; },
          .large = large};
    };
    for (const OpSample& added : {sample("matrix", {3, 5}), sample("scalar", {}),
                                  sample("empty", {2, 0}), sample("two threads", {257, 263}, true)})
      entry.samples.push_back(added);
  }
  entry.no_errors_because = "same front door as the operation of two tensors";
  return entry;
}

void add_scalar_ops(OpTable& table) {
  table.push_back(with_scalar("arithmetic with scalars",
                              {{"x + 2.5", [](const Tensor& x) { return x + 2.5; }},
                               {"2.5 + x", [](const Tensor& x) { return 2.5 + x; }},
                               {"x - 1.5", [](const Tensor& x) { return x - 1.5; }},
                               {"1.5 - x", [](const Tensor& x) { return 1.5 - x; }},
                               {"x * 3", [](const Tensor& x) { return x * 3.0; }},
                               {"3 * x", [](const Tensor& x) { return 3.0 * x; }},
                               {"x / 4", [](const Tensor& x) { return x / 4.0; }},
                               {"2 / x", [](const Tensor& x) { return 2.0 / x; }}},
                              0.5, 2.0));
  table.back().stored = 1;
  table.back().stored_because = "the gradient of 2 / x comes from the output";
  for (const double exponent : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5}) {
    const OpFunction run = [exponent](const TensorList& in) {
      return TensorList{pow(in[0], exponent)};
    };
    OpEntry entry{.name = fmt::format("pow(x, {})", exponent),
                  .stored = 1,
                  .stored_because = "the power in the gradient is rounded"};
    entry.samples = {{"matrix", {random({3, 5}, 24, 0.5, 2.0)}, run},
                     {"empty", {random({0}, 25)}, run},
                     {.label = "two threads",
                      .inputs = {random({257, 263}, 27, 0.5, 2.0)},
                      .run = run,
                      .large = true}};
    if (exponent > 0.0 && exponent == static_cast<int>(exponent))
      entry.samples.push_back({"both signs", {random({7}, 26)}, run});
    entry.errors = {{"integers", [] { pow(ones({2}, {.dtype = int64}), -1); }, "exponent >= 0"}};
    if (exponent == 0.0) {
      entry.second_order = false;
      entry.no_second_order_because = "its gradient is the constant 0";
    }
    table.push_back(entry);
  }
  table.push_back(with_scalar("pow(scalar, x)",
                              {{"2.5^x", [](const Tensor& x) { return pow(2.5, x); }}}, -2.0, 2.0));
}

void add_selection_ops(OpTable& table) {
  const Tensor mask = random({3, 5}, 31) > 0.0;
  const OpFunction run_where = [](const TensorList& in) {
    return TensorList{where(in[0], in[1], in[2])};
  };
  OpEntry select{.name = "where"};
  select.samples = {
      {"one shape", {mask, random({3, 5}, 32), random({3, 5}, 33)}, run_where},
      {"broadcast", {random({3, 1}, 34) > 0.0, random({5}, 35), random({}, 36)}, run_where},
      {"empty", {mask.narrow(0, 0, 0), random({0, 5}, 37), random({5}, 38)}, run_where},
      {.label = "two threads",
       .inputs = {random({257, 263}, 39) > 0.0, random({257, 263}, 40), random({263}, 46)},
       .run = run_where,
       .large = true}};
  select.errors = {
      {"condition", [] { where(ones({2}), ones({2}), ones({2})); }, "must be a bool tensor"},
      {"shapes", [mask] { where(mask, ones({2}), ones({5})); }, "where"}};
  table.push_back(select);

  const OpFunction run_fill = [](const TensorList& in) {
    return TensorList{masked_fill(in[0], in[1], -3.0)};
  };
  OpEntry fill{.name = "masked_fill"};
  fill.samples = {{"one shape", {random({3, 5}, 41), mask}, run_fill},
                  {"row mask", {random({3, 5}, 42), random({5}, 43) > 0.0}, run_fill},
                  {"mask of more dimensions", {random({5}, 44), mask}, run_fill},
                  {"empty", {random({0, 5}, 45), mask.narrow(0, 0, 0)}, run_fill},
                  {.label = "two threads",
                   .inputs = {random({257, 263}, 47), random({257, 1}, 48) > 0.0},
                   .run = run_fill,
                   .large = true}};
  fill.errors = {
      {"mask", [] { masked_fill(ones({2}), ones({2}), 0.0); }, "must be a bool tensor"},
      {"fraction into integers",
       [] { masked_fill(ones({2}, {.dtype = int64}), ones({2}) > 0.0, 0.5); }, "integer value"}};
  table.push_back(fill);

  // Bounds that every dtype holds: of 67,591 values a 16-bit type rounds some to them.
  const OpFunction run_clamp = [](const TensorList& in) {
    return TensorList{clamp(in[0], -0.375, 0.5)};
  };
  OpEntry bounds{.name = "clamp"};
  bounds.samples = {
      {"both", {random({3, 5}, 51)}, run_clamp},
      {.label = "two threads", .inputs = {random({257, 263}, 54)}, .run = run_clamp, .large = true},
      {"max only",
       {random({7}, 52)},
       [](const TensorList& in) { return TensorList{clamp(in[0], std::nullopt, 0.3)}; }},
      {"empty", {random({0}, 53)}, [](const TensorList& in) {
         return TensorList{clamp(in[0], 0.0)};
       }}};
  bounds.errors = {{"no bound", [] { clamp(ones({2}), std::nullopt); }, "needs a bound"}};
  table.push_back(bounds);
}

}  // namespace

void add_elementwise_ops(OpTable& table) {
  table.push_back(binary("add", add, -2.0, 2.0));
  table.push_back(binary("sub", sub, -2.0, 2.0));
  const char* const products = "products with the gradient are rounded, and summed if broadcast";
  table.push_back(stored(binary("mul", mul, -2.0, 2.0), 1, products));
  table.push_back(stored(binary("div", div, 0.5, 2.0), 3, products));
  table.push_back(stored(binary("pow", pow, 0.5, 2.0), 3, products));
  table.push_back(binary("maximum", maximum, -2.0, 2.0));
  table.push_back(binary("minimum", minimum, -2.0, 2.0));
  table.push_back(comparison("eq", eq));
  table.push_back(comparison("ne", ne));
  table.push_back(comparison("lt", lt));
  table.push_back(comparison("le", le));
  table.push_back(comparison("gt", gt));
  table.push_back(comparison("ge", ge));
  table.push_back(comparison("logical_and", logical_and));
  table.push_back(comparison("logical_or", logical_or));
  table.push_back(comparison("logical_xor", logical_xor));
  table.push_back(predicate("logical_not", logical_not));
  table.push_back(predicate("isnan", isnan));
  table.push_back(predicate("isfinite", isfinite));

  const char* const from_output = "the gradient comes from the output";
  table.push_back(unary("neg", neg, -2.0, 2.0));
  table.push_back(unary("abs", abs, 0.1, 2.0));
  table.push_back(unary("abs", abs, -2.0, -0.1));
  table.push_back(unary("sign", sign, 0.1, 2.0));
  table.back().second_order = false;
  table.back().no_second_order_because = "its gradient is the constant 0";
  table.push_back(stored(unary("exp", exp, -3.0, 3.0), 1, from_output));
  table.push_back(unary("log", log, 0.2, 5.0));
  table.push_back(unary("log1p", log1p, -0.7, 5.0));
  table.push_back(stored(unary("sqrt", sqrt, 0.2, 5.0), 1, from_output));
  table.push_back(stored(unary("rsqrt", rsqrt, 0.2, 5.0), 1, from_output));
  table.push_back(stored(unary("reciprocal", reciprocal, 0.4, 3.0), 1, from_output));
  table.push_back(unary("square", square, -2.0, 2.0));
  table.push_back(unary("sin", sin, -3.0, 3.0));
  table.push_back(unary("cos", cos, -3.0, 3.0));
  table.push_back(stored(unary("tanh", tanh, -3.0, 3.0), 1, from_output));
  table.push_back(stored(unary("sigmoid", sigmoid, -4.0, 4.0), 1, from_output));
  table.push_back(unary("erf", erf, -2.0, 2.0));
  add_scalar_ops(table);
  add_selection_ops(table);
}

}  // namespace norma::test
