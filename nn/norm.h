// Norms as layers, and the choice of one by configuration.
//
// To add a norm: derive it from Norm, give it a value of NormKind with its name, and one line in
// make_norm (norm.cpp). Blocks, attention and models take any NormKind and need no change.
#pragma once

#include "norma/nn/layer.h"
#include "norma/nn/names.h"

#include <array>
#include <memory>
#include <optional>

namespace norma::nn {

/// Base of all norms: whoever holds one calls it as `norm(x)` without knowing which it is.
class Norm : public Layer<Norm> {
 public:
  virtual Tensor forward(const Tensor& x) = 0;
  /// Says which tokens of the next inputs are padding (bool [batch, length], true = padding;
  /// undefined: none). Norms of rows do not care; those of batches leave them out.
  virtual void use_padding(const Tensor& /*padding_mask*/) {}
  /// What the last forward in training adds to the loss; undefined: nothing. See norm_penalty.
  virtual Tensor penalty() const { return {}; }
};

/// y = (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions `normalized_shape`;
/// weight starts as ones, bias as zeros. As torch.nn.LayerNorm. Source: Ba, Kiros, Hinton 2016.
class LayerNorm : public Norm {
 public:
  explicit LayerNorm(Shape normalized_shape, double eps = 1e-5, bool elementwise_affine = true,
                     bool bias = true);
  explicit LayerNorm(std::int64_t width, double eps = 1e-5, bool elementwise_affine = true,
                     bool bias = true);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  Shape normalized_shape;
  double eps;
  Tensor weight;  ///< undefined without elementwise_affine
  Tensor bias;    ///< undefined without elementwise_affine or bias
};

/// y = x / sqrt(mean(x^2) + eps) * weight over the last dimensions `normalized_shape`. Without eps
/// the machine epsilon of the dtype. As torch.nn.RMSNorm. Source: Zhang and Sennrich 2019.
class RMSNorm : public Norm {
 public:
  explicit RMSNorm(Shape normalized_shape, std::optional<double> eps = std::nullopt,
                   bool elementwise_affine = true);
  explicit RMSNorm(std::int64_t width, std::optional<double> eps = std::nullopt,
                   bool elementwise_affine = true);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  Shape normalized_shape;
  std::optional<double> eps;
  Tensor weight;  ///< undefined without elementwise_affine
};

/// Which norm. An open set; the names are those of configuration files. Each is a layer of
/// nn/norm.h, nn/row_norms.h, nn/point_norms.h or nn/batch_norm.h with its defaults.
// clang-format off
enum class NormKind {
  none,
  layer_norm,
  layer_norm_no_bias,
  layer_norm_1p,      ///< gain 1 + weight
  rms_norm,
  llama_rms_norm,     ///< rounds before the weight
  gemma_rms_norm,     ///< gain 1 + weight
  original_rms_norm,  ///< eps outside of the root
  p_rms_norm,         ///< mean square of the first sixteenth
  crms_norm,
  scale_norm,
  l2_norm,            ///< unit vectors, nothing learned
  simple_rms_norm,
  ada_norm,
  group_norm,         ///< gcd(width, 8) groups of the channels of a token
  dyt,
  derf,
  batch_norm,         ///< without padding
  batch_norm_naive,   ///< padding counts like text
  power_norm,
  regularized_batch_norm,  ///< with a penalty for the loss: norm_penalty
};
// clang-format on

template <>
struct EnumNames<NormKind> {
  static constexpr const char* type = "NormKind";
  static constexpr auto values = std::to_array<std::pair<NormKind, std::string_view>>(
      {{NormKind::none, "none"},
       {NormKind::layer_norm, "layer_norm"},
       {NormKind::layer_norm_no_bias, "layer_norm_no_bias"},
       {NormKind::layer_norm_1p, "layer_norm_1p"},
       {NormKind::rms_norm, "rms_norm"},
       {NormKind::llama_rms_norm, "llama_rms_norm"},
       {NormKind::gemma_rms_norm, "gemma_rms_norm"},
       {NormKind::original_rms_norm, "original_rms_norm"},
       {NormKind::p_rms_norm, "p_rms_norm"},
       {NormKind::crms_norm, "crms_norm"},
       {NormKind::scale_norm, "scale_norm"},
       {NormKind::l2_norm, "l2_norm"},
       {NormKind::simple_rms_norm, "simple_rms_norm"},
       {NormKind::ada_norm, "ada_norm"},
       {NormKind::group_norm, "group_norm"},
       {NormKind::dyt, "dyt"},
       {NormKind::derf, "derf"},
       {NormKind::batch_norm, "batch_norm"},
       {NormKind::batch_norm_naive, "batch_norm_naive"},
       {NormKind::power_norm, "power_norm"},
       {NormKind::regularized_batch_norm, "regularized_batch_norm"}});
};

namespace detail {
/// ones, zeros or another constant as a gain or offset of a norm, registered as `name`.
void add_norm_parameter(Module& module, const char* name, Tensor& member, const Shape& shape,
                        double value);
/// Throws ValueError unless `width` is positive.
void check_width(const char* layer, std::int64_t width);
}  // namespace detail

/// A norm over the last dimension of width `dim`, chosen at run time.
using AnyNorm = std::unique_ptr<Norm>;

/// The norm of this kind; `NormKind::none` gives one that returns its input. `eps`: the default of
/// the kind if absent.
AnyNorm make_norm(NormKind kind, std::int64_t dim, std::optional<double> eps = std::nullopt);

/// Sum of what the norms of `model` add to the loss of their last forward (RegularizedBN);
/// undefined where none does: `if (const Tensor extra = norm_penalty(model); extra.defined()) loss
/// = loss + extra;`.
Tensor norm_penalty(Module& model);

}  // namespace norma::nn
