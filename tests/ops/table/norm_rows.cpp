// Samples of the norms of a row besides LayerNorm and RMSNorm as PyTorch has them.
#include "norma/core/factory.h"
#include "norma/ops/norm.h"
#include "ops/table/norm.h"
#include "support/compare.h"

namespace norma::test {

namespace {

using In = const TensorList&;

Tensor gain(const Shape& shape, std::uint64_t seed = 902) { return random(shape, seed, 0.5, 1.5); }

OpEntry layer_norm_forms() {
  OpEntry entry{.name = "layer_norm with options",
                .no_errors_because = "the same operation as layer_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, const Shape& normalized,
                        const NormOptions& options, bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return layer_norm(in[0], normalized, in[1], in[2], options); },
        [=](In in) { return composite::layer_norm(in[0], normalized, in[1], in[2], options); },
        large);
  };
  const Tensor heads = random({2, 2, 3, 4}, 901);
  entry.samples.push_back(make("unit offset",
                               {random({3, 5}, 903), random({5}, 904), random({5}, 905)}, {5},
                               {.unit_offset = true}));
  entry.samples.push_back(
      make("scale", {random({3, 5}, 906), gain({5}), random({5}, 907)}, {5}, {.scale = 0.5}));
  entry.samples.push_back(make("scale without weight", {random({3, 5}, 908), {}, random({5}, 909)},
                               {5}, {.scale = 0.5}));
  entry.samples.push_back(make("a weight for each head", {heads, gain({3, 4}), {}}, {4}, {}));
  entry.samples.push_back(
      make("weight and bias for each head", {heads, gain({3, 4}), random({3, 4}, 910)}, {4}, {}));
  entry.samples.push_back(
      make("heads before the length", {heads, gain({2, 1, 4}), random({2, 1, 4}, 911)}, {4}, {}));
  entry.samples.push_back(
      make("bias for each sample", {heads, {}, random({2, 1, 1, 4}, 912)}, {4}, {}));
  entry.samples.push_back(make("eps outside", {random({3, 5}, 913), gain({5}), {}}, {5},
                               {.eps_rule = EpsRule::outside}));
  entry.samples.push_back(
      make("no rows, heads", {zeros({0, 3, 4}, {.dtype = float64}), gain({3, 4}), {}}, {4}, {}));
  entry.at_size = [make](const Size& s) {
    Shape shape = s.rows_shape();
    shape.insert(shape.size() - 1, 3);
    const Shape affine{3, s.width};
    return make(s.label(),
                {random(shape, 914), s.weight ? random(affine, 915) : Tensor(),
                 s.bias ? random(affine, 916) : Tensor()},
                {s.width}, {.eps = 1e-3, .unit_offset = s.weight}, true);
  };
  return entry;
}

OpEntry rms_norm_forms() {
  OpEntry entry{.name = "rms_norm with options",
                .no_errors_because = "the same operation as rms_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, const Shape& normalized,
                        const NormOptions& options, bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return rms_norm(in[0], normalized, in[1], in[2], options); },
        [=](In in) { return composite::rms_norm(in[0], normalized, in[1], in[2], options); },
        large);
  };
  const Tensor x = random({3, 5}, 921);
  const Tensor heads = random({2, 2, 3, 4}, 922);
  entry.samples.push_back(make("Gemma: 1 + weight", {x, random({5}, 923), {}}, {5},
                               {.eps = 1e-6, .unit_offset = true}));
  entry.samples.push_back(make("bias", {x, gain({5}), random({5}, 924)}, {5}, {.eps = 1e-6}));
  entry.samples.push_back(make("no rows",
                               {zeros({0, 5}, {.dtype = float64}), gain({5}), random({5}, 924)},
                               {5}, {.eps = 1e-6}));
  entry.samples.push_back(
      make("eps outside", {x, gain({5}), {}}, {5}, {.eps = 0.3, .eps_rule = EpsRule::outside}));
  entry.samples.push_back(make("eps as floor, above", {x, gain({5}), {}}, {5},
                               {.eps = 1e-3, .eps_rule = EpsRule::floor}));
  entry.samples.push_back(make("eps as floor, below", {x, gain({5}), {}}, {5},
                               {.eps = 3.0, .eps_rule = EpsRule::floor}));
  entry.samples.push_back(make("scale, no weight", {x, {}, {}}, {5}, {.eps = 1e-6, .scale = 0.5}));
  entry.samples.push_back(
      make("scale and bias", {x, gain({5}), random({5}, 925)}, {5}, {.eps = 1e-6, .scale = 2.0}));
  entry.samples.push_back(
      make("a weight for each head", {heads, gain({3, 4}), {}}, {4}, {.eps = 1e-6}));
  entry.samples.push_back(make("heads before the length", {heads, gain({2, 1, 4}), {}}, {4},
                               {.eps = 1e-6, .unit_offset = true}));
  entry.at_size = [make](const Size& s) {
    // Gemma's, and the first release's.
    const NormOptions options = s.bias ? NormOptions{.eps = 1e-3, .unit_offset = s.weight}
                                       : NormOptions{.eps = 1e-3, .eps_rule = EpsRule::outside};
    return make(s.label(), {random(s.rows_shape(), 926), s.weight ? gain({s.width}) : Tensor(), {}},
                {s.width}, options, true);
  };
  return entry;
}

OpEntry llama_rms_norm_entry() {
  OpEntry entry{.name = "rms_norm in Llama's order",
                .no_errors_because = "the same operation as rms_norm",
                .stored = 1,
                .stored_because = "the row is cast before the weight: that is its definition"};
  const auto make = [](const std::string& label, const TensorList& inputs, bool large = false) {
    const NormOptions options{.eps = 1e-6, .cast_before_weight = true};
    return norm_sample(
        label, inputs, [=](In in) { return rms_norm(in[0], {in[0].size(-1)}, in[1], {}, options); },
        [=](In in) { return composite::rms_norm(in[0], {in[0].size(-1)}, in[1], {}, options); },
        large);
  };
  entry.samples.push_back(make("rows", {random({3, 5}, 921), gain({5})}));
  entry.samples.push_back(make("no weight", {random({3, 5}, 921), {}}));
  entry.samples.push_back(make("no rows", {zeros({0, 5}, {.dtype = float64}), gain({5})}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), {random(s.rows_shape(), 929), s.weight ? gain({s.width}) : Tensor()},
                true);
  };
  return entry;
}

OpEntry p_rms_norm_entry() {
  OpEntry entry{.name = "p_rms_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, double p,
                        const NormOptions& options, bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return p_rms_norm(in[0], p, in[1], in[2], options); },
        [=](In in) { return composite::p_rms_norm(in[0], p, in[1], in[2], options); }, large);
  };
  const Tensor x = random({3, 5}, 931);
  entry.samples.push_back(make("half", {x, gain({5}), {}}, 0.5, {.eps = 1e-3}));
  entry.samples.push_back(make("one element", {random({3, 5}, 937, 0.3, 1.0), {}, random({5}, 932)},
                               0.0625, {.eps = 1e-3}));
  entry.samples.push_back(make("all", {x, gain({5}), {}}, 1.0, {.eps = 1e-3}));
  entry.samples.push_back(
      make("eps outside", {x, gain({5}), {}}, 0.7, {.eps = 1e-2, .eps_rule = EpsRule::outside}));
  entry.samples.push_back(
      make("no rows", {zeros({0, 4}, {.dtype = float64}), gain({4}), {}}, 0.5, {}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(s.rows_shape(), 933), s.weight ? gain({s.width}) : Tensor(),
                 s.bias ? random({s.width}, 934) : Tensor()},
                0.25, {.eps = 1e-3}, true);
  };
  const Tensor y = ones({2, 3});
  entry.errors = {{"p", [y] { p_rms_norm(y, 0.0); }, "p must be in (0, 1]; got 0"},
                  {"weight", [y] { p_rms_norm(y, 0.5, ones({2})); }, "weight must have the shape"}};
  return entry;
}

OpEntry crms_norm_entry() {
  OpEntry entry{.name = "crms_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, double eps,
                        bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return crms_norm(in[0], in[1], eps); },
        [=](In in) { return composite::crms_norm(in[0], in[1], eps); }, large);
  };
  entry.samples.push_back(make("rows", {random({3, 5}, 941), gain({5})}, 1e-8));
  entry.samples.push_back(make("no weight", {random({2, 2, 4}, 942), {}}, 1e-3));
  entry.samples.push_back(make("no rows", {zeros({0, 4}, {.dtype = float64}), gain({4})}, 1e-8));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), {random(s.rows_shape(), 943), s.weight ? gain({s.width}) : Tensor()},
                1e-3, true);
  };
  const Tensor y = ones({2, 3});
  entry.errors = {{"eps", [y] { crms_norm(y, {}, -1.0); }, "eps must not be negative; got -1"},
                  {"weight", [y] { crms_norm(y, ones({2})); }, "weight must have the shape"}};
  return entry;
}

OpEntry normalize_entry() {
  OpEntry entry{.name = "normalize"};
  const auto make = [=](const std::string& label, const Tensor& x, std::int64_t dim, double eps,
                        EpsRule rule, bool large = false) {
    return norm_sample(
        label, {x}, [=](In in) { return normalize(in[0], dim, eps, rule); },
        [=](In in) { return composite::normalize(in[0], dim, eps, rule); }, large);
  };
  const Tensor x = random({3, 5}, 951);
  entry.samples.push_back(make("rows", x, -1, 1e-12, EpsRule::floor));
  entry.samples.push_back(make("columns", x, 0, 1e-12, EpsRule::floor));
  entry.samples.push_back(make("the middle", random({2, 3, 4}, 952), 1, 1e-12, EpsRule::floor));
  entry.samples.push_back(make("below eps", x, -1, 10.0, EpsRule::floor));
  entry.samples.push_back(make("eps inside", x, -1, 0.1, EpsRule::inside));
  entry.samples.push_back(make("vector without eps", random({5}, 953), 0, 0.0, EpsRule::floor));
  entry.samples.push_back(
      make("no rows", zeros({0, 4}, {.dtype = float64}), -1, 1e-12, EpsRule::floor));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 954), -1, s.bias ? 1e-3 : 1e-12,
                s.bias ? EpsRule::inside : EpsRule::floor, true);
  };
  const Tensor y = ones({2, 3});
  entry.errors = {{"dim", [y] { normalize(y, 2); }, "got 2"},
                  {"eps", [y] { normalize(y, -1, -1.0); }, "eps must not be negative"},
                  {"integers", [] { normalize(ones({2}, {.dtype = int64})); }, "got int64"}};
  return entry;
}

OpEntry scale_norm_entry() {
  OpEntry entry{.name = "scale_norm"};
  const auto make = [=](const std::string& label, const Tensor& x, double eps, bool large = false) {
    return norm_sample(
        label, {x, gain({1}, 961)}, [=](In in) { return scale_norm(in[0], in[1], eps); },
        [=](In in) { return composite::scale_norm(in[0], in[1], eps); }, large);
  };
  entry.samples.push_back(make("rows", random({3, 5}, 962), 1e-5));
  entry.samples.push_back(make("below eps", random({3, 5}, 963), 10.0));
  entry.samples.push_back(make("width 1", random({3, 1}, 964, 0.5, 1.0), 1e-5));
  entry.samples.push_back(make("no rows", zeros({0, 4}, {.dtype = float64}), 1e-5));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 965), 1e-5, true);
  };
  const Tensor y = ones({2, 3});
  entry.errors = {{"g", [y] { scale_norm(y, ones({3})); }, "g must have the shape [1]; got [3]"},
                  {"no g", [y] { scale_norm(y, {}); }, "g must be defined"}};
  return entry;
}

OpEntry simple_rms_norm_entry() {
  OpEntry entry{.name = "simple_rms_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool unit_offset,
                        bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return simple_rms_norm(in[0], in[1], unit_offset); },
        [=](In in) { return composite::simple_rms_norm(in[0], in[1], unit_offset); }, large);
  };
  entry.samples.push_back(make("rows", {random({3, 5}, 971), {}}, false));
  entry.samples.push_back(make("weight", {random({3, 5}, 972), gain({5})}, false));
  entry.samples.push_back(
      make("1 + weight for each head", {random({2, 3, 4}, 973), random({3, 4}, 974)}, true));
  entry.samples.push_back(make("no rows", {zeros({0, 4}, {.dtype = float64}), gain({4})}, false));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), {random(s.rows_shape(), 975), s.weight ? gain({s.width}) : Tensor()},
                s.bias, true);
  };
  const Tensor y = ones({2, 3});
  entry.errors = {
      {"eps", [y] { simple_rms_norm(y, {}, false, -1.0); }, "eps must not be negative"}};
  return entry;
}

/// Two samples of the rows of a size.
Shape two_samples(const Size& size) {
  Shape shape = size.rows_shape();
  shape.insert(0, 2);
  return shape;
}

OpEntry ada_layer_norm_entry() {
  OpEntry entry{.name = "ada_layer_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs, bool large = false) {
    return norm_sample(
        label, inputs, [=](In in) { return ada_layer_norm(in[0], in[1], in[2], 0.1); },
        [=](In in) { return composite::ada_layer_norm(in[0], in[1], in[2], 0.1); }, large);
  };
  const Tensor scale = random({2, 4}, 981), shift = random({2, 4}, 982);
  entry.samples.push_back(make("samples of three rows", {random({2, 3, 4}, 983), scale, shift}));
  entry.samples.push_back(make("no shift", {random({2, 3, 4}, 984), scale, {}}));
  entry.samples.push_back(make("samples of one row", {random({2, 4}, 985), scale, shift}));
  entry.samples.push_back(make("four dimensions", {random({2, 2, 2, 4}, 986), scale, shift}));
  entry.samples.push_back(make(
      "no samples", {zeros({0, 3, 4}, {.dtype = float64}), zeros({0, 4}, {.dtype = float64}), {}}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(two_samples(s), 987), random({2, s.width}, 988),
                 s.bias ? random({2, s.width}, 989) : Tensor()},
                true);
  };
  const Tensor y = ones({2, 3, 4});
  entry.errors = {
      {"scale", [y] { ada_layer_norm(y, ones({4})); }, "scale must have the shape [2, 4]; got [4]"},
      {"shift",
       [y] {
         ada_layer_norm(y, ones({2, 4}), ones({4}));
       },
       "shift must have the shape"},
      {"one dimension", [] { ada_layer_norm(ones({4}), ones({4})); }, "[samples, …, width]"}};
  return entry;
}

OpEntry modulated_rms_norm_entry() {
  OpEntry entry{.name = "modulated_rms_norm"};
  const auto make = [=](const std::string& label, const TensorList& inputs,
                        const NormOptions& options, bool large = false) {
    return norm_sample(
        label, inputs,
        [=](In in) { return modulated_rms_norm(in[0], in[1], in[2], in[3], options); },
        [=](In in) { return composite::modulated_rms_norm(in[0], in[1], in[2], in[3], options); },
        large);
  };
  const Tensor scale = random({2, 4}, 991), shift = random({2, 4}, 992), w = gain({4});
  const Tensor x = random({2, 3, 4}, 993);
  entry.samples.push_back(make("all", {x, w, scale, shift}, {.eps = 1e-3}));
  entry.samples.push_back(
      make("1 + weight", {x, random({4}, 994), scale, shift}, {.eps = 1e-3, .unit_offset = true}));
  entry.samples.push_back(make("no weight, no shift", {x, {}, scale, {}}, {.eps = 1e-3}));
  // A gain near 0 keeps as many digits as one near 1.
  entry.samples.push_back(make(
      "small weight", {x, random({4}, 998, 0.001, 0.02), random({2, 4}, 999), {}}, {.eps = 1e-3}));
  entry.samples.push_back(
      make("no rows", {zeros({2, 0, 4}, {.dtype = float64}), w, scale, shift}, {.eps = 1e-3}));
  entry.at_size = [make](const Size& s) {
    return make(s.label(),
                {random(two_samples(s), 995), s.weight ? gain({s.width}) : Tensor(),
                 random({2, s.width}, 996), s.bias ? random({2, s.width}, 997) : Tensor()},
                {.eps = 1e-3}, true);
  };
  const Tensor y = ones({2, 3, 4});
  entry.errors = {{"weight",
                   [y] {
                     modulated_rms_norm(y, ones({3}), ones({2, 4}));
                   },
                   "weight must have the shape [4]; got [3]"}};
  return entry;
}

OpEntry ada_norm_entry() {
  OpEntry entry{.name = "ada_norm",
                .second_order = false,
                .no_second_order_because =
                    "its factor is a constant to the backward, so finite differences see "
                    "another function; compared with the composite"};
  const auto make = [=](const std::string& label, const Tensor& x, const Shape& normalized,
                        double c, double k) {
    return norm_sample(
        label, {x}, [=](In in) { return ada_norm(in[0], normalized, c, k, 0.1); },
        [=](In in) { return composite::ada_norm(in[0], normalized, c, k, 0.1); }, true);
  };
  entry.samples.push_back(make("rows", random({3, 5}, 1001), {5}, 1.0, 0.1));
  entry.samples.push_back(make("two dimensions", random({3, 2, 5}, 1002), {2, 5}, 2.0, 0.3));
  entry.samples.push_back(make("no rows", zeros({0, 4}, {.dtype = float64}), {4}, 1.0, 0.1));
  entry.at_size = [make](const Size& s) {
    return make(s.label(), random(s.rows_shape(), 1003), {s.width}, 1.0, 0.1);
  };
  const Tensor y = ones({2, 3});
  entry.errors = {{"shape", [y] { ada_norm(y, {2}); }, "normalized_shape [2]; got [2, 3]"}};
  return entry;
}

}  // namespace

void add_row_norm_ops(OpTable& table) {
  for (OpEntry entry :
       {layer_norm_forms(), rms_norm_forms(), llama_rms_norm_entry(), p_rms_norm_entry(),
        crms_norm_entry(), normalize_entry(), scale_norm_entry(), simple_rms_norm_entry(),
        ada_layer_norm_entry(), modulated_rms_norm_entry(), ada_norm_entry()})
    table.push_back(std::move(entry));
}

}  // namespace norma::test
