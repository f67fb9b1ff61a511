// Samples of the norms. The large ones are the shapes at which norm backwards of other frameworks
// were wrong.
#include "norma/ops/norm.h"
#include "norma/core/factory.h"
#include "ops/table/norm.h"
#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace norma::test {

namespace {

/// `usual`, but a large one for narrow rows: three random numbers may lie so close that the
/// gradient is ill-conditioned in float32.
double eps_for(std::int64_t width, double usual) { return width < 31 ? 0.1 : usual; }

OpEntry layer_norm_entry() {
  OpEntry entry{.name = "layer_norm"};
  const auto add = [&](const std::string& label, const Tensor& x, const Shape& normalized,
                       bool weight, bool bias, double eps = 1e-5, bool large = false) {
    TensorList inputs{x, weight ? random(normalized, 2, 0.5, 1.5) : Tensor(),
                      bias ? random(normalized, 3) : Tensor()};
    entry.samples.push_back({label, inputs,
                             [=](const TensorList& in) {
                               return TensorList{layer_norm(in[0], normalized, in[1], in[2], eps)};
                             },
                             [=](const TensorList& in) {
                               return TensorList{
                                   composite::layer_norm(in[0], normalized, in[1], in[2], eps)};
                             },
                             large});
  };
  add("rows", random({3, 5}, 1), {5}, true, true);
  add("no weight, no bias", random({3, 5}, 4), {5}, false, false);
  add("weight only", random({3, 5}, 5), {5}, true, false);
  add("bias only", random({3, 5}, 6), {5}, false, true);
  add("vector", random({7}, 7), {7}, true, true);
  add("two normalized dimensions", random({2, 2, 3}, 8), {2, 3}, true, true);
  add("four dimensions", random({2, 1, 2, 4}, 9), {4}, true, true);
  add("no rows", random({0, 4}, 10), {4}, true, true);
  for (const auto& [rows, width] : museum)
    add(fmt::format("{} x {}", rows, width), random({rows, width}, 11), {width}, true, true,
        eps_for(width, 1e-5), true);
  add("many rows, two normalized dimensions", random({65537, 1, 2}, 12), {1, 2}, true, true, 0.1,
      true);

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
  const auto add = [&](const std::string& label, const Tensor& x, const Shape& normalized,
                       bool weight, double eps, bool large = false) {
    TensorList inputs{x, weight ? random(normalized, 22, 0.5, 1.5) : Tensor()};
    entry.samples.push_back(
        {label, inputs,
         [=](const TensorList& in) { return TensorList{rms_norm(in[0], normalized, in[1], eps)}; },
         [=](const TensorList& in) {
           return TensorList{composite::rms_norm(in[0], normalized, in[1], eps)};
         },
         large});
  };
  add("rows", random({3, 5}, 21), {5}, true, 1e-6);
  add("no weight", random({3, 5}, 23), {5}, false, 1e-6);
  add("large eps", random({3, 5}, 24), {5}, true, 0.5);
  add("two normalized dimensions", random({2, 2, 3}, 25), {2, 3}, true, 1e-6);
  add("no rows", random({0, 4}, 26), {4}, true, 1e-6);
  for (const auto& [rows, width] : museum)
    add(fmt::format("{} x {}", rows, width), random({rows, width}, 27), {width}, true,
        eps_for(width, 1e-6), true);

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

/// What float32 leaves of a sum of `rows` cotangents, uniform in [-1, 1]. Partial sums walk
/// randomly: the k-th of a chain is sqrt(k / 3) large, and rounded to half an eps of that; with 64
/// chains (ops/cpu/norm.cpp) that adds up to this standard deviation, of which three are allowed.
double rounding_of_sum(std::int64_t rows) {
  const double n = static_cast<double>(rows);
  const double half_eps = 0.5 * static_cast<double>(std::numeric_limits<float>::epsilon());
  return 3.0 * half_eps * std::sqrt(n * (n / 64.0) / 2.0 / 3.0);
}

}  // namespace

OpEntry split_many_rows(OpEntry& entry) {
  OpEntry many{.name = entry.name + " of many rows"};
  const auto is_long = [](const OpSample& sample) { return sample.inputs[0].size(0) > 65536; };
  for (const OpSample& sample : entry.samples)
    if (is_long(sample)) many.samples.push_back(sample);
  std::erase_if(entry.samples, is_long);
  many.no_errors_because = "the same operation as above";
  many.no_empty_because = many.no_errors_because;
  many.tolerances = entry.tolerances;
  many.tolerances[float32] = {2e-5, rounding_of_sum(65537)};
  many.reason = "65537 terms cancel in dweight and dbias";
  if (!entry.reason.empty()) many.reason += "; " + entry.reason;
  return many;
}

void add_with_many_rows(OpTable& table, OpEntry entry) {
  OpEntry many = split_many_rows(entry);
  table.push_back(std::move(entry));
  if (!many.samples.empty()) table.push_back(std::move(many));
}

void add_norm_ops(OpTable& table) {
  const auto first = static_cast<std::ptrdiff_t>(table.size());
  add_with_many_rows(table, layer_norm_entry());
  add_with_many_rows(table, rms_norm_entry());
  add_row_norm_ops(table);
  add_fused_norm_ops(table);
  add_group_norm_ops(table);
  add_point_norm_ops(table);
  add_column_norm_ops(table);
  add_weight_norm_ops(table);
  std::for_each(table.begin() + first, table.end(), [](OpEntry& entry) {
    const std::string name = entry.name.substr(0, entry.name.find(' '));
    if (name != "layer_norm" && name != "rms_norm")
      entry.no_golden_because = "norms have a file of their own: norm_golden_test.cpp";
  });
}

}  // namespace norma::test
