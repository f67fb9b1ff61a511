// Samples of the norms that are fused with a residual sum or with another norm.
#include "norma/core/factory.h"
#include "norma/ops/fused_norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

namespace norma::test {

namespace {

using In = const TensorList&;

TensorList list(const std::pair<Tensor, Tensor>& pair) { return {pair.first, pair.second}; }

Tensor gain(const Shape& shape, std::uint64_t seed = 1102) { return random(shape, seed, 0.5, 1.5); }

OpEntry add_norm_entry(bool centred) {
  OpEntry entry{.name = centred ? "add_layer_norm" : "add_rms_norm"};
  const PhiloxState state{.seed = 7, .offset = 3};
  const auto make = [=](const std::string& label, const TensorList& inputs, const Shape& normalized,
                        const ResidualOptions& options, bool large = false) {
    return OpSample{label, inputs,
                    [=](In in) {
                      return list(detail::add_norm(centred, in[0], in[1], normalized, in[2], in[3],
                                                   options, state));
                    },
                    [=](In in) {
                      return list(composite::add_norm(centred, in[0], in[1], normalized, in[2],
                                                      in[3], options, state));
                    },
                    large};
  };
  const Tensor x = random({3, 5}, 1101), r = random({3, 5}, 1103);
  const NormOptions eps{.eps = 1e-3};
  entry.samples.push_back(make("plain", {x, r, gain({5}), {}}, {5}, {.norm = eps}));
  entry.samples.push_back(
      make("alpha", {x, r, gain({5}), random({5}, 1104)}, {5}, {.alpha = 2.5, .norm = eps}));
  entry.samples.push_back(
      make("dropout", {x, r, gain({5}), {}}, {5}, {.dropout_p = 0.4, .norm = eps}));
  entry.samples.push_back(make("alpha and dropout", {x, r, {}, {}}, {5},
                               {.alpha = 0.5, .dropout_p = 0.3, .norm = eps}));
  entry.samples.push_back(
      make("all dropped", {x, r, gain({5}), {}}, {5}, {.dropout_p = 1.0, .norm = eps}));
  entry.samples.push_back(make("dropout in evaluation", {x, r, gain({5}), {}}, {5},
                               {.dropout_p = 0.4, .training = false, .norm = eps}));
  entry.samples.push_back(make("two dimensions",
                               {random({2, 2, 3}, 1105), random({2, 2, 3}, 1106), gain({2, 3}), {}},
                               {2, 3}, {.dropout_p = 0.2, .norm = eps}));
  const Tensor none = zeros({0, 4}, {.dtype = float64});
  entry.samples.push_back(make("no rows", {none, none, gain({4}), {}}, {4}, {.dropout_p = 0.2}));
  entry.at_size = [make](const Size& s) {
    return make(
        s.label(),
        {random(s.rows_shape(), 1107), random(s.rows_shape(), 1108),
         s.weight ? gain({s.width}) : Tensor(), s.bias ? random({s.width}, 1109) : Tensor()},
        {s.width}, {.alpha = 1.5, .dropout_p = 0.25, .norm = {.eps = 0.1}}, true);
  };
  entry.errors = {
      {"residual",
       [=] {
         detail::add_norm(centred, x, random({3, 4}, 1), {5}, {}, {}, {}, state);
       },
       "residual must have the shape [3, 5]; got [3, 4]"},
      {"dropout_p",
       [=] { detail::add_norm(centred, x, r, {5}, {}, {}, {.dropout_p = 1.5}, state); },
       "dropout_p must be in [0, 1]; got 1.5"},
      {"weight", [=] { detail::add_norm(centred, x, r, {5}, ones({4}), {}, {}, state); },
       "weight must have the shape"}};
  entry.stored = 1;
  entry.stored_because = "the sum, a result of its own, is what is normalized";
  return entry;
}

OpEntry dual_norm_entry(bool centred) {
  OpEntry entry{.name = centred ? "dual_layer_norm" : "dual_rms_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs,
                        const NormOptions& options, bool large = false) {
    const auto weights = [](In in) { return DualNormWeights{in[1], in[2], in[3], in[4]}; };
    return OpSample{label, inputs,
                    [=](In in) {
                      return list(centred ? dual_layer_norm(in[0], weights(in), options)
                                          : dual_rms_norm(in[0], weights(in), options));
                    },
                    [=](In in) {
                      return list(centred ? composite::dual_layer_norm(in[0], weights(in), options)
                                          : composite::dual_rms_norm(in[0], weights(in), options));
                    },
                    large};
  };
  const Tensor x = random({3, 5}, 1111);
  const Tensor w1 = gain({5}, 1112), w2 = gain({5}, 1113);
  const Tensor b1 = random({5}, 1114), b2 = random({5}, 1115);
  entry.samples.push_back(make("all", {x, w1, b1, w2, b2}, {.eps = 1e-3}));
  entry.samples.push_back(make("weights", {x, w1, {}, w2, {}}, {.eps = 1e-3}));
  entry.samples.push_back(make("one of each", {x, w1, {}, {}, b2}, {.eps = 1e-3}));
  entry.samples.push_back(make("none", {x, {}, {}, {}, {}}, {.eps = 1e-3}));
  entry.samples.push_back(
      make("unit offset", {x, b1, {}, b2, {}}, {.eps = 1e-3, .unit_offset = true}));
  entry.samples.push_back(
      make("no rows", {zeros({0, 4}, {.dtype = float64}), gain({4}), {}, gain({4}), {}}, {}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 1116), s.weight ? gain({s.width}, 1117) : Tensor(),
                 s.bias ? random({s.width}, 1118) : Tensor(), gain({s.width}, 1119), Tensor()},
                {.eps = 1e-3}, true);
  };
  entry.errors = {
      {"weight2", [=] { dual_layer_norm(x, {.weight2 = ones({4})}); },
       "weight2 must have the shape [5]; got [4]"},
      {"integers", [] { dual_rms_norm(ones({2}, {.dtype = int64}), {}); }, "got int64"}};
  return entry;
}

}  // namespace

void add_fused_norm_ops(OpTable& table) {
  for (const bool centred : {true, false}) {
    table.push_back(add_norm_entry(centred));
    table.push_back(dual_norm_entry(centred));
  }
}

}  // namespace norma::test
