// Samples of the norms of weights.
#include "norma/core/factory.h"
#include "norma/ops/norm.h"
#include "norma/ops/weight_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"
#include "support/devices.h"

namespace norma::test {

namespace {

using In = const TensorList&;

OpEntry weight_norm_entry() {
  OpEntry entry{.name = "weight_norm"};
  const auto make = [=](const std::string& label, const Tensor& v, const Shape& g,
                        std::optional<std::int64_t> dim, bool large = false) {
    return norm_sample(
        label, {v, random(g, 1502, 0.5, 1.5)},
        [=](In in) { return weight_norm(in[0], in[1], dim); },
        [=](In in) { return composite::weight_norm(in[0], in[1], dim); }, large);
  };
  entry.samples.push_back(make("rows", random({3, 5}, 1501), {3, 1}, 0));
  entry.samples.push_back(make("columns", random({3, 5}, 1503), {1, 5}, 1));
  entry.samples.push_back(make("three dimensions", random({2, 3, 4}, 1504), {1, 3, 1}, 1));
  entry.samples.push_back(make("all", random({3, 5}, 1505), {}, std::nullopt));
  entry.samples.push_back(make("no rows", zeros({0, 5}, {.dtype = float64}), {0, 1}, 0));
  entry.at_size = [make](const Size& s) {
    const Shape shape = s.rows_shape();
    Shape g = Shape::filled(shape.size(), 1);
    g[0] = shape[0];
    return make(s.label(), random(shape, 1506), g, 0, true);
  };
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
                .no_empty_because = "a matrix without elements has no largest singular value"};
  const auto make = [=](const std::string& label, const Tensor& weight, std::int64_t rows,
                        std::int64_t dim) {
    const Tensor u = normalize(random({rows}, 1511, 0.5, 1.5));
    const Tensor v = normalize(random({weight.numel() / rows}, 1512, 0.5, 1.5));
    return norm_sample(
        label, {weight},
        [=](In in) {
          return spectral_norm(in[0], beside(in[0], u).to(in[0].dtype()),
                               beside(in[0], v).to(in[0].dtype()), 0, dim);
        },
        [=](In in) {
          return composite::spectral_norm(in[0], beside(in[0], u), beside(in[0], v), dim);
        });
  };
  entry.samples.push_back(make("matrix", random({3, 5}, 1513, 0.5, 1.5), 3, 0));
  entry.samples.push_back(make("transposed", random({3, 5}, 1514, 0.5, 1.5), 5, 1));
  entry.samples.push_back(make("kernel", random({2, 3, 2}, 1515, 0.5, 1.5), 2, 0));
  entry.at_size = [make](const Size& s) {
    const Shape shape = s.rows_shape();
    return make(s.label(), random(shape, 1516, 0.5, 1.5), shape[0], 0);
  };
  entry.not_at = [](const Size& s) {
    return s.rows == 0 ? "no singular value without elements" : needs_dimensions(s, 2, "matrices");
  };
  const Tensor weight = ones({3, 5});
  entry.errors = {
      {"u", [=] { spectral_norm(weight, ones({5}), ones({5})); }, "u must have the shape [3]"},
      {"vector", [] { spectral_norm(ones({3}), ones({3}), ones({1})); }, "two dimensions; got [3]"},
      {"no rows",
       [] {
         spectral_norm(empty({0, 3}), empty({0}), empty({3}));
       },
       "got [0, 3]"},
      {"iterations", [=] { spectral_norm(weight, ones({3}), ones({5}), -1); }, "got -1"}};
  entry.stored = 2;
  entry.stored_because = "u and v are rounded to the dtype";
  return entry;
}

OpEntry unit_norm_entry() {
  OpEntry entry{.name = "unit_norm_", .differentiable = false};
  const auto make = [](const std::string& label, const Tensor& weight, std::int64_t dim) {
    return norm_sample(
        label, {weight},
        [=](In in) {
          const Tensor result = in[0].clone();
          unit_norm_(result, dim);
          return result;
        },
        [=](In in) { return composite::normalize(in[0], dim); });
  };
  entry.samples.push_back(make("rows", random({3, 5}, 1521), -1));
  entry.samples.push_back(make("columns", random({3, 5}, 1522), 0));
  entry.samples.push_back(make("no rows", zeros({0, 5}, {.dtype = float64}), -1));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 1523), -1);
  };
  entry.errors = {{"dim", [] { unit_norm_(ones({2, 3}), 2); }, "got 2"}};
  return entry;
}

}  // namespace

void add_weight_norm_ops(OpTable& table) {
  table.push_back(weight_norm_entry());
  table.push_back(spectral_norm_entry());
  table.push_back(unit_norm_entry());
}

}  // namespace norma::test
