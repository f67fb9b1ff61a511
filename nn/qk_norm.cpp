#include "norma/nn/qk_norm.h"

#include "norma/nn/row_norms.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma::nn {

namespace {

/// LayerNorm with a weight, and perhaps a bias, for each head: input [..., heads, head_dim].
class HeadLayerNorm final : public Norm {
 public:
  HeadLayerNorm(const QKNormShape& shape, bool bias) : eps_(shape.eps) {
    detail::add_norm_parameter(*this, "weight", weight_, {shape.heads, shape.head_dim}, 1.0);
    if (bias) detail::add_norm_parameter(*this, "bias", bias_, {shape.heads, shape.head_dim}, 0.0);
  }
  Tensor forward(const Tensor& x) override {
    return layer_norm(x, {weight_.size(1)}, weight_, bias_, eps_);
  }
  std::string type_name() const override { return "HeadLayerNorm"; }

 private:
  double eps_;
  Tensor weight_, bias_;
};

/// sqrt(head_dim) x / |x| * (1 + gamma), gamma for each head.
class HeadRMSNorm final : public Norm {
 public:
  explicit HeadRMSNorm(const QKNormShape& shape) {
    detail::add_norm_parameter(*this, "gamma", gamma_, {shape.heads, shape.head_dim}, 0.0);
  }
  Tensor forward(const Tensor& x) override { return simple_rms_norm(x, gamma_, true); }
  std::string type_name() const override { return "HeadRMSNorm"; }

 private:
  Tensor gamma_;
};

/// Unit vectors, each head in `groups` parts, with or without a gain for each head.
class HeadL2Norm final : public Norm {
 public:
  HeadL2Norm(const QKNormShape& shape, bool learned) : groups_(shape.groups) {
    check<ValueError>(groups_ > 0 && shape.head_dim % groups_ == 0, "QKNorm",
                      "groups must divide head_dim; got {} and {}", groups_, shape.head_dim);
    if (learned)
      detail::add_norm_parameter(*this, "scale", scale_, {shape.heads, shape.head_dim},
                                 std::pow(static_cast<double>(shape.head_dim), 0.25));
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = x;
    if (groups_ == 1) {
      h = normalize(x);
    } else {
      Shape grouped = x.shape();
      grouped.back() = groups_;
      grouped.push_back(x.size(-1) / groups_);
      h = normalize(x.reshape(grouped)).reshape(x.shape());
    }
    return scale_.defined() ? h * scale_ : h;
  }
  std::string type_name() const override { return "HeadL2Norm"; }

 private:
  std::int64_t groups_;
  Tensor scale_;
};

/// nGPT: unit vectors times s_qk, which stands for 1 but is stored as 1 / sqrt(d_model). Input
/// [batch, heads, length, head_dim].
class SphereNorm final : public Norm {
 public:
  explicit SphereNorm(const QKNormShape& shape)
      : scale_(std::sqrt(static_cast<double>(shape.d_model))) {
    detail::add_norm_parameter(*this, "s_qk", s_qk_, {shape.heads, 1, shape.head_dim},
                               1.0 / scale_);
  }
  Tensor forward(const Tensor& x) override { return normalize(x) * (s_qk_ * scale_); }
  std::string type_name() const override { return "SphereNorm"; }

 private:
  double scale_;
  Tensor s_qk_;
};

}  // namespace

QKStage qk_stage(QKNorm form) {
  if (form == QKNorm::olmo2) return QKStage::projection;
  return form == QKNorm::ngpt ? QKStage::rotated : QKStage::heads;
}

bool normalizes_values(QKNorm form) { return form == QKNorm::hybrid; }

std::optional<double> qk_score_scale(QKNorm form, std::int64_t head_dim) {
  switch (form) {
    case QKNorm::henry:
    case QKNorm::l2_learned:
      return 1.0;
    case QKNorm::l2:
      return 10.0;
    case QKNorm::ngpt:
      return std::sqrt(static_cast<double>(head_dim));
    default:
      return std::nullopt;
  }
}

AnyNorm make_qk_norm(QKNorm form, const QKNormShape& shape) {
  switch (form) {
    case QKNorm::henry:
      return std::make_unique<L2Norm>();
    case QKNorm::l2:
      return std::make_unique<HeadL2Norm>(shape, false);
    case QKNorm::l2_learned:
      return std::make_unique<HeadL2Norm>(shape, true);
    case QKNorm::head_rms:
      return std::make_unique<HeadRMSNorm>(shape);
    case QKNorm::vit22b:
      return std::make_unique<LayerNorm>(shape.head_dim, shape.eps, true, false);
    case QKNorm::cohere:
    case QKNorm::chameleon:
      return std::make_unique<HeadLayerNorm>(shape, form == QKNorm::chameleon);
    case QKNorm::qwen3:
    case QKNorm::hybrid:
      return std::make_unique<RMSNorm>(shape.head_dim, shape.eps);
    case QKNorm::gemma3:
      return std::make_unique<GemmaRMSNorm>(shape.head_dim, shape.eps);
    case QKNorm::olmo2:
      return std::make_unique<RMSNorm>(shape.heads * shape.head_dim, shape.eps);
    case QKNorm::ngpt:
      return std::make_unique<SphereNorm>(shape);
    case QKNorm::none:
      break;
  }
  throw ValueError("make_qk_norm", "form must be a QKNorm but none; got " +
                                       std::to_string(static_cast<int>(form)) + "; one of " +
                                       enum_choices<QKNorm>());
}

}  // namespace norma::nn
