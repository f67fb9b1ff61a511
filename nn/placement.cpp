#include "norma/nn/placement.h"

#include "norma/core/factory.h"
#include "norma/nn/point_norms.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/fused_norm.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

#include <algorithm>
#include <cmath>

namespace norma::nn {

namespace {

/// {encoder, decoder}: layers of the two stacks.
std::pair<std::int64_t, std::int64_t> depths(StackRole role, std::int64_t own, std::int64_t other) {
  return role == StackRole::decoder ? std::pair(other, own) : std::pair(own, other);
}

/// For placements with a norm for each sublayer.
class Norms : public Placement {
 public:
  explicit Norms(const PlacementContext& context) : norms_(add_norms("norm", context)) {}

 protected:
  Tensor norm(std::size_t i, const Tensor& x) { return (*norms_[i])(x); }
  const std::vector<Norm*>& norms() const { return norms_; }

 private:
  std::vector<Norm*> norms_;
};

/// For placements with a norm before and one behind each sublayer.
class NormPairs : public Norms {
 public:
  explicit NormPairs(const PlacementContext& context)
      : Norms(context), post_norms_(add_norms("post_norm", context)) {}

 protected:
  Tensor post_norm(std::size_t i, const Tensor& x) { return (*post_norms_[i])(x); }

 private:
  std::vector<Norm*> post_norms_;
};

class NoNorms final : public Placement {
  Tensor step(std::size_t /*i*/, const Tensor& x, const Sublayer& f) override { return x + f(x); }
};

class PostNorm final : public Norms {
 public:
  using Norms::Norms;

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return norm(i, x + f(x));
  }
};

class PreNorm final : public Norms {
 public:
  using Norms::Norms;

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return x + f(norm(i, x));
  }
};

class SandwichNorm final : public NormPairs {
 public:
  explicit SandwichNorm(const PlacementContext& context)
      : NormPairs(context), pb_relax_(context.pb_relax) {}

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return x + post_norm(i, relaxed(f(norm(i, relaxed(x)))));
  }
  /// Precision bottleneck relaxation: the largest magnitude becomes 8. The norm undoes the factor,
  /// which is a constant to the gradient, but for its share in eps.
  Tensor relaxed(const Tensor& x) const {
    if (!pb_relax_ || x.numel() == 0) return x;
    return x / clamp(amax(abs(x.detach())) / 8.0, 1e-30);
  }

  bool pb_relax_;
};

class OutputNorm final : public Norms {
 public:
  using Norms::Norms;

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return x + norm(i, f(x));
  }
};

class DeepNorm final : public Norms {
 public:
  explicit DeepNorm(const PlacementContext& context) : Norms(context) {
    const auto [encoder, decoder] = depths(context.role, context.num_layers, context.other_layers);
    alpha_ = deep_norm_constants(context.role, encoder, decoder).alpha;
  }

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return norm(i, alpha_ * x + f(x));
  }

  double alpha_;
};

/// The norm behind self-attention and the gain of the last residual; what else NormFormer has
/// stands inside of the sublayers.
class NormFormer final : public Norms {
 public:
  explicit NormFormer(const PlacementContext& context)
      : Norms(context),
        post_norm1_(add_norm("post_norm1", context)),
        last_(context.sublayers - 1),
        w_resid_(context.res_scale
                     ? &add_part("w_resid", std::make_unique<LayerScale>(context.d_model, 1.0))
                     : nullptr) {}

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    const Tensor output = f(norm(i, x));
    if (i == 0) return x + post_norm1_(output);
    return i == last_ && w_resid_ != nullptr ? (*w_resid_)(x) + output : x + output;
  }

  Norm& post_norm1_;
  std::size_t last_;
  Norm* w_resid_;
};

class ResiDual final : public Norms {
 public:
  explicit ResiDual(const PlacementContext& context)
      : Norms(context), accumulated_(context.accumulated) {}

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    const Tensor output = f(x);
    if (accumulated_) *accumulated_ = *accumulated_ + output;
    return norm(i, x + output);
  }

  std::shared_ptr<Tensor> accumulated_;
};

class LayerNormScaling final : public Norms {
 public:
  explicit LayerNormScaling(const PlacementContext& context)
      : Norms(context), scale_(1.0 / std::sqrt(static_cast<double>(context.layer + 1))) {}

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return x + f(norm(i, x) * scale_);
  }

  double scale_;
};

/// The residual of the feed-forward is taken behind the norm.
class HybridNorm final : public Placement {
 public:
  explicit HybridNorm(const PlacementContext& context)
      : last_(context.sublayers - 1),
        norm_(add_norm(fmt::format("norm{}", context.sublayers), context)) {}

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    const Tensor h = i == last_ ? norm_(x) : x;
    return h + f(h);
  }

  std::size_t last_;
  Norm& norm_;
};

class Keel final : public NormPairs {
 public:
  explicit Keel(const PlacementContext& context)
      : NormPairs(context),
        alpha_(static_cast<double>(context.num_layers) * static_cast<double>(context.sublayers)) {}

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return post_norm(i, alpha_ * x + f(norm(i, x)));
  }

  double alpha_;
};

/// All sublayers see the stream as it enters the block.
class Parallel final : public Norms {
 public:
  using Norms::Norms;
  Tensor forward(const Tensor& x, const std::vector<Sublayer>& sublayers) override {
    const TensorList inputs = normalized(x);
    Tensor y = x;
    for (std::size_t i = 0; i < sublayers.size(); ++i) y = y + sublayers[i](inputs[i]);
    return y;
  }

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return x + f(norm(i, x));
  }
  /// One pass over x where two norms have the same statistics.
  TensorList normalized(const Tensor& x) {
    const bool hooked = std::any_of(norms().begin(), norms().end(),
                                    [](const Norm* norm) { return norm->has_hooks(); });
    if (norms().size() == 2 && !hooked) {
      if (auto* first = dynamic_cast<LayerNorm*>(norms()[0])) {
        const auto& second = dynamic_cast<LayerNorm&>(*norms()[1]);
        const auto [a, b] = dual_layer_norm(
            x, {first->weight, first->bias, second.weight, second.bias}, {.eps = first->eps});
        return {a, b};
      }
      if (auto* first = dynamic_cast<RMSNorm*>(norms()[0])) {
        const auto& second = dynamic_cast<RMSNorm&>(*norms()[1]);
        const auto [a, b] =
            dual_rms_norm(x, {first->weight, {}, second.weight, {}}, {.eps = first->eps});
        return {a, b};
      }
    }
    TensorList inputs;
    for (std::size_t i = 0; i < norms().size(); ++i) inputs.push_back(norm(i, x));
    return inputs;
  }
};

/// The step of nGPT on the sphere, with its learned rate for each channel. Called as a norm it
/// normalizes what enters the block.
class SphereStep final : public Norm {
 public:
  explicit SphereStep(std::int64_t width) : scale_(1.0 / std::sqrt(static_cast<double>(width))) {
    // The effective rate 0.05 is stored as 1 / sqrt(width), so that Adam's steps fit it.
    detail::add_norm_parameter(*this, "alpha", alpha_, {width}, scale_);
  }
  Tensor forward(const Tensor& x) override { return normalize(x, -1, 1e-12); }
  Tensor step(const Tensor& x, const Tensor& output) {
    const Tensor a = forward(x);
    const Tensor rate = abs(alpha_) * (0.05 / scale_);
    return forward(a + rate * (forward(output) - a));
  }
  std::string type_name() const override { return "SphereStep"; }

 private:
  double scale_;
  Tensor alpha_;
};

/// Without norms of the chosen kind: unit vectors are the norm.
class NGpt final : public Placement {
 public:
  explicit NGpt(const PlacementContext& context) {
    for (std::size_t i = 0; i < context.sublayers; ++i)
      steps_.push_back(static_cast<SphereStep*>(
          &add_part(fmt::format("step{}", i + 1), std::make_unique<SphereStep>(context.d_model))));
  }

 private:
  Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) override {
    return steps_[i]->step(x, f(x));
  }

  std::vector<SphereStep*> steps_;
};

}  // namespace

Norm& Placement::add_part(const std::string& name, std::unique_ptr<Norm> part) {
  parts_.push_back({name, std::move(part)});
  return *parts_.back().part;
}

Norm& Placement::add_norm(const std::string& name, const PlacementContext& context) {
  return add_part(name, make_norm(context.norm, context.d_model, context.eps));
}

std::vector<Norm*> Placement::add_norms(const std::string& prefix,
                                        const PlacementContext& context) {
  std::vector<Norm*> norms;
  for (std::size_t i = 1; i <= context.sublayers; ++i)
    norms.push_back(&add_norm(fmt::format("{}{}", prefix, i), context));
  return norms;
}

Tensor Placement::forward(const Tensor& x, const std::vector<Sublayer>& sublayers) {
  Tensor h = x;
  for (std::size_t i = 0; i < sublayers.size(); ++i) h = step(i, h, sublayers[i]);
  return h;
}

std::unique_ptr<Placement> make_placement(NormPlacement placement,
                                          const PlacementContext& context) {
  switch (placement) {
    case NormPlacement::none:
      return std::make_unique<NoNorms>();
    case NormPlacement::post:
      return std::make_unique<PostNorm>(context);
    case NormPlacement::pre:
    case NormPlacement::sub_ln:
      return std::make_unique<PreNorm>(context);
    case NormPlacement::sandwich:
    case NormPlacement::peri:
      return std::make_unique<SandwichNorm>(context);
    case NormPlacement::olmo2:
      return std::make_unique<OutputNorm>(context);
    case NormPlacement::deep_norm:
      return std::make_unique<DeepNorm>(context);
    case NormPlacement::norm_former:
      return std::make_unique<NormFormer>(context);
    case NormPlacement::residual:
      return std::make_unique<ResiDual>(context);
    case NormPlacement::scaled:
      return std::make_unique<LayerNormScaling>(context);
    case NormPlacement::mix:
      if (context.layer <
          static_cast<std::int64_t>(context.mix_share * static_cast<double>(context.num_layers)))
        return std::make_unique<PostNorm>(context);
      return std::make_unique<PreNorm>(context);
    case NormPlacement::hybrid:
      return std::make_unique<HybridNorm>(context);
    case NormPlacement::hybrid_star:
      if (context.layer == 0) return std::make_unique<PreNorm>(context);
      return std::make_unique<HybridNorm>(context);
    case NormPlacement::keel:
      return std::make_unique<Keel>(context);
    case NormPlacement::parallel:
      return std::make_unique<Parallel>(context);
    case NormPlacement::ngpt:
      return std::make_unique<NGpt>(context);
  }
  throw ValueError("make_placement", "placement must be a NormPlacement; got " +
                                         std::to_string(static_cast<int>(placement)) + "; one of " +
                                         enum_choices<NormPlacement>());
}

bool needs_final_norm(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::none:
    case NormPlacement::post:
    case NormPlacement::deep_norm:
    case NormPlacement::keel:
    case NormPlacement::ngpt:
      return false;
    default:
      return true;
  }
}

bool needs_input_norm(NormPlacement placement) { return placement == NormPlacement::peri; }

SublayerNorms sublayer_norms(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::norm_former:
      return {.inner = true, .head_scale = true};
    case NormPlacement::sub_ln:
      return {.inner = true, .heads = true};
    case NormPlacement::hybrid:
    case NormPlacement::hybrid_star:
      return {.qkv = true};
    case NormPlacement::ngpt:
      return {.unit = true};
    default:
      return {};
  }
}

DeepNormConstants deep_norm_constants(StackRole role, std::int64_t encoder_layers,
                                      std::int64_t decoder_layers) {
  const auto n = static_cast<double>(encoder_layers), m = static_cast<double>(decoder_layers);
  check<ValueError>(encoder_layers > 0 && (role == StackRole::alone || decoder_layers > 0),
                    "deep_norm_constants", "the stacks must have layers; got {} and {}",
                    encoder_layers, decoder_layers);
  switch (role) {
    case StackRole::encoder: {
      const double depth = std::pow(n * n * n * n * m, 1.0 / 16.0);
      return {0.81 * depth, 0.87 / depth};
    }
    case StackRole::decoder:
      return {std::pow(3.0 * m, 0.25), std::pow(12.0 * m, -0.25)};
    case StackRole::alone:
      break;
  }
  return {std::pow(2.0 * n, 0.25), std::pow(8.0 * n, -0.25)};
}

double sub_ln_gain(StackRole role, std::int64_t encoder_layers, std::int64_t decoder_layers) {
  const auto n = static_cast<double>(encoder_layers), m = static_cast<double>(decoder_layers);
  check<ValueError>(encoder_layers > 0 && (role == StackRole::alone || decoder_layers > 0),
                    "sub_ln_gain", "the stacks must have layers; got {} and {}", encoder_layers,
                    decoder_layers);
  switch (role) {
    case StackRole::encoder:
      return std::sqrt(std::log(3.0 * m) * std::log(2.0 * n) / 3.0);
    case StackRole::decoder:
      return std::sqrt(std::log(3.0 * m));
    case StackRole::alone:
      break;
  }
  return std::sqrt(std::log(2.0 * n));
}

double residual_gain(NormPlacement placement, std::int64_t num_layers, StackRole role,
                     std::int64_t other_layers) {
  const auto [encoder, decoder] = depths(role, num_layers, other_layers);
  switch (placement) {
    case NormPlacement::deep_norm:
      return deep_norm_constants(role, encoder, decoder).beta;
    case NormPlacement::sub_ln:
      return sub_ln_gain(role, encoder, decoder);
    default:
      return 1.0;
  }
}

}  // namespace norma::nn
