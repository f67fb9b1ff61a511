#include "norma/nn/placement.h"

#include "norma/ops/elementwise.h"

namespace norma::nn {

namespace {

class NoNorms final : public Placement {
 public:
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + attention(x);
    return h + feed_forward(h);
  }
};

class PostNorm final : public Placement {
 public:
  explicit PostNorm(const PlacementContext& context)
      : norm1_(add_norm("norm1", context)), norm2_(add_norm("norm2", context)) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = norm1_(x + attention(x));
    return norm2_(h + feed_forward(h));
  }

 private:
  Norm& norm1_;
  Norm& norm2_;
};

class PreNorm final : public Placement {
 public:
  explicit PreNorm(const PlacementContext& context)
      : norm1_(add_norm("norm1", context)), norm2_(add_norm("norm2", context)) {}
  Tensor forward(const Tensor& x, const Sublayer& attention,
                 const Sublayer& feed_forward) override {
    const Tensor h = x + attention(norm1_(x));
    return h + feed_forward(norm2_(h));
  }

 private:
  Norm& norm1_;
  Norm& norm2_;
};

}  // namespace

Norm& Placement::add_norm(const std::string& name, const PlacementContext& context) {
  norms_.push_back({name, make_norm(context.norm, context.d_model, context.eps)});
  return *norms_.back().norm;
}

std::unique_ptr<Placement> make_placement(NormPlacement placement,
                                          const PlacementContext& context) {
  switch (placement) {
    case NormPlacement::none:
      return std::make_unique<NoNorms>();
    case NormPlacement::post:
      return std::make_unique<PostNorm>(context);
    case NormPlacement::pre:
      return std::make_unique<PreNorm>(context);
  }
  throw ValueError("make_placement", "placement must be a NormPlacement; got " +
                                         std::to_string(static_cast<int>(placement)) + "; one of " +
                                         enum_choices<NormPlacement>());
}

bool needs_final_norm(NormPlacement placement) { return placement == NormPlacement::pre; }

}  // namespace norma::nn
