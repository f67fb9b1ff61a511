// Placements: where a Transformer block has its norms. Each is one small class whose `forward` is
// the formula of its paper.
//
// To add one: a value of NormPlacement with its name, a class in placement.cpp and its line in
// make_placement. TransformerBlock needs no change: it hands over its two sublayers and registers
// the norms that the placement made.
#pragma once

#include "norma/nn/norm.h"

#include <functional>
#include <string>
#include <vector>

namespace norma::nn {

/// Where the norms of a block stand. An open set.
enum class NormPlacement {
  none,  ///< x + f(x)
  post,  ///< norm(x + f(x)): Vaswani et al. 2017
  pre,   ///< x + f(norm(x)), and a final norm after the last block: Xiong et al. 2020
};

template <>
struct EnumNames<NormPlacement> {
  static constexpr const char* type = "NormPlacement";
  static constexpr auto values = std::to_array<std::pair<NormPlacement, std::string_view>>(
      {{NormPlacement::none, "none"}, {NormPlacement::post, "post"}, {NormPlacement::pre, "pre"}});
};

/// What a placement may depend on.
struct PlacementContext {
  NormKind norm = NormKind::layer_norm;
  std::int64_t d_model = 0;
  std::optional<double> eps = std::nullopt;
  std::int64_t layer = 0;       ///< index of the block in its stack
  std::int64_t num_layers = 1;  ///< of the stack
};

/// A sublayer with its dropout: what is added to the residual stream.
using Sublayer = std::function<Tensor(const Tensor&)>;

/// How the residual stream passes the two sublayers of a block.
class Placement {
 public:
  struct NamedNorm {
    std::string name;
    AnyNorm norm;
  };

  virtual ~Placement() = default;
  virtual Tensor forward(const Tensor& x, const Sublayer& attention,
                         const Sublayer& feed_forward) = 0;
  /// The norms it uses, under the names they have in the block ("norm1").
  const std::vector<NamedNorm>& norms() const { return norms_; }

 protected:
  Norm& add_norm(const std::string& name, const PlacementContext& context);

 private:
  std::vector<NamedNorm> norms_;
};

std::unique_ptr<Placement> make_placement(NormPlacement placement, const PlacementContext& context);
/// Whether a stack of such blocks leaves an unnormalized stream and so needs a norm at its end.
bool needs_final_norm(NormPlacement placement);

}  // namespace norma::nn
