// Samples of the element-wise norms.
#include "norma/core/factory.h"
#include "norma/ops/point_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

#include <algorithm>

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 1302) { return random(shape, seed, 0.5, 1.5); }

OpEntry dynamic_tanh_entry() {
  OpEntry entry{.name = "dynamic_tanh"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs, [](In in) { return dynamic_tanh(in[0], in[1], in[2], in[3]); },
        [](In in) { return composite::dynamic_tanh(in[0], in[1], in[2], in[3]); }, large);
  };
  const Tensor alpha = gain({1});
  entry.samples.push_back(
      make("rows", {random({3, 5}, 1301), alpha, gain({5}), random({5}, 1303)}));
  entry.samples.push_back(make("no bias", {random({2, 2, 3}, 1304), alpha, gain({3}), {}}));
  entry.samples.push_back(make("alpha only", {random({7}, 1305), alpha, {}, {}}));
  entry.samples.push_back(
      make("no rows", {zeros({0, 4}, {.dtype = float64}), alpha, gain({4}), {}}));
  entry.at_size = [make, alpha](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 1306), alpha, s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 1307) : Tensor()},
                true);
  };
  const Tensor x = ones({2, 3});
  entry.errors = {
      {"alpha", [x] { dynamic_tanh(x, ones({3})); }, "alpha must have the shape [1]; got [3]"},
      {"no alpha", [x] { dynamic_tanh(x, {}); }, "alpha must be defined"},
      {"weight", [x] { dynamic_tanh(x, ones({1}), ones({2})); }, "weight must have the shape [3]"}};
  return entry;
}

OpEntry dynamic_erf_entry() {
  OpEntry entry{.name = "dynamic_erf"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs, [](In in) { return dynamic_erf(in[0], in[1], in[2], in[3], in[4]); },
        [](In in) { return composite::dynamic_erf(in[0], in[1], in[2], in[3], in[4]); }, large);
  };
  const Tensor alpha = gain({1}), shift = random({1}, 1311);
  entry.samples.push_back(
      make("rows", {random({3, 5}, 1312), alpha, shift, gain({5}), random({5}, 1313)}));
  entry.samples.push_back(make("no shift", {random({3, 5}, 1314), alpha, {}, gain({5}), {}}));
  entry.samples.push_back(make("no weight", {random({3, 5}, 1315), alpha, shift, {}, {}}));
  entry.samples.push_back(
      make("no rows", {zeros({0, 4}, {.dtype = float64}), alpha, shift, gain({4}), {}}));
  entry.at_size = [make, alpha, shift](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 1316), alpha, shift, s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 1317) : Tensor()},
                true);
  };
  const Tensor x = ones({2, 3});
  entry.errors = {{"shift", [x] { dynamic_erf(x, ones({1}), ones({3})); },
                   "shift must have the shape [1]; got [3]"}};
  return entry;
}

OpEntry layer_scale_entry() {
  OpEntry entry{.name = "layer_scale"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs, [](In in) { return layer_scale(in[0], in[1]); },
        [](In in) { return composite::layer_scale(in[0], in[1]); }, large);
  };
  entry.samples.push_back(make("rows", {random({3, 5}, 1321), gain({5})}));
  entry.samples.push_back(make("one gain", {random({2, 2, 3}, 1322), gain({1})}));
  entry.samples.push_back(make("no rows", {zeros({0, 4}, {.dtype = float64}), gain({4})}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), {random(s.rows_shape(), 1323), gain({s.weight ? s.width : 1})}, true);
  };
  const Tensor x = ones({2, 3});
  entry.errors = {{"gamma", [x] { layer_scale(x, ones({2})); }, "gamma must have the shape [3]"}};
  return entry;
}

OpEntry head_scale_entry() {
  OpEntry entry{.name = "head_scale"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs, [](In in) { return head_scale(in[0], in[1]); },
        [](In in) { return composite::head_scale(in[0], in[1]); }, large);
  };
  entry.samples.push_back(make("two heads", {random({3, 6}, 1331), gain({2})}));
  entry.samples.push_back(make("heads of one", {random({2, 2, 3}, 1332), gain({3})}));
  entry.samples.push_back(make("no rows", {zeros({0, 4}, {.dtype = float64}), gain({2})}));
  entry.at_size = [make](const Size& s) {
    std::int64_t heads = std::min<std::int64_t>(s.width, 12);
    while (s.width % heads != 0) --heads;
    return make(s.label(), {random(s.rows_shape(), 1333), gain({heads})}, true);
  };
  entry.errors = {{"heads",
                   [] {
                     head_scale(ones({2, 6}), ones({4}));
                   },
                   "must divide the last dimension of the input [2, 6]; got gamma [4]"}};
  return entry;
}

OpEntry softcap_entry() {
  OpEntry entry{.name = "softcap"};
  const auto make = [=](const std::string& label, const Tensor& x, double cap, bool large = false) {
    return norm_sample(
        label, {x}, [cap](In in) { return softcap(in[0], cap); },
        [cap](In in) { return composite::softcap(in[0], cap); }, large);
  };
  entry.samples.push_back(make("rows", random({3, 5}, 1341), 0.7));
  entry.samples.push_back(make("scalar", random({}, 1342), 30.0));
  entry.samples.push_back(make("no elements", zeros({0, 4}, {.dtype = float64}), 1.0));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 1343, -80.0, 80.0), 50.0, true);
  };
  entry.errors = {{"cap", [] { softcap(ones({2}), 0.0); }, "cap must be positive; got 0"}};
  entry.stored = 1;
  entry.stored_because = "the gradient comes from the output";
  return entry;
}

}  // namespace

void add_point_norm_ops(OpTable& table) {
  table.push_back(dynamic_tanh_entry());
  table.push_back(dynamic_erf_entry());
  table.push_back(layer_scale_entry());
  table.push_back(head_scale_entry());
  table.push_back(softcap_entry());
}

}  // namespace norma::test
