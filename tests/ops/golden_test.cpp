// Every operation against PyTorch: values and gradients (tests/golden/make_ops.py).
#include "support/golden.h"
#include "support/catch.h"

#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/linear.h"
#include "norma/ops/loss.h"
#include "norma/ops/matmul.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/rope.h"
#include "norma/ops/softmax.h"
#include "norma/ops/view.h"

#include <set>

namespace norma::test {
namespace {

using In = const TensorList&;

Tensor extra(const std::string& name, const Tensor& like) {
  const Tensor tensor = golden("ops.safetensors").at(name);
  return tensor.is_floating_point() ? tensor.to(like.dtype()) : tensor;
}

std::map<std::string, OpFunction> elementwise_cases() {
  std::map<std::string, OpFunction> cases;
  for (const char* suffix : {"", "_row", "_column"}) {
    cases[std::string("add") + suffix] = [](In in) { return TensorList{in[0] + in[1]}; };
    cases[std::string("sub") + suffix] = [](In in) { return TensorList{in[0] - in[1]}; };
    cases[std::string("mul") + suffix] = [](In in) { return TensorList{in[0] * in[1]}; };
  }
  cases["div"] = [](In in) { return TensorList{in[0] / in[1]}; };
  cases["pow_scalar"] = [](In in) { return TensorList{pow(in[0], 3.0)}; };
  cases["pow"] = [](In in) { return TensorList{pow(in[0], in[1])}; };
  cases["maximum"] = [](In in) { return TensorList{maximum(in[0], in[1])}; };
  cases["minimum"] = [](In in) { return TensorList{minimum(in[0], in[1])}; };
  const std::map<std::string, Tensor (*)(const Tensor&)> unary = {
      {"neg", neg},     {"abs", abs},
      {"exp", exp},     {"square", square},
      {"sin", sin},     {"cos", cos},
      {"tanh", tanh},   {"sigmoid", sigmoid},
      {"erf", erf},     {"log", log},
      {"log1p", log1p}, {"sqrt", sqrt},
      {"rsqrt", rsqrt}, {"reciprocal", reciprocal}};
  for (const auto& [name, function] : unary)
    cases[name] = [function = function](In in) { return TensorList{function(in[0])}; };
  cases["clamp"] = [](In in) { return TensorList{clamp(in[0], -0.5, 0.5)}; };
  cases["where"] = [](In in) { return TensorList{where(in[0], in[1], in[2])}; };
  cases["masked_fill"] = [](In in) { return TensorList{masked_fill(in[0], in[1], -2.5)}; };
  cases["relu"] = [](In in) { return TensorList{relu(in[0])}; };
  cases["gelu"] = [](In in) { return TensorList{gelu(in[0])}; };
  cases["gelu_tanh"] = [](In in) { return TensorList{gelu(in[0], "tanh")}; };
  cases["silu"] = [](In in) { return TensorList{silu(in[0])}; };
  cases["softplus"] = [](In in) { return TensorList{softplus(in[0])}; };
  cases["swiglu"] = [](In in) { return TensorList{swiglu(in[0], in[1])}; };
  return cases;
}

std::map<std::string, OpFunction> shape_cases() {
  std::map<std::string, OpFunction> cases;
  cases["sum"] = [](In in) { return TensorList{sum(in[0])}; };
  cases["sum_dims"] = [](In in) { return TensorList{sum(in[0], {0, 2}, true)}; };
  cases["mean"] = [](In in) { return TensorList{mean(in[0])}; };
  cases["mean_dim"] = [](In in) { return TensorList{mean(in[0], {1})}; };
  cases["var"] = [](In in) { return TensorList{var(in[0], {-1})}; };
  cases["var_biased"] = [](In in) { return TensorList{var(in[0], {1}, 0)}; };
  cases["std"] = [](In in) { return TensorList{norma::std(in[0], {-1})}; };
  cases["prod"] = [](In in) { return TensorList{prod(in[0], {1})}; };
  cases["amax"] = [](In in) { return TensorList{amax(in[0], {-1})}; };
  cases["amin"] = [](In in) { return TensorList{amin(in[0], {0})}; };
  cases["max_dim"] = [](In in) {
    const auto [values, indices] = max(in[0], 1);
    return TensorList{values, indices};
  };
  cases["argmax"] = [](In in) { return TensorList{argmax(in[0], -1)}; };
  cases["argmin"] = [](In in) { return TensorList{argmin(in[0], 1)}; };
  cases["cumsum"] = [](In in) { return TensorList{cumsum(in[0], 1)}; };
  cases["logsumexp"] = [](In in) { return TensorList{logsumexp(in[0], {-1})}; };
  cases["vector_norm"] = [](In in) { return TensorList{vector_norm(in[0], {-1})}; };
  cases["transpose"] = [](In in) { return TensorList{transpose(in[0], 0, 2)}; };
  cases["permute"] = [](In in) { return TensorList{permute(in[0], {2, 0, 1})}; };
  cases["reshape"] = [](In in) { return TensorList{reshape(transpose(in[0], 0, 1), {6, 4})}; };
  cases["narrow"] = [](In in) { return TensorList{narrow(in[0], 1, 1, 2)}; };
  cases["select"] = [](In in) { return TensorList{select(in[0], 2, 1)}; };
  cases["expand"] = [](In in) { return TensorList{expand(in[0], {5, 3, 4})}; };
  cases["cat"] = [](In in) { return TensorList{cat(in, 1)}; };
  cases["stack"] = [](In in) { return TensorList{stack(in, 1)}; };
  cases["split"] = [](In in) { return split(in[0], 2, 1); };
  cases["gather"] = [](In in) { return TensorList{gather(in[0], 1, in[1])}; };
  cases["scatter_add"] = [](In in) { return TensorList{scatter_add(in[0], 1, in[1], in[2])}; };
  cases["index_select"] = [](In in) { return TensorList{index_select(in[0], 1, in[1])}; };
  cases["embedding"] = [](In in) { return TensorList{embedding(in[0], in[1], 2)}; };
  return cases;
}

std::map<std::string, OpFunction> model_cases() {
  std::map<std::string, OpFunction> cases;
  for (const char* name : {"matmul_2d", "matmul_batched", "matmul_vector"})
    cases[name] = [](In in) { return TensorList{matmul(in[0], in[1])}; };
  cases["linear"] = [](In in) { return TensorList{linear(in[0], in[1], in[2])}; };
  cases["linear_gelu"] = [](In in) {
    return TensorList{linear(in[0], in[1], in[2], Activation::gelu)};
  };
  cases["linear_relu"] = [](In in) {
    return TensorList{linear(in[0], in[1], in[2], Activation::relu)};
  };
  cases["softmax"] = [](In in) { return TensorList{softmax(in[0], -1)}; };
  cases["softmax_dim0"] = [](In in) { return TensorList{softmax(in[0], 0)}; };
  cases["log_softmax"] = [](In in) { return TensorList{log_softmax(in[0], -1)}; };
  cases["cross_entropy"] = [](In in) { return TensorList{cross_entropy(in[0], in[1])}; };
  cases["cross_entropy_sum"] = [](In in) {
    return TensorList{cross_entropy(in[0], in[1], {.reduction = Reduction::sum})};
  };
  cases["cross_entropy_none"] = [](In in) {
    return TensorList{cross_entropy(in[0], in[1], {.reduction = Reduction::none})};
  };
  cases["cross_entropy_smooth"] = [](In in) {
    return TensorList{cross_entropy(in[0], in[1], {.label_smoothing = 0.1})};
  };
  cases["cross_entropy_weight"] = [](In in) {
    const Tensor weight = extra("cross_entropy_weight/weight", in[0]);
    return TensorList{cross_entropy(in[0], in[1], {.weight = weight, .label_smoothing = 0.1})};
  };
  cases["bce_with_logits"] = [](In in) {
    return TensorList{binary_cross_entropy_with_logits(in[0], in[1])};
  };
  cases["mse_loss"] = [](In in) { return TensorList{mse_loss(in[0], in[1])}; };
  cases["layer_norm"] = [](In in) { return TensorList{layer_norm(in[0], {4}, in[1], in[2])}; };
  cases["layer_norm_2d"] = [](In in) {
    return TensorList{layer_norm(in[0], {3, 4}, in[1], in[2])};
  };
  cases["layer_norm_plain"] = [](In in) { return TensorList{layer_norm(in[0], {4})}; };
  cases["rms_norm"] = [](In in) { return TensorList{rms_norm(in[0], {4}, in[1], 1e-6)}; };
  cases["rms_norm_default_eps"] = [](In in) { return TensorList{rms_norm(in[0], {4})}; };
  cases["attention"] = [](In in) {
    return TensorList{scaled_dot_product_attention(in[0], in[1], in[2])};
  };
  cases["attention_gqa"] = [](In in) {
    return TensorList{scaled_dot_product_attention(in[0], in[1], in[2], {.enable_gqa = true})};
  };
  cases["attention_causal"] = [](In in) {
    return TensorList{scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true})};
  };
  cases["attention_padding"] = [](In in) {
    const Tensor ignore = extra("attention_padding/ignore", in[0]);
    return TensorList{
        scaled_dot_product_attention(in[0], in[1], in[2], {.key_padding_mask = ignore})};
  };
  cases["attention_additive"] = [](In in) {
    const Tensor mask = extra("attention_additive/mask", in[0]);
    return TensorList{scaled_dot_product_attention(in[0], in[1], in[2], {.attn_mask = mask})};
  };
  cases["attention_softcap"] = [](In in) {
    return TensorList{scaled_dot_product_attention(in[0], in[1], in[2], {.softcap = 2.0})};
  };
  cases["rope"] = [](In in) {
    const auto [cos, sin] = rope_tables(5, 8, 10000.0, 0, {.dtype = float64});
    return TensorList{apply_rope(in[0], cos, sin)};
  };
  return cases;
}

void check_all(const std::map<std::string, OpFunction>& cases) {
  for (const auto& [name, function] : cases) check_golden_op(name, function);
}

}  // namespace

TEST_CASE("elementwise operations equal PyTorch's", "[golden]") { check_all(elementwise_cases()); }
TEST_CASE("reductions, views and indices equal PyTorch's", "[golden]") { check_all(shape_cases()); }
TEST_CASE("products, losses, norms and attention equal PyTorch's", "[golden]") {
  check_all(model_cases());
}

TEST_CASE("no golden case is left out", "[golden]") {
  std::set<std::string> tested;
  for (const auto& cases : {elementwise_cases(), shape_cases(), model_cases()})
    for (const auto& [name, function] : cases) tested.insert(name);
  for (const auto& [key, tensor] : golden("ops.safetensors")) {
    const std::string name = key.substr(0, key.find('/'));
    INFO(name);
    CHECK(tested.contains(name));
  }
}

}  // namespace norma::test
