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

/// Which norm. An open set; the names are those of configuration files.
enum class NormKind { none, layer_norm, rms_norm };

template <>
struct EnumNames<NormKind> {
  static constexpr const char* type = "NormKind";
  static constexpr auto values =
      std::to_array<std::pair<NormKind, std::string_view>>({{NormKind::none, "none"},
                                                            {NormKind::layer_norm, "layer_norm"},
                                                            {NormKind::rms_norm, "rms_norm"}});
};

/// A norm over the last dimension of width `dim`, chosen at run time.
using AnyNorm = std::unique_ptr<Norm>;

/// The norm of this kind; `NormKind::none` gives one that returns its input. `eps`: the default of
/// the kind if absent.
AnyNorm make_norm(NormKind kind, std::int64_t dim, std::optional<double> eps = std::nullopt);

}  // namespace norma::nn
