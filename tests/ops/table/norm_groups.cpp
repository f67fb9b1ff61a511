// Samples of GroupNorm, InstanceNorm and PolyNorm.
#include "norma/core/factory.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/poly_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"
#include "support/devices.h"

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 1202) { return random(shape, seed, 0.5, 1.5); }

OpEntry group_norm_entry() {
  OpEntry entry{.name = "group_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, std::int64_t groups,
                        bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return group_norm(in[0], groups, in[1], in[2], 0.1); },
        [=](In in) { return composite::group_norm(in[0], groups, in[1], in[2], 0.1); }, large);
  };
  entry.samples.push_back(make("tokens", {random({3, 6}, 1201), gain({6}), random({6}, 1203)}, 2));
  entry.samples.push_back(
      make("positions", {random({2, 4, 3}, 1204), gain({4}), random({4}, 1205)}, 2));
  entry.samples.push_back(
      make("planes", {random({2, 4, 2, 2}, 1206), gain({4}), random({4}, 1207)}, 2));
  entry.samples.push_back(make("one group", {random({2, 4, 3}, 1208), gain({4}), {}}, 1));
  entry.samples.push_back(
      make("a group a channel", {random({2, 3, 4}, 1209), {}, random({3}, 1210)}, 3));
  entry.samples.push_back(make("no weight, no bias", {random({2, 4, 3}, 1211), {}, {}}, 2));
  entry.samples.push_back(
      make("no samples", {zeros({0, 4, 3}, {.dtype = float64}), gain({4}), random({4}, 1212)}, 2));
  entry.at_size = [make](const Size& s) {
    // Two groups of `width` channels, or of 2 channels and `width` positions.
    Shape shape{s.rows, 2 * s.width};
    if (s.dims == 3) shape = {s.rows, 4, s.width};
    if (s.dims == 4) shape = {s.rows, 4, 1, s.width};
    return make(s.label(),
                {random(shape, 1213), s.weight ? gain({shape[1]}) : Tensor(),
                 s.bias ? random({shape[1]}, 1214) : Tensor()},
                2, true);
  };
  entry.not_at = [](const Size& s) { return needs_dimensions(s, 2, "channels"); };
  const Tensor x = ones({2, 4, 3});
  entry.errors = {
      {"groups", [x] { group_norm(x, 3); }, "num_groups must divide the channels"},
      {"no groups", [x] { group_norm(x, 0); }, "got 0"},
      {"weight", [x] { group_norm(x, 2, ones({2})); }, "weight must have the shape [4]; got [2]"},
      {"one dimension", [] { group_norm(ones({4}), 2); }, "[samples, channels, *]; got [4]"}};
  return entry;
}

OpEntry instance_norm_entry() {
  OpEntry entry{.name = "instance_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs,
        [=](In in) { return instance_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        [=](In in) {
          return composite::instance_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1);
        },
        large);
  };
  entry.samples.push_back(
      make("positions", {random({2, 3, 4}, 1221), gain({3}), random({3}, 1222)}));
  entry.samples.push_back(make("planes, no weight", {random({2, 3, 2, 3}, 1223), {}, {}}));
  entry.samples.push_back(
      make("no samples", {zeros({0, 3, 4}, {.dtype = float64}), gain({3}), random({3}, 1230)}));
  const Tensor mean = random({3}, 1224), variance = random({3}, 1225, 0.5, 1.5);
  entry.samples.push_back(norm_sample(
      "running statistics", {random({2, 3, 4}, 1226), gain({3}), random({3}, 1227)},
      [=](In in) {
        return instance_norm(in[0], beside(in[0], mean), beside(in[0], variance), in[1], in[2],
                             false);
      },
      [=](In in) {
        return composite::instance_norm(in[0], beside(in[0], mean), beside(in[0], variance), in[1],
                                        in[2], false);
      }));
  entry.at_size = [make](const Size& s) {
    const Shape shape = s.dims == 4 ? Shape{s.rows, 2, 1, s.width} : Shape{s.rows, 2, s.width};
    return make(s.label(),
                {random(shape, 1228), s.weight ? gain({2}) : Tensor(),
                 s.bias ? random({2}, 1229) : Tensor()},
                true);
  };
  entry.not_at = [](const Size& s) {
    return s.width == 1 ? "one position has no variance: an error"
                        : needs_dimensions(s, 2, "channels");
  };
  entry.errors = {{"one position",
                   [] {
                     instance_norm(ones({2, 3, 1}));
                   },
                   "more than one position"},
                  {"no positions",
                   [] {
                     instance_norm(ones({2, 3}));
                   },
                   "got [2, 3]"},
                  {"no running statistics",
                   [] {
                     instance_norm(ones({2, 3, 4}), {}, {}, {}, {}, false);
                   },
                   "got false"},
                  {"one of them",
                   [] {
                     instance_norm(ones({2, 3, 4}), ones({3}));
                   },
                   "running_mean alone"}};
  return entry;
}

OpEntry poly_norm_entry() {
  OpEntry entry{.name = "poly_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs, [](In in) { return poly_norm(in[0], in[1], in[2], 1e-2); },
        [](In in) { return composite::poly_norm(in[0], in[1], in[2], 1e-2); }, large);
  };
  const Tensor w = random({3}, 1231);
  entry.samples.push_back(make("rows", {random({3, 5}, 1232), w, random({1}, 1233)}));
  entry.samples.push_back(make("no bias", {random({2, 2, 4}, 1234), w, {}}));
  entry.samples.push_back(make("no rows", {zeros({0, 4}, {.dtype = float64}), w, {}}));
  entry.at_size = [make, w](const Size& s) {
    return make(s.label(), {random(s.rows_shape(), 1235), w, s.bias ? random({1}, 1236) : Tensor()},
                true);
  };
  const Tensor x = ones({2, 3});
  entry.errors = {{"weight", [x] { poly_norm(x, ones({2})); }, "weight must have the shape [3]"},
                  {"bias", [x] { poly_norm(x, ones({3}), ones({3})); },
                   "bias must have the shape [1]; got [3]"}};
  return entry;
}

}  // namespace

void add_group_norm_ops(OpTable& table) {
  table.push_back(group_norm_entry());
  table.push_back(instance_norm_entry());
  table.push_back(poly_norm_entry());
}

}  // namespace norma::test
