#include "norma/nn/norm.h"

#include "norma/core/factory.h"
#include "norma/nn/batch_norm.h"
#include "norma/nn/custom_norm.h"
#include "norma/nn/point_norms.h"
#include "norma/nn/row_norms.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"

#include <numeric>

namespace norma::nn {

namespace {

void check_shape(const Shape& shape, const char* operation) {
  const bool valid =
      !shape.empty() && std::all_of(shape.begin(), shape.end(), [](auto size) { return size > 0; });
  check<ValueError>(valid, operation, "normalized_shape must have positive sizes; got {}", shape);
}

/// "(64,)", "(4, 8)": a Python tuple, as PyTorch prints it.
std::string tuple(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "),
                     shape.size() == 1 ? "," : "");
}

const char* python_bool(bool value) { return value ? "True" : "False"; }

/// NormKind::none.
class NoNorm final : public Norm {
 public:
  Tensor forward(const Tensor& x) override { return x; }
  std::string type_name() const override { return "Identity"; }
};

/// Those of register_norm: their kinds count up from here, far behind the library's own.
constexpr int first_custom_kind = 1 << 16;
std::vector<NormFactory>& custom_norms() {
  static std::vector<NormFactory> factories;
  return factories;
}
AnyNorm make_custom_norm(NormKind kind, std::int64_t dim, std::optional<double> eps) {
  const auto index = static_cast<std::int64_t>(kind) - first_custom_kind;
  if (index < 0 || index >= static_cast<std::int64_t>(custom_norms().size())) return nullptr;
  return custom_norms()[static_cast<std::size_t>(index)](dim, eps);
}

}  // namespace

NormKind register_norm(NormFactory factory) {
  check<ValueError>(factory != nullptr, "register_norm", "the factory must be callable; got none");
  custom_norms().push_back(std::move(factory));
  return static_cast<NormKind>(first_custom_kind + static_cast<int>(custom_norms().size()) - 1);
}

namespace detail {

void add_norm_parameter(Module& module, const char* name, Tensor& member, const Shape& shape,
                        double value) {
  member = full(shape, value);
  module.register_parameter(name, member, ParameterKind::norm);
}

void check_width(const char* layer, std::int64_t width) {
  check<ValueError>(width > 0, layer, "the width must be positive; got {}", width);
}

}  // namespace detail

LayerNorm::LayerNorm(std::int64_t width, double epsilon, bool affine, bool with_bias)
    : LayerNorm(Shape{width}, epsilon, affine, with_bias) {}

LayerNorm::LayerNorm(Shape shape, double epsilon, bool affine, bool with_bias)
    : normalized_shape(shape), eps(epsilon) {
  check_shape(shape, "LayerNorm");
  if (!affine) return;
  weight = ones(shape);
  register_parameter("weight", weight, ParameterKind::norm);
  if (!with_bias) return;
  bias = zeros(shape);
  register_parameter("bias", bias, ParameterKind::norm);
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape, weight, bias, eps);
}

std::string LayerNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", tuple(normalized_shape), eps,
                     python_bool(weight.defined()));
}

RMSNorm::RMSNorm(std::int64_t width, std::optional<double> epsilon, bool affine)
    : RMSNorm(Shape{width}, epsilon, affine) {}

RMSNorm::RMSNorm(Shape shape, std::optional<double> epsilon, bool affine)
    : normalized_shape(shape), eps(epsilon) {
  check_shape(shape, "RMSNorm");
  if (!affine) return;
  weight = ones(shape);
  register_parameter("weight", weight, ParameterKind::norm);
}

Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, normalized_shape, weight, eps); }

std::string RMSNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", tuple(normalized_shape),
                     eps ? fmt::format("{}", *eps) : "None", python_bool(weight.defined()));
}

AnyNorm make_norm(NormKind kind, std::int64_t dim, std::optional<double> eps) {
  switch (kind) {
    case NormKind::none:
      return std::make_unique<NoNorm>();
    case NormKind::layer_norm:
      return std::make_unique<LayerNorm>(dim, eps.value_or(1e-5));
    case NormKind::layer_norm_no_bias:
      return std::make_unique<LayerNorm>(dim, eps.value_or(1e-5), true, false);
    case NormKind::layer_norm_1p:
      return std::make_unique<LayerNorm1P>(dim, eps.value_or(1e-5));
    case NormKind::rms_norm:
      return std::make_unique<RMSNorm>(dim, eps);
    case NormKind::llama_rms_norm:
      return std::make_unique<LlamaRMSNorm>(dim, eps.value_or(1e-6));
    case NormKind::gemma_rms_norm:
      return std::make_unique<GemmaRMSNorm>(dim, eps.value_or(1e-6));
    case NormKind::original_rms_norm:
      return std::make_unique<OriginalRMSNorm>(dim, eps.value_or(1e-8));
    case NormKind::p_rms_norm:
      return std::make_unique<PRMSNorm>(dim, 0.0625, eps.value_or(1e-8));
    case NormKind::crms_norm:
      return std::make_unique<CRMSNorm>(dim, eps.value_or(1e-8));
    case NormKind::scale_norm:
      return std::make_unique<ScaleNorm>(dim, eps.value_or(1e-5));
    case NormKind::l2_norm:
      return std::make_unique<L2Norm>(eps.value_or(1e-12));
    case NormKind::simple_rms_norm:
      return std::make_unique<SimpleRMSNorm>(eps.value_or(1e-12));
    case NormKind::ada_norm:
      return std::make_unique<AdaNorm>(dim, 1.0, 0.1, eps.value_or(1e-5));
    case NormKind::group_norm:
      return std::make_unique<TokenGroupNorm>(std::gcd(dim, std::int64_t{8}), dim,
                                              eps.value_or(1e-5));
    case NormKind::dyt:
      return std::make_unique<DyT>(dim);
    case NormKind::derf:
      return std::make_unique<Derf>(dim);
    case NormKind::batch_norm:
      return std::make_unique<MaskedBatchNorm>(dim, eps.value_or(1e-5));
    case NormKind::batch_norm_naive:
      return std::make_unique<NaiveBatchNorm>(dim, eps.value_or(1e-5));
    case NormKind::power_norm:
      return std::make_unique<PowerNorm>(dim, 1, PowerNormOptions{.eps = eps.value_or(1e-5)});
    case NormKind::regularized_batch_norm:
      return std::make_unique<RegularizedBatchNorm>(
          dim, RegularizedBatchNormOptions{.eps = eps.value_or(1e-5)});
  }
  if (AnyNorm custom = make_custom_norm(kind, dim, eps)) return custom;
  throw ValueError("make_norm", "kind must be a NormKind; got " +
                                    std::to_string(static_cast<int>(kind)) + "; one of " +
                                    enum_choices<NormKind>());
}

Tensor norm_penalty(Module& model) {
  Tensor sum;
  for (Module* module : model.modules())
    if (const auto* norm = dynamic_cast<Norm*>(module))
      if (const Tensor penalty = norm->penalty(); penalty.defined())
        sum = sum.defined() ? sum + penalty : penalty;
  return sum;
}

}  // namespace norma::nn
