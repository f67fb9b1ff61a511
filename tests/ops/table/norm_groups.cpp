// Samples of GroupNorm, InstanceNorm and PolyNorm.
#include "norma/core/factory.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/poly_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 1202) { return random(shape, seed, 0.5, 1.5); }

OpEntry group_norm_entry() {
  OpEntry entry{.name = "group_norm"};
  const auto add = [&](const std::string& label, const TensorList& inputs, std::int64_t groups,
                       bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs, [=](In in) { return group_norm(in[0], groups, in[1], in[2], 0.1); },
        [=](In in) { return composite::group_norm(in[0], groups, in[1], in[2], 0.1); }, large));
  };
  add("tokens", {random({3, 6}, 1201), gain({6}), random({6}, 1203)}, 2);
  add("positions", {random({2, 4, 3}, 1204), gain({4}), random({4}, 1205)}, 2);
  add("planes", {random({2, 4, 2, 2}, 1206), gain({4}), random({4}, 1207)}, 2);
  add("one group", {random({2, 4, 3}, 1208), gain({4}), {}}, 1);
  add("a group a channel", {random({2, 3, 4}, 1209), {}, random({3}, 1210)}, 3);
  add("no weight, no bias", {random({2, 4, 3}, 1211), {}, {}}, 2);
  add("no samples", {zeros({0, 4, 3}, {.dtype = float64}), gain({4}), random({4}, 1212)}, 2);
  for (const auto& [samples, width] : museum) {
    if (samples > 65536) continue;
    add(fmt::format("{} x 4 x {}", samples, width),
        {random({samples, 4, width}, 1213), gain({4}), random({4}, 1214)}, 2, true);
  }
  add("65537 x 6 x 1", {random({65537, 6, 1}, 1215), gain({6}), random({6}, 1216)}, 3, true);
  const Tensor x = ones({2, 4, 3});
  entry.errors = {
      {"groups", [x] { group_norm(x, 3); }, "num_groups must divide the channels"},
      {"no groups", [x] { group_norm(x, 0); }, "got 0"},
      {"weight", [x] { group_norm(x, 2, ones({2})); }, "weight must have the shape [4]; got [2]"},
      {"one dimension", [] { group_norm(ones({4}), 2); }, "[samples, channels, *]; got [4]"}};
  entry.tolerances = {{float32, {2e-5, 2e-5}}};
  entry.reason = "dweight and dbias are sums over all samples and positions";
  return entry;
}

OpEntry instance_norm_entry() {
  OpEntry entry{.name = "instance_norm"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs,
        [=](In in) { return instance_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1); },
        [=](In in) {
          return composite::instance_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.1);
        },
        large));
  };
  add("positions", {random({2, 3, 4}, 1221), gain({3}), random({3}, 1222)});
  add("planes, no weight", {random({2, 3, 2, 3}, 1223), {}, {}});
  add("no samples", {zeros({0, 3, 4}, {.dtype = float64}), gain({3}), random({3}, 1230)});
  const Tensor mean = random({3}, 1224), variance = random({3}, 1225, 0.5, 1.5);
  entry.samples.push_back(norm_sample(
      "running statistics", {random({2, 3, 4}, 1226), gain({3}), random({3}, 1227)},
      [=](In in) { return instance_norm(in[0], mean, variance, in[1], in[2], false); },
      [=](In in) { return composite::instance_norm(in[0], mean, variance, in[1], in[2], false); }));
  for (const auto& [samples, width] : museum) {
    if (samples > 65536 || width == 1) continue;
    add(fmt::format("{} x 3 x {}", samples, width),
        {random({samples, 3, width}, 1228), gain({3}), random({3}, 1229)}, true);
  }
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
  entry.tolerances = {{float32, {2e-5, 2e-5}}};
  entry.reason = "dweight and dbias are sums over all samples and positions";
  return entry;
}

OpEntry poly_norm_entry() {
  OpEntry entry{.name = "poly_norm"};
  const auto add = [&](const std::string& label, const TensorList& inputs, bool large = false) {
    entry.samples.push_back(norm_sample(
        label, inputs, [](In in) { return poly_norm(in[0], in[1], in[2], 1e-2); },
        [](In in) { return composite::poly_norm(in[0], in[1], in[2], 1e-2); }, large));
  };
  const Tensor w = random({3}, 1231);
  add("rows", {random({3, 5}, 1232), w, random({1}, 1233)});
  add("no bias", {random({2, 2, 4}, 1234), w, {}});
  add("no rows", {zeros({0, 4}, {.dtype = float64}), w, {}});
  for (const auto& [rows, width] : museum) {
    if (rows > 65536) continue;
    add(fmt::format("{} x {}", rows, width), {random({rows, width}, 1235), w, random({1}, 1236)},
        true);
  }
  const Tensor x = ones({2, 3});
  entry.errors = {{"weight", [x] { poly_norm(x, ones({2})); }, "weight must have the shape [3]"},
                  {"bias", [x] { poly_norm(x, ones({3}), ones({3})); },
                   "bias must have the shape [1]; got [3]"}};
  entry.tolerances = {{float32, {5e-5, 1e-3}}, {float16, {1e-2, 4e-2}}, {bfloat16, {8e-2, 2.5e-1}}};
  entry.reason = "dweight and dbias are sums over all elements, up to 67584 terms of size 1";
  return entry;
}

}  // namespace

void add_group_norm_ops(OpTable& table) {
  add_with_many_rows(table, group_norm_entry());
  table.push_back(instance_norm_entry());
  table.push_back(poly_norm_entry());
}

}  // namespace norma::test
