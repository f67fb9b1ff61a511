// Samples of the norms. The large ones are the shapes at which norm backwards of other frameworks
// were wrong.
#include "norma/ops/norm.h"
#include "norma/core/factory.h"
#include "ops/table/norm.h"
#include "support/compare.h"

#include <algorithm>
#include <limits>

namespace norma::test {

namespace {

OpEntry layer_norm_entry() {
  OpEntry entry{.name = "layer_norm"};
  const auto make = [=](const std::string& label, const Tensor& x, const Shape& normalized,
                        bool weight, bool bias, double eps = 1e-5, bool large = false) {
    TensorList inputs{x, weight ? random(normalized, 2, 0.5, 1.5) : Tensor(),
                      bias ? random(normalized, 3) : Tensor()};
    return OpSample{
        label, inputs,
        [=](const TensorList& in) {
          return TensorList{layer_norm(in[0], normalized, in[1], in[2], eps)};
        },
        [=](const TensorList& in) {
          return TensorList{composite::layer_norm(in[0], normalized, in[1], in[2], eps)};
        },
        large};
  };
  entry.samples.push_back(make("rows", random({3, 5}, 1), {5}, true, true));
  entry.samples.push_back(make("no weight, no bias", random({3, 5}, 4), {5}, false, false));
  entry.samples.push_back(make("weight only", random({3, 5}, 5), {5}, true, false));
  entry.samples.push_back(make("bias only", random({3, 5}, 6), {5}, false, true));
  entry.samples.push_back(make("vector", random({7}, 7), {7}, true, true));
  entry.samples.push_back(
      make("two normalized dimensions", random({2, 2, 3}, 8), {2, 3}, true, true));
  entry.samples.push_back(make("four dimensions", random({2, 1, 2, 4}, 9), {4}, true, true));
  entry.samples.push_back(make("no rows", random({0, 4}, 10), {4}, true, true));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 11), {s.width}, s.weight, s.bias, 1e-5, true);
  };
  entry.samples.push_back(make("many rows, two normalized dimensions", random({65537, 1, 2}, 12),
                               {1, 2}, true, true, 0.1, true));

  const Tensor x = ones({2, 3});
  entry.errors = {
      {"shape", [x] { layer_norm(x, {4}); }, "normalized_shape [4]; got [2, 3]"},
      {"no dimension", [x] { layer_norm(x, {}); }, "must have a dimension"},
      {"weight", [x] { layer_norm(x, {3}, ones({2})); }, "weight must have the shape"},
      {"bias dtype", [x] { layer_norm(x, {3}, {}, ones({3}, {.dtype = float64})); },
       "bias must have the input's dtype float32; got float64"},
      {"eps", [x] { layer_norm(x, {3}, {}, {}, -1.0); }, "eps must not be negative; got -1"},
      {"integers", [] { layer_norm(ones({2}, {.dtype = int64}), {2}); }, "got int64"}};
  return entry;
}

OpEntry rms_norm_entry() {
  OpEntry entry{.name = "rms_norm"};
  const auto make = [=](const std::string& label, const Tensor& x, const Shape& normalized,
                        bool weight, double eps, bool large = false) {
    TensorList inputs{x, weight ? random(normalized, 22, 0.5, 1.5) : Tensor()};
    return OpSample{
        label, inputs,
        [=](const TensorList& in) { return TensorList{rms_norm(in[0], normalized, in[1], eps)}; },
        [=](const TensorList& in) {
          return TensorList{composite::rms_norm(in[0], normalized, in[1], eps)};
        },
        large};
  };
  entry.samples.push_back(make("rows", random({3, 5}, 21), {5}, true, 1e-6));
  entry.samples.push_back(make("no weight", random({3, 5}, 23), {5}, false, 1e-6));
  entry.samples.push_back(make("large eps", random({3, 5}, 24), {5}, true, 0.5));
  entry.samples.push_back(
      make("two normalized dimensions", random({2, 2, 3}, 25), {2, 3}, true, 1e-6));
  entry.samples.push_back(make("no rows", random({0, 4}, 26), {4}, true, 1e-6));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 27), {s.width}, s.weight, 1e-6, true);
  };

  const Tensor x = ones({2, 3});
  entry.errors = {{"shape",
                   [x] {
                     rms_norm(x, {2, 2});
                   },
                   "normalized_shape [2, 2]; got [2, 3]"},
                  {"weight",
                   [x] {
                     rms_norm(x, {3}, ones({1, 3}));
                   },
                   "weight must have the shape"},
                  {"eps", [x] { rms_norm(x, {3}, {}, -1e-6); }, "eps must not be negative"}};
  return entry;
}

}  // namespace

void add_norm_ops(OpTable& table) {
  const auto first = static_cast<std::ptrdiff_t>(table.size());
  table.push_back(layer_norm_entry());
  table.push_back(rms_norm_entry());
  add_row_norm_ops(table);
  add_fused_norm_ops(table);
  add_group_norm_ops(table);
  add_point_norm_ops(table);
  add_column_norm_ops(table);
  add_weight_norm_ops(table);
  std::for_each(table.begin() + first, table.end(), [](OpEntry& entry) { entry.is_norm = true; });
}

}  // namespace norma::test
