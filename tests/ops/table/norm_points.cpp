// Samples of the element-wise norms.
#include "norma/core/factory.h"
#include "norma/ops/point_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 1302) { return random(shape, seed, 0.5, 1.5); }

/// Gradients of scalars are sums over all elements.
void tolerate_scalar_sums(OpEntry& entry) {
  entry.tolerances = {{float32, {5e-5, 1e-3}}, {float16, {1e-2, 4e-2}}, {bfloat16, {8e-2, 2.5e-1}}};
  entry.reason = "dalpha and dshift are sums over all elements, up to 67584 terms of size 1";
}

OpEntry dynamic_tanh_entry() {
  OpEntry entry{.name = "dynamic_tanh"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs, [](In in) { return dynamic_tanh(in[0], in[1], in[2], in[3]); },
        [](In in) { return composite::dynamic_tanh(in[0], in[1], in[2], in[3]); }, large));
  };
  const Tensor alpha = gain({1});
  add("rows", {random({3, 5}, 1301), alpha, gain({5}), random({5}, 1303)});
  add("no bias", {random({2, 2, 3}, 1304), alpha, gain({3}), {}});
  add("alpha only", {random({7}, 1305), alpha, {}, {}});
  add("no rows", {zeros({0, 4}, {.dtype = float64}), alpha, gain({4}), {}});
  for (const auto& [rows, width] : museum)
    if (rows <= 65536)
      add(fmt::format("{} x {}", rows, width),
          {random({rows, width}, 1306), alpha, gain({width}), random({width}, 1307)}, true);
  const Tensor x = ones({2, 3});
  entry.errors = {
      {"alpha", [x] { dynamic_tanh(x, ones({3})); }, "alpha must have the shape [1]; got [3]"},
      {"no alpha", [x] { dynamic_tanh(x, {}); }, "alpha must be defined"},
      {"weight", [x] { dynamic_tanh(x, ones({1}), ones({2})); }, "weight must have the shape [3]"}};
  tolerate_scalar_sums(entry);
  return entry;
}

OpEntry dynamic_erf_entry() {
  OpEntry entry{.name = "dynamic_erf"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs, [](In in) { return dynamic_erf(in[0], in[1], in[2], in[3], in[4]); },
        [](In in) { return composite::dynamic_erf(in[0], in[1], in[2], in[3], in[4]); }, large));
  };
  const Tensor alpha = gain({1}), shift = random({1}, 1311);
  add("rows", {random({3, 5}, 1312), alpha, shift, gain({5}), random({5}, 1313)});
  add("no shift", {random({3, 5}, 1314), alpha, {}, gain({5}), {}});
  add("no weight", {random({3, 5}, 1315), alpha, shift, {}, {}});
  add("no rows", {zeros({0, 4}, {.dtype = float64}), alpha, shift, gain({4}), {}});
  for (const auto& [rows, width] : museum)
    if (rows <= 65536)
      add(fmt::format("{} x {}", rows, width),
          {random({rows, width}, 1316), alpha, shift, gain({width}), random({width}, 1317)}, true);
  const Tensor x = ones({2, 3});
  entry.errors = {{"shift", [x] { dynamic_erf(x, ones({1}), ones({3})); },
                   "shift must have the shape [1]; got [3]"}};
  tolerate_scalar_sums(entry);
  return entry;
}

OpEntry layer_scale_entry() {
  OpEntry entry{.name = "layer_scale"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs, [](In in) { return layer_scale(in[0], in[1]); },
        [](In in) { return composite::layer_scale(in[0], in[1]); }, large));
  };
  add("rows", {random({3, 5}, 1321), gain({5})});
  add("one gain", {random({2, 2, 3}, 1322), gain({1})});
  add("no rows", {zeros({0, 4}, {.dtype = float64}), gain({4})});
  for (const auto& [rows, width] : museum)
    add(fmt::format("{} x {}", rows, width), {random({rows, width}, 1323), gain({width})}, true);
  const Tensor x = ones({2, 3});
  entry.errors = {{"gamma", [x] { layer_scale(x, ones({2})); }, "gamma must have the shape [3]"}};
  return entry;
}

OpEntry head_scale_entry() {
  OpEntry entry{.name = "head_scale",
                .no_threads_because = "the kernel of layer_scale, whose samples of many rows do"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs, [](In in) { return head_scale(in[0], in[1]); },
        [](In in) { return composite::head_scale(in[0], in[1]); }, large));
  };
  add("two heads", {random({3, 6}, 1331), gain({2})});
  add("heads of one", {random({2, 2, 3}, 1332), gain({3})});
  add("no rows", {zeros({0, 4}, {.dtype = float64}), gain({2})});
  add("33 x 768", {random({33, 768}, 1333), gain({12})}, true);
  add("2 x 4 x 255", {random({2, 4, 255}, 1334), gain({5})}, true);
  entry.errors = {{"heads",
                   [] {
                     head_scale(ones({2, 6}), ones({4}));
                   },
                   "must divide the last dimension of the input [2, 6]; got gamma [4]"}};
  entry.tolerances = {{float16, {1e-2, 4e-2}}, {bfloat16, {8e-2, 2.5e-1}}, {float32, {5e-5, 1e-4}}};
  entry.reason = "dgamma is a sum over all elements of a head";
  return entry;
}

OpEntry softcap_entry() {
  OpEntry entry{.name = "softcap"};
  const auto add = [&](const std::string& label, const Tensor& x, double cap, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, {x}, [cap](In in) { return softcap(in[0], cap); },
        [cap](In in) { return composite::softcap(in[0], cap); }, large));
  };
  add("rows", random({3, 5}, 1341), 0.7);
  add("scalar", random({}, 1342), 30.0);
  add("no elements", zeros({0, 4}, {.dtype = float64}), 1.0);
  add("33 x 768", random({33, 768}, 1343, -80.0, 80.0), 50.0, true);
  add("two threads", random({257, 256}, 1344, -80.0, 80.0), 50.0, true);
  entry.errors = {{"cap", [] { softcap(ones({2}), 0.0); }, "cap must be positive; got 0"}};
  entry.tolerances = {{float16, {1e-2, 4e-2}}, {bfloat16, {3e-2, 2.5e-1}}};
  entry.reason = "values up to 50, and a gradient from the rounded output";
  return entry;
}

}  // namespace

void add_point_norm_ops(OpTable& table) {
  table.push_back(dynamic_tanh_entry());
  table.push_back(dynamic_erf_entry());
  add_with_many_rows(table, layer_scale_entry());
  table.push_back(head_scale_entry());
  table.push_back(softcap_entry());
}

}  // namespace norma::test
