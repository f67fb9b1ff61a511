// Samples of the norms of channels. Running statistics are fixed arguments; tests/ops/
// batch_norm_test.cpp looks at how they move.
#include "norma/core/factory.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/power_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 1402) { return random(shape, seed, 0.5, 1.5); }

void tolerate_column_sums(OpEntry& entry) {
  entry.tolerances = {{float32, {5e-5, 1e-4}}, {float16, {1e-2, 2e-2}}, {bfloat16, {6e-2, 1.2e-1}}};
  entry.reason = "dweight and dbias are sums over all positions";
}

OpEntry batch_norm_entry() {
  OpEntry entry{.name = "batch_norm"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs,
        [](In in) { return batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        [](In in) { return composite::batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        large));
  };
  add("tokens", {random({5, 3}, 1401), gain({3}), random({3}, 1403)});
  add("positions", {random({2, 3, 4}, 1404), gain({3}), random({3}, 1405)});
  add("planes, no weight", {random({2, 3, 2, 2}, 1406), {}, random({3}, 1407)});
  add("no bias", {random({5, 3}, 1408), gain({3}), {}});
  add("no samples", {zeros({0, 4}, {.dtype = float64}), gain({4}), {}});
  const Tensor mean = random({3}, 1409), variance = gain({3}, 1410);
  for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 4}})
    entry.samples.push_back(norm_sample(
        shape.size() == 2 ? "running statistics, tokens" : "running statistics, positions",
        {random(shape, 1411), gain({3}), random({3}, 1412)},
        [=](In in) { return batch_norm(in[0], mean, variance, in[1], in[2]); },
        [=](In in) { return composite::batch_norm(in[0], mean, variance, in[1], in[2]); }));
  for (const auto& [rows, width] : museum) {
    if (rows == 1) continue;
    add(fmt::format("{} x {}", rows, width),
        {random({rows, width}, 1413), gain({width}), random({width}, 1414)}, true);
  }
  add("3 x 31 x 33", {random({3, 31, 33}, 1415), gain({31}), random({31}, 1416)}, true);
  const Tensor x = ones({2, 3});
  entry.errors = {
      {"one value",
       [] {
         batch_norm(ones({1, 3}), {}, {}, {}, {}, true);
       },
       "more than one value"},
      {"weight", [x] { batch_norm(x, {}, {}, ones({2})); }, "weight must have the shape [3]"},
      {"running", [x] { batch_norm(x, ones({2}), ones({2})); }, "must have the shape [3]; got [2]"},
      {"one running", [x] { batch_norm(x, {}, ones({3})); }, "running_var alone"},
      {"vector", [] { batch_norm(ones({3}), {}, {}); }, "[samples, channels, *]; got [3]"}};
  tolerate_column_sums(entry);
  return entry;
}

Tensor mask_of(const Shape& shape, std::uint64_t seed) { return random(shape, seed) > 0.3; }

OpEntry masked_batch_norm_entry() {
  OpEntry entry{.name = "masked_batch_norm"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs,
        [](In in) { return masked_batch_norm(in[0], in[3], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        [](In in) {
          return composite::masked_batch_norm(in[0], in[3], {}, {}, in[1], in[2], true, 0.1, 0.1);
        },
        large));
  };
  add("tokens", {random({2, 4, 3}, 1421), gain({3}), random({3}, 1422), mask_of({2, 4}, 1423)});
  add("no mask", {random({2, 4, 3}, 1424), gain({3}), random({3}, 1425), {}});
  add("no weight", {random({5, 3}, 1426), {}, {}, mask_of({5}, 1427)});
  add("no samples", {zeros({0, 3}, {.dtype = float64}), gain({3}), {}, mask_of({0}, 1436)});
  add("nothing but padding", {random({5, 3}, 1428), gain({3}), {}, ones({5}) > 0.5});
  const Tensor mean = random({3}, 1429), variance = gain({3}, 1430);
  entry.samples.push_back(norm_sample(
      "running statistics", {random({2, 4, 3}, 1431), gain({3}), random({3}, 1432)},
      [=](In in) { return masked_batch_norm(in[0], {}, mean, variance, in[1], in[2]); },
      [=](In in) {
        return composite::masked_batch_norm(in[0], {}, mean, variance, in[1], in[2]);
      }));
  for (const auto& [rows, width] : museum)
    if (rows > 1)
      add(fmt::format("{} x {}", rows, width),
          {random({rows, width}, 1433), gain({width}), random({width}, 1434),
           mask_of({rows}, 1435)},
          true);
  const Tensor x = ones({2, 4, 3});
  entry.errors = {{"mask", [x] { masked_batch_norm(x, ones({2}) > 0.0, {}, {}); },
                   "padding_mask must have the shape [2, 4] of the tokens; got [2]"},
                  {"mask dtype",
                   [x] {
                     masked_batch_norm(x, ones({2, 4}), {}, {});
                   },
                   "padding_mask must be bool, true = padding; got float32"}};
  tolerate_column_sums(entry);
  return entry;
}

OpEntry regularized_batch_norm_entry() {
  OpEntry entry{.name = "regularized_batch_norm",
                .no_threads_because = "the kernels of batch_norm, whose samples of many rows do"};
  const auto add = [&](const std::string& label, const TensorList& inputs, std::int64_t width,
                       const RegularizedBatchNormOptions& options, bool large = false) {
    const Tensor mean = random({width}, 1441), variance = random({width}, 1442, 2.0, 3.0);
    const auto both = [](const RegularizedBatchNorm& result) {
      return TensorList{result.output, result.penalty};
    };
    entry.samples.push_back({label, inputs,
                             [=](In in) {
                               return both(regularized_batch_norm(in[0], in[3], mean.clone(),
                                                                  variance.clone(), in[1], in[2],
                                                                  true, options));
                             },
                             [=](In in) {
                               return both(composite::regularized_batch_norm(
                                   in[0], in[3], mean, variance, in[1], in[2], true, options));
                             },
                             large});
  };
  const TensorList tokens{random({2, 4, 3}, 1443), gain({3}), random({3}, 1444),
                          mask_of({2, 4}, 1445)};
  add("tokens", tokens, 3, {});
  add("strong penalty", tokens, 3, {.mean_penalty = 2.0, .variance_penalty = 3.0});
  add("variance below eps", tokens, 3, {.eps = 10.0});
  add("no samples", {zeros({0, 3}, {.dtype = float64}), gain({3}), {}, {}}, 3, {});
  add("33 x 255", {random({33, 255}, 1446), gain({255}), {}, mask_of({33}, 1447)}, 255, {}, true);
  const Tensor mean = random({3}, 1448), variance = gain({3}, 1449);
  entry.samples.push_back(norm_sample(
      "evaluation", {random({2, 4, 3}, 1450), gain({3}), {}},
      [=](In in) { return regularized_batch_norm(in[0], {}, mean, variance, in[1]).output; },
      [=](In in) {
        return composite::regularized_batch_norm(in[0], {}, mean, variance, in[1]).output;
      }));
  entry.errors = {{"no running statistics",
                   [] {
                     regularized_batch_norm(ones({2, 3}), {}, {}, {});
                   },
                   "running statistics must be given"}};
  tolerate_column_sums(entry);
  return entry;
}

// Evaluation alone, where phi is a constant: the training form moves its statistics and is no
// derivative. tests/ops/norm_golden_test.cpp holds that one against the recursion of its source.
OpEntry power_norm_entry() {
  OpEntry entry{.name = "power_norm", .second_order = false};
  const auto add = [&](const std::string& label, const TensorList& inputs, std::int64_t width,
                       bool large = false) {
    const Tensor phi = random({width}, 1461, 0.5, 2.0), nu = zeros({width});
    entry.samples.push_back(norm_sample(
        label, inputs,
        [=](In in) { return power_norm(in[0], {}, phi, nu, in[1], in[2], false, 1); },
        [=](In in) {
          const Tensor z = in[0] / (phi.to(in[0].dtype()) + PowerNormOptions{}.eps).sqrt();
          const Tensor scaled = in[1].defined() ? z * in[1] : z;
          return in[2].defined() ? scaled + in[2] : scaled;
        },
        large));
  };
  add("tokens", {random({2, 4, 3}, 1462), gain({3}), random({3}, 1463)}, 3);
  add("no weight", {random({5, 3}, 1464), {}, random({3}, 1465)}, 3);
  add("no bias", {random({5, 3}, 1466), gain({3}), {}}, 3);
  add("no tokens", {zeros({0, 3}, {.dtype = float64}), gain({3}), random({3}, 1467)}, 3);
  for (const auto& [rows, width] : museum)
    add(fmt::format("{} x {}", rows, width),
        {random({rows, width}, 1468), gain({width}), random({width}, 1469)}, width, true);
  const Tensor x = ones({2, 3}), phi = ones({3});
  entry.errors = {
      {"weight", [=] { power_norm(x, {}, phi, phi, ones({2}), {}, false, 1); }, "shape [3]"},
      {"phi", [=] { power_norm(x, {}, {}, phi, {}, {}, false, 1); }, "must be defined; got"},
      {"step", [=] { power_norm(x, {}, phi, phi, {}, {}, true, 0); }, "counts from 1; got 0"},
      {"mask", [=] { power_norm(x, ones({3}), phi, phi, {}, {}, true, 1); }, "of shape [2]"}};
  tolerate_column_sums(entry);
  entry.reason = "its backward is no derivative and refuses create_graph; " + entry.reason;
  return entry;
}

}  // namespace

void add_column_norm_ops(OpTable& table) {
  add_with_many_rows(table, batch_norm_entry());
  add_with_many_rows(table, masked_batch_norm_entry());
  table.push_back(regularized_batch_norm_entry());
  add_with_many_rows(table, power_norm_entry());
}

}  // namespace norma::test
