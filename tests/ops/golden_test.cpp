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
  cases["arithmetic"] = [](In in) {
    const Tensor& x = in[0];
    return TensorList{x + 2.5, 2.5 + x, x - 1.5, 1.5 - x, x * 3.0, 3.0 * x, x / 4.0, 2.0 / x};
  };
  cases["pow_scalar"] = [](In in) { return TensorList{pow(in[0], 3.0)}; };
  cases["pow_of_scalar"] = [](In in) { return TensorList{pow(2.5, in[0])}; };
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
      {"rsqrt", rsqrt}, {"reciprocal", reciprocal},
      {"sign", sign},   {"logical_not", logical_not},
      {"isnan", isnan}, {"isfinite", isfinite}};
  for (const auto& [name, function] : unary)
    cases[name] = [function = function](In in) { return TensorList{function(in[0])}; };
  const std::map<std::string, Tensor (*)(const Tensor&, const Tensor&)> comparisons = {
      {"eq", eq},
      {"ne", ne},
      {"lt", lt},
      {"le", le},
      {"gt", gt},
      {"ge", ge},
      {"logical_and", logical_and},
      {"logical_or", logical_or},
      {"logical_xor", logical_xor}};
  for (const auto& [name, function] : comparisons)
    cases[name] = [function = function](In in) { return TensorList{function(in[0], in[1])}; };
  cases["clamp"] = [](In in) { return TensorList{clamp(in[0], -0.5, 0.5)}; };
  cases["where"] = [](In in) { return TensorList{where(in[0], in[1], in[2])}; };
  cases["masked_fill"] = [](In in) { return TensorList{masked_fill(in[0], in[1], -2.5)}; };
  cases["relu"] = [](In in) { return TensorList{relu(in[0])}; };
  cases["gelu"] = [](In in) { return TensorList{gelu(in[0])}; };
  cases["gelu_tanh"] = [](In in) { return TensorList{gelu(in[0], "tanh")}; };
  cases["silu"] = [](In in) { return TensorList{silu(in[0])}; };
  cases["softplus"] = [](In in) { return TensorList{softplus(in[0])}; };
  cases["softplus_beta"] = [](In in) { return TensorList{softplus(in[0], 2.5)}; };
  cases["swiglu"] = [](In in) { return TensorList{swiglu(in[0], in[1])}; };
  return cases;
}

std::map<std::string, OpFunction> reduction_cases() {
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
  cases["any"] = [](In in) { return TensorList{any(in[0], {1})}; };
  cases["all"] = [](In in) { return TensorList{all(in[0], {0})}; };
  cases["max"] = [](In in) { return TensorList{max(in[0])}; };
  cases["max_dim"] = [](In in) {
    const auto [values, indices] = max(in[0], 1);
    return TensorList{values, indices};
  };
  cases["min"] = [](In in) { return TensorList{min(in[0])}; };
  cases["min_dim"] = [](In in) {
    const auto [values, indices] = min(in[0], 2, true);
    return TensorList{values, indices};
  };
  cases["argmax"] = [](In in) { return TensorList{argmax(in[0], -1)}; };
  cases["argmin"] = [](In in) { return TensorList{argmin(in[0], 1)}; };
  cases["cumsum"] = [](In in) { return TensorList{cumsum(in[0], 1)}; };
  cases["logsumexp"] = [](In in) { return TensorList{logsumexp(in[0], {-1})}; };
  cases["vector_norm"] = [](In in) { return TensorList{vector_norm(in[0], {-1})}; };
  cases["sum_to_size"] = [](In in) { return TensorList{sum_to_size(in[0], {3, 1})}; };
  return cases;
}

std::map<std::string, OpFunction> view_cases() {
  std::map<std::string, OpFunction> cases;
  cases["t"] = [](In in) { return TensorList{t(in[0])}; };
  cases["view"] = [](In in) { return TensorList{view(in[0], {4, -1})}; };
  cases["flatten"] = [](In in) { return TensorList{flatten(in[0], 1, 2)}; };
  cases["squeeze"] = [](In in) { return TensorList{squeeze(in[0], 1)}; };
  cases["squeeze_all"] = [](In in) { return TensorList{squeeze(in[0])}; };
  cases["unsqueeze"] = [](In in) { return TensorList{unsqueeze(in[0], -2)}; };
  cases["contiguous"] = [](In in) { return TensorList{contiguous(in[0].t())}; };
  cases["clone"] = [](In in) { return TensorList{clone(in[0])}; };
  cases["transpose"] = [](In in) { return TensorList{transpose(in[0], 0, 2)}; };
  cases["permute"] = [](In in) { return TensorList{permute(in[0], {2, 0, 1})}; };
  cases["reshape"] = [](In in) { return TensorList{reshape(transpose(in[0], 0, 1), {6, 4})}; };
  cases["narrow"] = [](In in) { return TensorList{narrow(in[0], 1, 1, 2)}; };
  cases["select"] = [](In in) { return TensorList{select(in[0], 2, 1)}; };
  cases["expand"] = [](In in) { return TensorList{expand(in[0], {5, 3, 4})}; };
  cases["cat"] = [](In in) { return TensorList{cat(in, 1)}; };
  cases["stack"] = [](In in) { return TensorList{stack(in, 1)}; };
  cases["split"] = [](In in) { return split(in[0], 2, 1); };
  cases["split_sizes"] = [](In in) { return split(in[0], {1, 0, 4}, 1); };
  cases["chunk"] = [](In in) { return chunk(in[0], 3); };
  cases["unbind"] = [](In in) { return unbind(in[0], 1); };
  cases["gather"] = [](In in) { return TensorList{gather(in[0], 1, in[1])}; };
  cases["scatter"] = [](In in) { return TensorList{scatter(in[0], 1, in[1], in[2])}; };
  cases["scatter_add"] = [](In in) { return TensorList{scatter_add(in[0], 1, in[1], in[2])}; };
  cases["index_select"] = [](In in) { return TensorList{index_select(in[0], 1, in[1])}; };
  cases["one_hot"] = [](In in) { return TensorList{one_hot(in[0], 5)}; };
  cases["embedding"] = [](In in) { return TensorList{embedding(in[0], in[1], 2)}; };
  return cases;
}

std::map<std::string, OpFunction> model_cases() {
  std::map<std::string, OpFunction> cases;
  for (const char* name : {"matmul", "matmul_batched", "matmul_vector"})
    cases[name] = [](In in) { return TensorList{matmul(in[0], in[1])}; };
  cases["mm"] = [](In in) { return TensorList{mm(in[0], in[1])}; };
  cases["bmm"] = [](In in) { return TensorList{bmm(in[0], in[1])}; };
  cases["addmm"] = [](In in) { return TensorList{addmm(in[0], in[1], in[2])}; };
  cases["addmm_scaled"] = [](In in) {
    return TensorList{addmm(in[0], in[1], in[2], {.beta = 0.5, .alpha = -2.0})};
  };
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
  for (const char* name : {"cross_entropy", "cross_entropy_dims", "cross_entropy_unbatched"})
    cases[name] = [](In in) { return TensorList{cross_entropy(in[0], in[1])}; };
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
  for (const char* name : {"nll_loss", "nll_loss_dims"})
    cases[name] = [](In in) { return TensorList{nll_loss(in[0], in[1])}; };
  cases["nll_loss_weight"] = [](In in) {
    const Tensor weight = extra("nll_loss_weight/weight", in[0]);
    return TensorList{nll_loss(in[0], in[1], {.weight = weight, .reduction = Reduction::sum})};
  };
  cases["bce_with_logits"] = [](In in) {
    return TensorList{binary_cross_entropy_with_logits(in[0], in[1])};
  };
  cases["bce_with_logits_pos_weight"] = [](In in) {
    const Tensor pos_weight = extra("bce_with_logits_pos_weight/pos_weight", in[0]);
    return TensorList{binary_cross_entropy_with_logits(in[0], in[1], {.pos_weight = pos_weight})};
  };
  cases["bce_with_logits_weight"] = [](In in) {
    const Tensor weight = extra("bce_with_logits_weight/weight", in[0]);
    return TensorList{binary_cross_entropy_with_logits(
        in[0], in[1], {.weight = weight, .reduction = Reduction::sum})};
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
  for (const char* name : {"attention_gqa_causal_more_keys", "attention_gqa_causal_fewer_keys"})
    cases[name] = [](In in) {
      return TensorList{scaled_dot_product_attention(in[0], in[1], in[2],
                                                     {.is_causal = true, .enable_gqa = true})};
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
  const auto rope = [](std::int64_t width, double base, bool interleaved) {
    const RopeTables tables = rope_tables(5, width, base, 0, {.dtype = float64});
    return
        [=](In in) { return TensorList{apply_rope(in[0], tables, {.interleaved = interleaved})}; };
  };
  cases["rope"] = rope(8, 10000.0, false);
  cases["rope_interleaved"] = rope(8, 100.0, true);
  cases["rope_partial"] = rope(4, 10000.0, false);
  cases["rope_partial_interleaved"] = rope(4, 100.0, true);
  return cases;
}

std::map<std::string, OpFunction> all_cases() {
  std::map<std::string, OpFunction> all;
  for (auto cases : {elementwise_cases(), reduction_cases(), view_cases(), model_cases()})
    all.merge(cases);
  return all;
}

void check_all(const std::map<std::string, OpFunction>& cases) {
  for (const auto& [name, function] : cases) check_golden_op(name, function);
}

/// The name under which the golden values of an entry of the op table stand: "pow(x, 2)" is pow.
std::string golden_name(const std::string& entry) {
  static const std::map<std::string, std::string> short_names = {
      {"scaled_dot_product_attention", "attention"},
      {"binary_cross_entropy_with_logits", "bce_with_logits"},
      {"apply_rope", "rope"}};
  const auto found = short_names.find(entry);
  return found != short_names.end() ? found->second : entry.substr(0, entry.find_first_of("( "));
}

}  // namespace

TEST_CASE("elementwise operations equal PyTorch's", "[golden]") { check_all(elementwise_cases()); }
TEST_CASE("reductions equal PyTorch's", "[golden]") { check_all(reduction_cases()); }
TEST_CASE("views and indices equal PyTorch's", "[golden]") { check_all(view_cases()); }
TEST_CASE("products, losses, norms and attention equal PyTorch's", "[golden]") {
  check_all(model_cases());
}

TEST_CASE("no golden case is left out", "[golden]") {
  const auto tested = all_cases();
  for (const auto& [key, tensor] : golden("ops.safetensors")) {
    const std::string name = key.substr(0, key.find('/'));
    INFO(name);
    CHECK(tested.contains(name));
  }
}

TEST_CASE("every operation is compared with PyTorch's, or says why not", "[golden]") {
  const auto tested = all_cases();
  for (const OpEntry& op : op_table()) {
    if (op.is_norm && op.name != "layer_norm") continue;  // norm_golden_test.cpp
    INFO(op.name);
    CHECK(tested.contains(golden_name(op.name)) == op.no_golden_because.empty());
  }
}

}  // namespace norma::test
