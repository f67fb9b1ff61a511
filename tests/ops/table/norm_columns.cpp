// Samples of the norms of channels. Running statistics are fixed arguments; tests/ops/
// batch_norm_test.cpp looks at how they move.
#include "norma/core/factory.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/power_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"
#include "support/devices.h"

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 1402) { return random(shape, seed, 0.5, 1.5); }

OpEntry batch_norm_entry() {
  OpEntry entry{.name = "batch_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs,
        [](In in) { return batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        [](In in) { return composite::batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        large);
  };
  entry.samples.push_back(make("tokens", {random({5, 3}, 1401), gain({3}), random({3}, 1403)}));
  entry.samples.push_back(
      make("positions", {random({2, 3, 4}, 1404), gain({3}), random({3}, 1405)}));
  entry.samples.push_back(
      make("planes, no weight", {random({2, 3, 2, 2}, 1406), {}, random({3}, 1407)}));
  entry.samples.push_back(make("no bias", {random({5, 3}, 1408), gain({3}), {}}));
  entry.samples.push_back(make("no samples", {zeros({0, 4}, {.dtype = float64}), gain({4}), {}}));
  const Tensor mean = random({3}, 1409), variance = gain({3}, 1410);
  for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 4}})
    entry.samples.push_back(norm_sample(
        shape.size() == 2 ? "running statistics, tokens" : "running statistics, positions",
        {random(shape, 1411), gain({3}), random({3}, 1412)},
        [=](In in) {
          return batch_norm(in[0], beside(in[0], mean), beside(in[0], variance), in[1], in[2]);
        },
        [=](In in) {
          return composite::batch_norm(in[0], beside(in[0], mean), beside(in[0], variance), in[1],
                                       in[2]);
        }));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(s.channels_shape(), 1413), s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 1414) : Tensor()},
                true);
  };
  entry.not_at = [](const Size& s) {
    return s.rows == 1 ? "one value has no variance: an error" : needs_dimensions(s, 2, "channels");
  };
  entry.samples.push_back(
      make("3 x 31 x 33", {random({3, 31, 33}, 1415), gain({31}), random({31}, 1416)}, true));
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
  return entry;
}

Tensor mask_of(const Shape& shape, std::uint64_t seed) { return random(shape, seed) > 0.3; }
Tensor mask_at(const Size& size, std::uint64_t seed) {
  Shape tokens = size.rows_shape();
  tokens.pop_back();
  return mask_of(tokens, seed);
}

OpEntry masked_batch_norm_entry() {
  OpEntry entry{.name = "masked_batch_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs,
        [](In in) { return masked_batch_norm(in[0], in[3], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        [](In in) {
          return composite::masked_batch_norm(in[0], in[3], {}, {}, in[1], in[2], true, 0.1, 0.1);
        },
        large);
  };
  entry.samples.push_back(make(
      "tokens", {random({2, 4, 3}, 1421), gain({3}), random({3}, 1422), mask_of({2, 4}, 1423)}));
  entry.samples.push_back(
      make("no mask", {random({2, 4, 3}, 1424), gain({3}), random({3}, 1425), {}}));
  entry.samples.push_back(make("no weight", {random({5, 3}, 1426), {}, {}, mask_of({5}, 1427)}));
  entry.samples.push_back(
      make("no samples", {zeros({0, 3}, {.dtype = float64}), gain({3}), {}, mask_of({0}, 1436)}));
  entry.samples.push_back(
      make("nothing but padding", {random({5, 3}, 1428), gain({3}), {}, ones({5}) > 0.5}));
  const Tensor mean = random({3}, 1429), variance = gain({3}, 1430);
  entry.samples.push_back(norm_sample(
      "running statistics", {random({2, 4, 3}, 1431), gain({3}), random({3}, 1432)},
      [=](In in) {
        return masked_batch_norm(in[0], {}, beside(in[0], mean), beside(in[0], variance), in[1],
                                 in[2]);
      },
      [=](In in) {
        return composite::masked_batch_norm(in[0], {}, beside(in[0], mean), beside(in[0], variance),
                                            in[1], in[2]);
      }));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 1433), s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 1434) : Tensor(), mask_at(s, 1435)},
                true);
  };
  entry.not_at = [](const Size& s) { return needs_dimensions(s, 2, "tokens"); };
  const Tensor x = ones({2, 4, 3});
  entry.errors = {{"mask", [x] { masked_batch_norm(x, ones({2}) > 0.0, {}, {}); },
                   "padding_mask must have the shape [2, 4] of the tokens; got [2]"},
                  {"mask dtype",
                   [x] {
                     masked_batch_norm(x, ones({2, 4}), {}, {});
                   },
                   "padding_mask must be bool, true = padding; got float32"}};
  return entry;
}

OpEntry regularized_batch_norm_entry() {
  OpEntry entry{.name = "regularized_batch_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, std::int64_t width,
                        const RegularizedBatchNormOptions& options, bool large = false) {
    const Tensor mean = random({width}, 1441), variance = random({width}, 1442, 2.0, 3.0);
    const auto both = [](const RegularizedBatchNorm& result) {
      return TensorList{result.output, result.penalty};
    };
    return OpSample{label, inputs,
                    [=](In in) {
                      return both(regularized_batch_norm(in[0], in[3], beside(in[0], mean.clone()),
                                                         beside(in[0], variance.clone()), in[1],
                                                         in[2], true, options));
                    },
                    [=](In in) {
                      return both(composite::regularized_batch_norm(
                          in[0], in[3], beside(in[0], mean), beside(in[0], variance), in[1], in[2],
                          true, options));
                    },
                    large};
  };
  const TensorList tokens{random({2, 4, 3}, 1443), gain({3}), random({3}, 1444),
                          mask_of({2, 4}, 1445)};
  entry.samples.push_back(make("tokens", tokens, 3, {}));
  entry.samples.push_back(
      make("strong penalty", tokens, 3, {.mean_penalty = 2.0, .variance_penalty = 3.0}));
  entry.samples.push_back(make("variance below eps", tokens, 3, {.eps = 10.0}));
  entry.samples.push_back(
      make("no samples", {zeros({0, 3}, {.dtype = float64}), gain({3}), {}, {}}, 3, {}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 1446), s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 1451) : Tensor(), mask_at(s, 1447)},
                s.width, {}, true);
  };
  entry.not_at = [](const Size& s) { return needs_dimensions(s, 2, "tokens"); };
  const Tensor mean = random({3}, 1448), variance = gain({3}, 1449);
  entry.samples.push_back(norm_sample(
      "evaluation", {random({2, 4, 3}, 1450), gain({3}), {}},
      [=](In in) {
        return regularized_batch_norm(in[0], {}, beside(in[0], mean), beside(in[0], variance),
                                      in[1])
            .output;
      },
      [=](In in) {
        return composite::regularized_batch_norm(in[0], {}, beside(in[0], mean),
                                                 beside(in[0], variance), in[1])
            .output;
      }));
  entry.errors = {{"no running statistics",
                   [] {
                     regularized_batch_norm(ones({2, 3}), {}, {}, {});
                   },
                   "running statistics must be given"}};
  return entry;
}

// Evaluation alone, where phi is a constant: the training form moves its statistics and is no
// derivative. tests/ops/norm_golden_test.cpp holds that one against the recursion of its source.
OpEntry power_norm_entry() {
  OpEntry entry{
      .name = "power_norm",
      .second_order = false,
      .no_second_order_because = "its backward is no derivative and refuses create_graph"};
  const auto make = [=](const std::string& label, const TensorList& inputs, std::int64_t width,
                        bool large = false) {
    const Tensor phi = random({width}, 1461, 0.5, 2.0), nu = zeros({width});
    return norm_sample(
        label, inputs,
        [=](In in) {
          return power_norm(in[0], {}, beside(in[0], phi), beside(in[0], nu), in[1], in[2], false,
                            1);
        },
        [=](In in) {
          const Tensor z =
              in[0] / (beside(in[0], phi).to(in[0].dtype()) + PowerNormOptions{}.eps).sqrt();
          const Tensor scaled = in[1].defined() ? z * in[1] : z;
          return in[2].defined() ? scaled + in[2] : scaled;
        },
        large);
  };
  entry.samples.push_back(
      make("tokens", {random({2, 4, 3}, 1462), gain({3}), random({3}, 1463)}, 3));
  entry.samples.push_back(make("no weight", {random({5, 3}, 1464), {}, random({3}, 1465)}, 3));
  entry.samples.push_back(make("no bias", {random({5, 3}, 1466), gain({3}), {}}, 3));
  entry.samples.push_back(
      make("no tokens", {zeros({0, 3}, {.dtype = float64}), gain({3}), random({3}, 1467)}, 3));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 1468), s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 1469) : Tensor()},
                s.width, true);
  };
  entry.not_at = [](const Size& s) { return needs_dimensions(s, 2, "tokens"); };
  const Tensor x = ones({2, 3}), phi = ones({3});
  entry.errors = {
      {"weight", [=] { power_norm(x, {}, phi, phi, ones({2}), {}, false, 1); }, "shape [3]"},
      {"phi", [=] { power_norm(x, {}, {}, phi, {}, {}, false, 1); }, "must be defined; got"},
      {"step", [=] { power_norm(x, {}, phi, phi, {}, {}, true, 0); }, "counts from 1; got 0"},
      {"mask", [=] { power_norm(x, ones({3}), phi, phi, {}, {}, true, 1); }, "of shape [2]"}};
  return entry;
}

}  // namespace

void add_column_norm_ops(OpTable& table) {
  table.push_back(batch_norm_entry());
  table.push_back(masked_batch_norm_entry());
  table.push_back(regularized_batch_norm_entry());
  table.push_back(power_norm_entry());
}

}  // namespace norma::test
