// Samples of the norms of weights.
#include "norma/core/factory.h"
#include "norma/ops/norm.h"
#include "norma/ops/weight_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

namespace norma::test {

namespace {

using In = const TensorList&;

OpEntry weight_norm_entry() {
  OpEntry entry{.name = "weight_norm"};
  const auto add = [&](const std::string& label, const Tensor& v, const Shape& g,
                       std::optional<std::int64_t> dim, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, {v, random(g, 1502, 0.5, 1.5)},
        [=](In in) { return weight_norm(in[0], in[1], dim); },
        [=](In in) { return composite::weight_norm(in[0], in[1], dim); }, large));
  };
  add("rows", random({3, 5}, 1501), {3, 1}, 0);
  add("columns", random({3, 5}, 1503), {1, 5}, 1);
  add("three dimensions", random({2, 3, 4}, 1504), {1, 3, 1}, 1);
  add("all", random({3, 5}, 1505), {}, std::nullopt);
  add("no rows", zeros({0, 5}, {.dtype = float64}), {0, 1}, 0);
  for (const auto& [rows, width] : museum)
    if (rows <= 65536 && width > 1)
      add(fmt::format("{} x {}", rows, width), random({rows, width}, 1506, 0.1, 1.0), {rows, 1}, 0,
          true);
  const Tensor v = ones({3, 5});
  entry.errors = {
      {"g", [v] { weight_norm(v, ones({3})); }, "g must have the shape [3, 1]; got [3]"},
      {"no g", [v] { weight_norm(v, {}); }, "g must be defined"},
      {"dim",
       [v] {
         weight_norm(v, ones({3, 1}), 2);
       },
       "got 2"}};
  return entry;
}

OpEntry spectral_norm_entry() {
  OpEntry entry{.name = "spectral_norm",
                .thread_dependent = true,
                .no_threads_because = "products of matrix and vector, as matmul",
                .no_empty_because = "a matrix without elements has no largest singular value"};
  const auto add = [&](const std::string& label, const Tensor& weight, std::int64_t rows,
                       std::int64_t dim) {
    const Tensor u = normalize(random({rows}, 1511));
    const Tensor v = normalize(random({weight.numel() / rows}, 1512));
    entry.samples.push_back(norm_sample(
        label, {weight},
        [=](In in) {
          return spectral_norm(in[0], u.to(in[0].dtype()), v.to(in[0].dtype()), 0, dim);
        },
        [=](In in) { return composite::spectral_norm(in[0], u, v, dim); }));
  };
  add("matrix", random({3, 5}, 1513, 0.5, 1.5), 3, 0);
  add("transposed", random({3, 5}, 1514, 0.5, 1.5), 5, 1);
  add("kernel", random({2, 3, 2}, 1515, 0.5, 1.5), 2, 0);
  const Tensor weight = ones({3, 5});
  entry.errors = {
      {"u", [=] { spectral_norm(weight, ones({5}), ones({5})); }, "u must have the shape [3]"},
      {"vector", [] { spectral_norm(ones({3}), ones({3}), ones({1})); }, "two dimensions; got [3]"},
      {"iterations", [=] { spectral_norm(weight, ones({3}), ones({5}), -1); }, "got -1"}};
  entry.tolerances = {{float16, {4e-2, 4e-2}}, {bfloat16, {2e-1, 2e-1}}};
  entry.reason = "u and v are rounded to the dtype, and sigma is small beside the weight";
  return entry;
}

}  // namespace

void add_weight_norm_ops(OpTable& table) {
  table.push_back(weight_norm_entry());
  table.push_back(spectral_norm_entry());
}

}  // namespace norma::test
