#include "norma/nn/placement.h"

#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/fused_norm.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

#include <cmath>

namespace norma::nn {

namespace {

/// For placements with a norm for each sublayer.
class TwoNorms : public Placement {
 public:
  explicit TwoNorms(const PlacementContext& context)
      : norm1_(add_norm("norm1", context)), norm2_(add_norm("norm2", context)) {}

 protected:
  Norm& norm1_;
  Norm& norm2_;
};

/// For placements with a norm before and one behind each sublayer.
class FourNorms : public TwoNorms {
 public:
  explicit FourNorms(const PlacementContext& context)
      : TwoNorms(context),
        post_norm1_(add_norm("post_norm1", context)),
        post_norm2_(add_norm("post_norm2", context)) {}

 protected:
  Norm& post_norm1_;
  Norm& post_norm2_;
};

class NoNorms final : public Placement {
 public:
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + attention(x);
    return h + feed_forward(h);
  }
};

class PostNorm final : public TwoNorms {
 public:
  using TwoNorms::TwoNorms;
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = norm1_(x + attention(x));
    return norm2_(h + feed_forward(h));
  }
};

class PreNorm final : public TwoNorms {
 public:
  using TwoNorms::TwoNorms;
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + attention(norm1_(x));
    return h + feed_forward(norm2_(h));
  }
};

class SandwichNorm final : public FourNorms {
 public:
  explicit SandwichNorm(const PlacementContext& context)
      : FourNorms(context), pb_relax_(context.pb_relax) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + post_norm1_(relaxed(attention(norm1_(relaxed(x)))));
    return h + post_norm2_(relaxed(feed_forward(norm2_(relaxed(h)))));
  }

 private:
  /// Precision bottleneck relaxation: the largest magnitude becomes 8. The norm undoes the factor,
  /// which is a constant to the gradient, but for its share in eps.
  Tensor relaxed(const Tensor& x) const {
    if (!pb_relax_ || x.numel() == 0) return x;
    return x / clamp(amax(abs(x.detach())) / 8.0, 1e-30);
  }

  bool pb_relax_;
};

class OutputNorm final : public TwoNorms {
 public:
  using TwoNorms::TwoNorms;
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + norm1_(attention(x));
    return h + norm2_(feed_forward(h));
  }
};

class DeepNorm final : public TwoNorms {
 public:
  explicit DeepNorm(const PlacementContext& context)
      : TwoNorms(context),
        alpha_(deep_norm_constants(StackRole::alone, context.num_layers).alpha) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = norm1_(alpha_ * x + attention(x));
    return norm2_(alpha_ * h + feed_forward(h));
  }

 private:
  double alpha_;
};

/// The norm behind attention; the others of NormFormer stand inside of the sublayers.
class NormFormer final : public TwoNorms {
 public:
  explicit NormFormer(const PlacementContext& context)
      : TwoNorms(context), post_norm1_(add_norm("post_norm1", context)) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + post_norm1_(attention(norm1_(x)));
    return h + feed_forward(norm2_(h));
  }

 private:
  Norm& post_norm1_;
};

class ResiDual final : public TwoNorms {
 public:
  explicit ResiDual(const PlacementContext& context)
      : TwoNorms(context), accumulated_(context.accumulated) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = norm1_(x + kept(attention(x)));
    return norm2_(h + kept(feed_forward(h)));
  }

 private:
  const Tensor& kept(const Tensor& output) {
    if (accumulated_) *accumulated_ = *accumulated_ + output;
    return output;
  }

  std::shared_ptr<Tensor> accumulated_;
};

class LayerNormScaling final : public TwoNorms {
 public:
  explicit LayerNormScaling(const PlacementContext& context)
      : TwoNorms(context), scale_(1.0 / std::sqrt(static_cast<double>(context.layer + 1))) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + attention(norm1_(x) * scale_);
    return h + feed_forward(norm2_(h) * scale_);
  }

 private:
  double scale_;
};

/// The residual of the feed-forward is taken behind the norm.
class HybridNorm final : public Placement {
 public:
  explicit HybridNorm(const PlacementContext& context) : norm2_(add_norm("norm2", context)) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = norm2_(x + attention(x));
    return h + feed_forward(h);
  }

 private:
  Norm& norm2_;
};

class Keel final : public FourNorms {
 public:
  explicit Keel(const PlacementContext& context)
      : FourNorms(context), alpha_(2.0 * static_cast<double>(context.num_layers)) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = post_norm1_(alpha_ * x + attention(norm1_(x)));
    return post_norm2_(alpha_ * h + feed_forward(norm2_(h)));
  }

 private:
  double alpha_;
};

class Parallel final : public TwoNorms {
 public:
  using TwoNorms::TwoNorms;
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const auto [a, b] = both(x);
    return x + attention(a) + feed_forward(b);
  }

 private:
  /// One pass over x where both norms have the same statistics.
  std::pair<Tensor, Tensor> both(const Tensor& x) {
    const bool hooked = norm1_.has_hooks() || norm2_.has_hooks();
    if (auto* first = dynamic_cast<LayerNorm*>(&norm1_); first != nullptr && !hooked) {
      const auto& second = dynamic_cast<LayerNorm&>(norm2_);
      return dual_layer_norm(x, {first->weight, first->bias, second.weight, second.bias},
                             {.eps = first->eps});
    }
    if (auto* first = dynamic_cast<RMSNorm*>(&norm1_); first != nullptr && !hooked) {
      const auto& second = dynamic_cast<RMSNorm&>(norm2_);
      return dual_rms_norm(x, {first->weight, {}, second.weight, {}}, {.eps = first->eps});
    }
    return {norm1_(x), norm2_(x)};
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
  explicit NGpt(const PlacementContext& context)
      : step1_(add_step("step1", context)), step2_(add_step("step2", context)) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = step1_.step(x, attention(x));
    return step2_.step(h, feed_forward(h));
  }

 private:
  SphereStep& add_step(const std::string& name, const PlacementContext& context) {
    return static_cast<SphereStep&>(add_part(name, std::make_unique<SphereStep>(context.d_model)));
  }

  SphereStep& step1_;
  SphereStep& step2_;
};

}  // namespace

Norm& Placement::add_part(const std::string& name, std::unique_ptr<Norm> part) {
  parts_.push_back({name, std::move(part)});
  return *parts_.back().part;
}

Norm& Placement::add_norm(const std::string& name, const PlacementContext& context) {
  return add_part(name, make_norm(context.norm, context.d_model, context.eps));
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
      if (context.layer < context.num_layers / 4) return std::make_unique<PostNorm>(context);
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

double residual_gain(NormPlacement placement, std::int64_t num_layers) {
  switch (placement) {
    case NormPlacement::deep_norm:
      return deep_norm_constants(StackRole::alone, num_layers).beta;
    case NormPlacement::sub_ln:
      return sub_ln_gain(StackRole::alone, num_layers);
    default:
      return 1.0;
  }
}

}  // namespace norma::nn
