// FeedForward: the position-wise network of a Transformer block.
#pragma once

#include "norma/nn/dropout.h"
#include "norma/nn/linear.h"
#include "norma/nn/names.h"
#include "norma/nn/norm.h"

#include <array>
#include <memory>

namespace norma::nn {

/// The non-linearity of a feed-forward network. The gated one, swiglu, has three matrices;
/// poly_norm learns (layer PolyNorm, "act_fn").
enum class Activation { relu, gelu, gelu_tanh, silu, swiglu, poly_norm };

template <>
struct EnumNames<Activation> {
  static constexpr const char* type = "Activation";
  static constexpr auto values = std::to_array<std::pair<Activation, std::string_view>>(
      {{Activation::relu, "relu"},
       {Activation::gelu, "gelu"},
       {Activation::gelu_tanh, "gelu_tanh"},
       {Activation::silu, "silu"},
       {Activation::swiglu, "swiglu"},
       {Activation::poly_norm, "poly_norm"}});
};

struct FeedForwardConfig {
  std::int64_t d_model = 0;
  std::int64_t d_ff = 0;
  Activation activation = Activation::gelu;
  double dropout = 0.0;  ///< on the hidden layer
  bool bias = true;
  NormKind inner_norm = NormKind::none;  ///< of the hidden layer, before fc2: SubLN, NormFormer
  std::optional<double> inner_norm_eps = std::nullopt;
  bool unit_scale = false;  ///< nGPT: learned gains of the hidden layer before the activation
};

/// x [..., d_model] to [..., d_model]: fc2(dropout(activation(fc1(x)))), or with swiglu, as in
/// Llama, down_proj(dropout(silu(gate_proj(x)) * up_proj(x))). Parameters are named so. Source:
/// Vaswani et al. 2017; Shazeer 2020 (swiglu). Errors: ValueError that names the field.
class FeedForward : public Layer<FeedForward> {
 public:
  explicit FeedForward(const FeedForwardConfig& config);
  Tensor forward(const Tensor& x);
  std::string extra_repr() const override;

  const FeedForwardConfig config;

 private:
  Tensor hidden(const Tensor& x);
  std::unique_ptr<Linear> fc1_, fc2_;
  std::unique_ptr<Linear> gate_proj_, up_proj_, down_proj_;  // swiglu
  AnyNorm act_fn_;                                           // poly_norm
  AnyNorm ffn_layernorm_;                                    // null without inner_norm
  Tensor s_u_, s_v_;  // [d_ff] with unit_scale; s_v of the gate
  Dropout dropout_;
};

}  // namespace norma::nn
