// Samples of the norms of channels. How they move their running statistics is a row of its own.
#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/index.h"
#include "norma/ops/power_norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"
#include "ops/table/norm.h"
#include "support/compare.h"
#include "support/devices.h"

#include <algorithm>

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
      {"evaluation without them", [x] { batch_norm(x, {}, {}); }, "evaluation needs running_mean"},
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
                  {"evaluation without running statistics",
                   [x] { masked_batch_norm(x, {}, {}, {}); }, "evaluation needs running_mean"},
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

/// The statistics that an operation moves, as they are before it: float64 for float64, else
/// float32.
Tensor running(In in, const Tensor& start) {
  return beside(in[0], start.to(in[0].dtype() == float64 ? float64 : float32)).clone();
}
Tensor moved(const Tensor& start, const Tensor& batch, double momentum) {
  return start.to(batch.dtype()) * (1.0 - momentum) + batch * momentum;
}

constexpr double momentum = 0.3;

/// Output and moved statistics of the norms in training, on [samples, channels, positions] or
/// tokens [..., channels].
OpEntry running_statistics_entry() {
  OpEntry entry{.name = "batch_norm and others in training",
                .no_errors_because = "the same operations as in evaluation"};
  // `function(x, mean, var)` normalizes and moves; `definition(x)` has the output and the
  // statistics of the batch.
  const auto make = [](const std::string& label, const Tensor& x, std::int64_t channels,
                       const auto& function, const auto& definition) {
    const Tensor mean = random({channels}, 1471), var = random({channels}, 1472, 0.5, 2.0);
    return OpSample{label,
                    {x},
                    [=](In in) {
                      const Tensor m = running(in, mean), v = running(in, var);
                      return TensorList{function(in[0], m, v), m, v};
                    },
                    [=](In in) {
                      const TensorList batch = definition(in[0]);
                      return TensorList{batch[0], moved(mean, batch[1].detach(), momentum),
                                        moved(var, batch[2].detach(), momentum)};
                    },
                    true};
  };
  const auto batch = [=](const std::string& label, const Tensor& x) {
    return make(
        label, x, x.size(1),
        [](const Tensor& in, const Tensor& mean, const Tensor& var) {
          return batch_norm(in, mean, var, {}, {}, true, momentum, 0.1);
        },
        [](const Tensor& in) {
          const Tensor flat = in.transpose(0, 1).reshape({in.size(1), -1});
          return TensorList{composite::batch_norm(in, {}, {}, {}, {}, true, 0.0, 0.1),
                            flat.mean({1}), norma::var(flat, {1})};
        });
  };
  const Tensor padding = tensor({0.0, 1.0, 0.0, 0.0}) > 0.5;
  const auto kept = [](const Tensor& tokens) {
    return cat({tokens.narrow(0, 0, 1), tokens.narrow(0, 2, 2)}, 0);
  };
  entry.samples.push_back(batch("batch_norm, tokens", random({5, 3}, 1473)));
  entry.samples.push_back(batch("batch_norm, positions", random({2, 3, 4}, 1474)));
  entry.samples.push_back(make(
      "masked_batch_norm", random({4, 3}, 1475), 3,
      [=](const Tensor& in, const Tensor& mean, const Tensor& var) {
        return masked_batch_norm(in, beside(in, padding), mean, var, {}, {}, true, momentum, 0.1);
      },
      [=](const Tensor& in) {
        return TensorList{composite::masked_batch_norm(in, padding, {}, {}, {}, {}, true, 0.0, 0.1),
                          kept(in).mean({0}), norma::var(kept(in), {0})};
      }));
  entry.samples.push_back(make(
      "regularized_batch_norm", random({4, 3}, 1476), 3,
      [=](const Tensor& in, const Tensor& mean, const Tensor& var) {
        return regularized_batch_norm(in, beside(in, padding), mean, var, {}, {}, true,
                                      {.momentum = momentum, .eps = 0.1})
            .output;
      },
      [=](const Tensor& in) {
        const Tensor start = zeros({3}, {.dtype = float64});
        return TensorList{
            composite::regularized_batch_norm(in, padding, start, start, {}, {}, true, {.eps = 0.1})
                .output,
            kept(in).mean({0}), norma::var(kept(in), {0}, 0)};
      }));
  const auto instance = [=](const std::string& label, const Tensor& x) {
    return make(
        label, x, x.size(1),
        [](const Tensor& in, const Tensor& mean, const Tensor& var) {
          return instance_norm(in, mean, var, {}, {}, true, momentum, 0.1);
        },
        [](const Tensor& in) {
          return TensorList{composite::instance_norm(in, {}, {}, {}, {}, true, 0.0, 0.1),
                            in.mean({2}).mean({0}), norma::var(in, {2}).mean({0})};
        });
  };
  entry.samples.push_back(instance("instance_norm", random({2, 3, 4}, 1477)));
  entry.at_size = [batch](const Size& s) {
    return batch(s.label(), random(s.channels_shape(), 1478));
  };
  entry.not_at = [](const Size& s) {
    return s.rows < 2 ? "no variance of fewer than two values" : needs_dimensions(s, 2, "channels");
  };
  entry.no_empty_because = "an empty batch moves nothing: norm_forms_test.cpp";
  return entry;
}

/// Here the sums themselves are the results.
std::string long_sums(const Size& s) {
  return s.rows > 8192 ? "its sums have longer chains than support/rounding.h grants, and a mean "
                         "near 0 shows it"
                       : needs_dimensions(s, 2, "tokens");
}

OpEntry moments_entry() {
  OpEntry entry{
      .name = "channel_moments", .differentiable = false, .no_golden_because = "PyTorch has none"};
  const auto make = [](const std::string& label, const Tensor& x, const Tensor& mask) {
    const auto listed = [](const Moments& m) { return TensorList{m.mean, m.variance, m.count}; };
    return OpSample{label,
                    {x, mask},
                    [=](In in) { return listed(channel_moments(in[0], in[1])); },
                    [](In in) {
                      const Tensor tokens = in[0].reshape({-1, in[0].size(-1)});
                      const Tensor kept = logical_not(in[1]).to(float64).reshape({-1, 1});
                      const Tensor count = kept.sum().reshape({1}), n = clamp(count, 1.0);
                      const Tensor mean = (tokens * kept).sum({0}) / n;
                      return TensorList{mean, (square(tokens - mean) * kept).sum({0}) / n, count};
                    },
                    true};
  };
  entry.samples.push_back(make("tokens", random({2, 4, 3}, 1481), mask_of({2, 4}, 1482)));
  entry.samples.push_back(make("nothing but padding", random({2, 3}, 1483), ones({2}) > 0.0));
  entry.samples.push_back(make("no tokens", zeros({0, 3}, {.dtype = float64}), mask_of({0}, 1484)));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 1485), mask_at(s, 1486));
  };
  entry.not_at = long_sums;
  entry.errors = {{"mask", [] { channel_moments(ones({2, 3}), ones({3}) > 0.0); }, "got [3]"}};
  return entry;
}

/// The moments of two parts are those of both together.
OpEntry merge_moments_entry() {
  OpEntry entry{
      .name = "merge_moments", .differentiable = false, .no_golden_because = "PyTorch has none"};
  const auto make = [](const std::string& label, const Tensor& first, const Tensor& second) {
    return OpSample{
        label,
        {first, second},
        [](In in) {
          const Moments m = merge_moments({channel_moments(in[0]), channel_moments(in[1])});
          return TensorList{m.mean, m.variance, m.count};
        },
        [](In in) {
          const std::int64_t width = in[0].size(-1);
          const Tensor all = cat({in[0].reshape({-1, width}), in[1].reshape({-1, width})}, 0);
          const auto count = static_cast<double>(all.size(0));
          const Tensor mean = all.sum({0}) / std::max(count, 1.0);
          return TensorList{mean, square(all - mean).sum({0}) / std::max(count, 1.0),
                            full({1}, count, {.dtype = float64})};
        },
        true};
  };
  entry.samples.push_back(make("parts", random({5, 3}, 1491), random({2, 3}, 1492) + 1.0));
  entry.samples.push_back(
      make("an empty part", zeros({0, 3}, {.dtype = float64}), random({4, 3}, 1493)));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 1494), random({3, s.width}, 1495));
  };
  entry.not_at = long_sums;
  entry.errors = {{"no parts", [] { merge_moments({}); }, "there must be a part; got none"}};
  return entry;
}

// Evaluation, where phi is a constant.
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

/// power_norm in training as its head says, in elementary operations: phi is the batch's mean
/// square in the first step and the running one later, and the backward moves nu.
struct PowerNormDefinition : Function<PowerNormDefinition> {
  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight,
                        const Tensor& batch_phi, const Tensor& phi, const Tensor& nu) {
    ctx.save_for_backward({x, weight, batch_phi, phi});
    ctx.set("nu", nu);
    return x / sqrt(phi + PowerNormOptions{}.eps) * weight;
  }
  static TensorList backward(Context& ctx, const Tensor& dy) {
    const TensorList saved = ctx.saved_tensors();
    const auto nu = ctx.get<Tensor>("nu");
    const double eps = PowerNormOptions{}.eps;
    const Tensor z = saved[0] / sqrt(saved[3] + eps);
    const Tensor g = dy * saved[1] - 0.1 * nu * z;
    nu.copy_(nu + sum_of_tokens(g * z) / tokens_of(z));
    return {g / sqrt(saved[2] + eps), sum_of_tokens(dy * z), {}, {}, {}};
  }
  static Tensor sum_of_tokens(const Tensor& x) { return x.reshape({-1, x.size(-1)}).sum({0}); }
  static double tokens_of(const Tensor& x) {
    return std::max(1.0, static_cast<double>(x.numel()) / static_cast<double>(x.size(-1)));
  }
};

/// Two steps: the second normalizes by what the first left of phi, and the backward of the first
/// sees what that of the second left of nu.
OpEntry power_norm_training_entry() {
  OpEntry entry{.name = "power_norm in training",
                .second_order = false,
                .no_errors_because = "the same operation as power_norm",
                .no_second_order_because = "its backward is no derivative and refuses create_graph",
                .stored = 1,
                .stored_because = "the gradients of both steps are rounded before they are added"};
  const auto make = [](const std::string& label, const Tensor& x, const Tensor& weight) {
    const std::int64_t width = x.size(-1);
    const Tensor start_phi = random({width}, 1496, 0.5, 2.0), start_nu = random({width}, 1497);
    return OpSample{
        label,
        {x, weight},
        [=](In in) {
          const Tensor phi = running(in, start_phi), nu = running(in, start_nu);
          const auto step = [&](std::int64_t number) {
            return power_norm(in[0], {}, phi, nu, in[1], {}, true, number, {.warmup_steps = 1});
          };
          const Tensor first = step(1), second = step(2);
          return TensorList{first, second, phi};
        },
        [=](In in) {
          using Definition = PowerNormDefinition;
          const Tensor nu = start_nu.clone(), rows = in[0].detach();
          const Tensor batch =
              Definition::sum_of_tokens(square(rows)) / Definition::tokens_of(rows);
          const Tensor after_one = rows.numel() == 0 ? start_phi : moved(start_phi, batch, 0.1);
          const Tensor after_two = rows.numel() == 0 ? start_phi : moved(after_one, batch, 0.1);
          const Tensor first = Definition::apply(in[0], in[1], batch, batch, nu);
          const Tensor second = Definition::apply(in[0], in[1], batch, after_one, nu);
          return TensorList{first, second, after_two};
        },
        true};
  };
  entry.samples.push_back(make("tokens", random({2, 4, 3}, 1498), gain({3})));
  entry.samples.push_back(make("no tokens", zeros({0, 3}, {.dtype = float64}), gain({3})));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 1499), gain({s.width}));
  };
  entry.not_at = [](const Size& s) { return needs_dimensions(s, 2, "tokens"); };
  return entry;
}

}  // namespace

void add_column_norm_ops(OpTable& table) {
  for (OpEntry entry : {batch_norm_entry(), masked_batch_norm_entry(),
                        regularized_batch_norm_entry(), running_statistics_entry(), moments_entry(),
                        merge_moments_entry(), power_norm_entry(), power_norm_training_entry()})
    table.push_back(std::move(entry));
}

}  // namespace norma::test
