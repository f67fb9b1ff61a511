// The norms against PyTorch, and against definitions in PyTorch where it has no such norm
// (tests/golden/make_norms.py).
#include "support/catch.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/op_table.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/fused_norm.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/point_norm.h"
#include "norma/ops/poly_norm.h"
#include "norma/ops/power_norm.h"
#include "norma/ops/weight_norm.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace norma::test {
namespace {

using In = const TensorList&;

constexpr const char* file = "norms.safetensors";

Tensor value(const std::string& name) { return golden(file).at(name); }

std::map<std::string, OpFunction> row_cases() {
  const auto one = [](auto function) {
    return [function](In in) { return TensorList{function(in)}; };
  };
  return {
      {"layer_norm_per_head", one([](In in) { return layer_norm(in[0], {6}, in[1]); })},
      {"gemma", one([](In in) {
         return rms_norm(in[0], {6}, in[1], {}, {.eps = 1e-6, .unit_offset = true});
       })},
      {"llama", one([](In in) {
         return rms_norm(in[0], {6}, in[1], {}, {.eps = 1e-6, .cast_before_weight = true});
       })},
      {"modulated_rms_norm",
       one([](In in) { return modulated_rms_norm(in[0], in[1], in[2], in[3], {.eps = 1e-6}); })},
      {"rms_norm_torch", one([](In in) { return rms_norm(in[0], {6}, in[1], 1e-5); })},
      {"original_rms_norm", one([](In in) {
         return rms_norm(in[0], {6}, in[1], in[2], {.eps = 1e-2, .eps_rule = EpsRule::outside});
       })},
      {"p_rms_norm", one([](In in) { return p_rms_norm(in[0], 0.5, in[1], {}, {.eps = 1e-6}); })},
      {"crms_norm", one([](In in) { return crms_norm(in[0], in[1]); })},
      {"normalize", one([](In in) { return normalize(in[0]); })},
      {"normalize_inside", one([](In in) { return normalize(in[0], -1, 1e-2, EpsRule::inside); })},
      {"normalize_columns", one([](In in) { return normalize(in[0], 0); })},
      {"scale_norm", one([](In in) { return scale_norm(in[0], in[1]); })},
      {"simple_rms_norm", one([](In in) { return simple_rms_norm(in[0]); })},
      {"ada_layer_norm", one([](In in) { return ada_layer_norm(in[0], in[1], in[2]); })},
      {"ada_norm", one([](In in) { return ada_norm(in[0], {6}, 2.0, 0.1); })},
      {"poly_norm", one([](In in) { return poly_norm(in[0], in[1], in[2]); })},
      {"group_norm", one([](In in) { return group_norm(in[0], 3, in[1], in[2]); })},
      {"group_norm_plain", one([](In in) { return group_norm(in[0], 2); })},
      {"instance_norm", one([](In in) { return instance_norm(in[0], {}, {}, in[1], in[2]); })},
      {"add_rms_norm",
       [](In in) {
         const auto [y, sum] =
             add_rms_norm(in[0], in[1], {6}, in[2], {}, {.alpha = 0.5, .norm = {.eps = 1e-6}});
         return TensorList{y, sum};
       }},
      {"dual_rms_norm",
       [](In in) {
         const auto [y1, y2] = dual_rms_norm(in[0], {in[1], {}, in[2], {}}, {.eps = 1e-6});
         return TensorList{y1, y2};
       }},
      {"add_layer_norm",
       [](In in) {
         const auto [y, sum] = add_layer_norm(in[0], in[1], {6}, in[2], in[3], {.alpha = 2.5});
         return TensorList{y, sum};
       }},
      {"dual_layer_norm", [](In in) {
         const auto [y1, y2] = dual_layer_norm(in[0], {in[1], in[2], in[3], {}});
         return TensorList{y1, y2};
       }}};
}

std::map<std::string, OpFunction> other_cases() {
  const auto one = [](auto function) {
    return [function](In in) { return TensorList{function(in)}; };
  };
  return {
      {"dynamic_tanh", one([](In in) { return dynamic_tanh(in[0], in[1], in[2], in[3]); })},
      {"dynamic_erf", one([](In in) { return dynamic_erf(in[0], in[1], in[2], in[3], in[4]); })},
      {"layer_scale", one([](In in) { return layer_scale(in[0], in[1]); })},
      {"head_scale", one([](In in) { return head_scale(in[0], in[1]); })},
      {"softcap", one([](In in) { return softcap(in[0], 0.7); })},
      {"batch_norm_eval", one([](In in) {
         return batch_norm(in[0], full({6}, 0.3, {.dtype = float64}),
                           full({6}, 0.8, {.dtype = float64}), in[1], in[2]);
       })},
      {"instance_norm_eval", one([](In in) {
         return instance_norm(in[0], value("instance_norm_running/mean_before"),
                              value("instance_norm_running/var_before"), in[1], in[2], false);
       })},
      {"power_norm_eval", one([](In in) {
         return power_norm(in[0], {}, full({6}, 0.8, {.dtype = float64}),
                           zeros({6}, {.dtype = float64}), in[1], in[2], false, 1);
       })},
      {"masked_batch_norm", one([](In in) {
         return masked_batch_norm(in[0], value("padding_mask"), {}, {}, in[1], in[2], true);
       })},
      {"regularized_batch_norm",
       [](In in) {
         const auto result = regularized_batch_norm(
             in[0], value("padding_mask"), value("regularized_batch_norm/running_mean").clone(),
             value("regularized_batch_norm/running_var").clone(), in[1], in[2], true);
         return TensorList{result.output, result.penalty};
       }},
      {"weight_norm", one([](In in) { return weight_norm(in[0], in[1]); })},
      {"weight_norm_all", one([](In in) { return weight_norm(in[0], in[1], std::nullopt); })},
      {"weight_norm_columns", one([](In in) { return weight_norm(in[0], in[1], 1); })}};
}

}  // namespace

TEST_CASE("norms of rows equal PyTorch's and their definitions", "[golden]") {
  for (const auto& [name, function] : row_cases()) check_golden_op(name, function, file);
}

TEST_CASE("other norms equal PyTorch's and their definitions", "[golden]") {
  for (const auto& [name, function] : other_cases()) check_golden_op(name, function, file);
}

TEST_CASE("batch_norm over several steps equals PyTorch's", "[golden]") {
  const Tensor weight = value("batch_norm_steps/weight"), bias = value("batch_norm_steps/bias");
  const Tensor mean = zeros({6}, {.dtype = float64}), var = ones({6}, {.dtype = float64});
  for (int step = 0; step < 4; ++step) {
    INFO("step " << step);
    const auto at = [step](const char* what) {
      return value(fmt::format("batch_norm_steps/{}{}", what, step));
    };
    const Tensor x = at("in").clone().requires_grad_();
    const Tensor y = batch_norm(x, mean, var, weight, bias, step < 3);
    CHECK(close_to_largest(y.detach(), at("out"), 1e-12));
    CHECK(close_to_largest(grad({y}, {x}, {.grad_outputs = {at("ct")}})[0], at("grad"), 1e-12));
    CHECK(close_to_largest(mean, at("running_mean"), 1e-12));
    CHECK(close_to_largest(var, at("running_var"), 1e-12));
  }
}

TEST_CASE("spectral_norm over several steps equals PyTorch's", "[golden]") {
  const Tensor weight = value("spectral_norm/weight").clone().requires_grad_();
  const Tensor u = value("spectral_norm/u").clone(), v = value("spectral_norm/v").clone();
  for (int step = 0; step < 3; ++step) {
    INFO("step " << step);
    const auto at = [step](const char* what) {
      return value(fmt::format("spectral_norm/{}{}", what, step));
    };
    const Tensor out = spectral_norm(weight, u, v, step < 2 ? 1 : 0);
    CHECK(close_to_largest(out.detach(), at("out"), 1e-12));
    CHECK(close_to_largest(grad({out}, {weight}, {.grad_outputs = {at("ct")}})[0], at("grad"),
                           1e-12));
    CHECK(close_to_largest(u, at("u"), 1e-12));
    CHECK(close_to_largest(v, at("v"), 1e-12));
  }
}

TEST_CASE("power_norm equals its script, with warm-up and approximate backward", "[golden]") {
  const Tensor weight = value("power_norm/weight").clone().requires_grad_();
  const Tensor bias = value("power_norm/bias").clone().requires_grad_();
  const Tensor phi = ones({6}, {.dtype = float64}), nu = zeros({6}, {.dtype = float64});
  for (int step = 1; step <= 4; ++step) {
    INFO("step " << step);
    const auto at = [step](const char* what) {
      return value(fmt::format("power_norm/{}{}", what, step));
    };
    const Tensor x = at("in").clone().requires_grad_();
    const Tensor y = power_norm(x, value("padding_mask"), phi, nu, weight, bias, true, step,
                                {.warmup_steps = 2});
    CHECK(close_to_largest(y.detach(), at("out"), 1e-12));
    const TensorList grads = grad({y}, {x, weight, bias}, {.grad_outputs = {at("ct")}});
    CHECK(close_to_largest(grads[0], at("grad"), 1e-12));
    CHECK(close_to_largest(grads[1], at("dweight"), 1e-12));
    CHECK(close_to_largest(grads[2], at("dbias"), 1e-12));
    CHECK(close_to_largest(phi, at("phi"), 1e-12));
    CHECK(close_to_largest(nu, at("nu"), 1e-12));
  }
}

TEST_CASE("instance_norm moves running statistics, and unit_norm_ rows, as PyTorch", "[golden]") {
  const Tensor mean = value("instance_norm_running/mean_before").clone();
  const Tensor var = value("instance_norm_running/var_before").clone();
  instance_norm(value("instance_norm/in0"), mean, var, {}, {}, true, 0.3);
  CHECK(close_to_largest(mean, value("instance_norm_running/mean"), 1e-12));
  CHECK(close_to_largest(var, value("instance_norm_running/var"), 1e-12));

  for (const auto& [dim, expected] : {std::pair(-1, "unit_norm/rows"), {0, "unit_norm/columns"}}) {
    const Tensor weight = value("unit_norm/before").clone();
    unit_norm_(weight, dim);
    CHECK(close_to_largest(weight, value(expected), 1e-12));
  }
}

namespace {

std::set<std::string> tested_names() {
  std::set<std::string> names{"batch_norm_steps", "spectral_norm",         "power_norm",
                              "padding_mask",     "instance_norm_running", "unit_norm"};
  for (const auto& cases : {row_cases(), other_cases()})
    for (const auto& [name, function] : cases) names.insert(name);
  return names;
}

/// The golden cases of an entry of the op table: those of its name, if no others are said.
std::vector<std::string> golden_names(const std::string& entry) {
  static const std::map<std::string, std::vector<std::string>> others = {
      {"layer_norm with options", {"layer_norm_per_head"}},
      {"rms_norm", {"rms_norm_torch"}},
      {"rms_norm with options", {"gemma", "original_rms_norm"}},
      {"rms_norm in Llama's order", {"llama"}},
      {"normalize", {"normalize", "normalize_columns", "normalize_inside"}},
      {"group_norm", {"group_norm", "group_norm_plain"}},
      {"instance_norm", {"instance_norm", "instance_norm_eval"}},
      {"batch_norm", {"batch_norm_steps", "batch_norm_eval"}},
      {"batch_norm and others in training", {"batch_norm_steps", "instance_norm_running"}},
      {"power_norm", {"power_norm_eval"}},
      {"power_norm in training", {"power_norm"}},
      {"weight_norm", {"weight_norm", "weight_norm_columns", "weight_norm_all"}},
      {"unit_norm_", {"unit_norm"}}};
  const auto found = others.find(entry);
  return found != others.end() ? found->second : std::vector{entry};
}

}  // namespace

TEST_CASE("every norm of the op table has golden values, or says why not", "[golden]") {
  const std::set<std::string> tested = tested_names();
  for (const OpEntry& op : op_table()) {
    // LayerNorm stands in ops.safetensors with what is no norm.
    if (!op.is_norm || op.name == "layer_norm") continue;
    for (const std::string& name : golden_names(op.name)) {
      INFO(op.name << ": " << name);
      CHECK(tested.contains(name) == op.no_golden_because.empty());
    }
  }
}

TEST_CASE("no golden norm is left out", "[golden]") {
  const std::set<std::string> tested = tested_names();
  for (const auto& [key, tensor] : golden(file)) {
    INFO(key);
    CHECK(tested.contains(key.substr(0, key.find('/'))));
  }
}

}  // namespace norma::test
