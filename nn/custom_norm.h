// Norms from outside of the library in every configuration that takes a NormKind.
#pragma once

#include "norma/nn/norm.h"

#include <functional>

namespace norma::nn {

/// Makes a norm over a last dimension of width `dim`; `eps` is absent where the configuration
/// leaves it to the norm.
using NormFactory = std::function<AnyNorm(std::int64_t dim, std::optional<double> eps)>;

/// A new kind, which make_norm makes by `factory`: placements, attention and models then take it as
/// they take their own. It has no name for configuration files. Register before several threads
/// make models. Throws ValueError for an empty factory.
///
///     const nn::NormKind mine = nn::register_norm([](std::int64_t dim, std::optional<double> eps)
///     {
///       return std::make_unique<MyNorm>(dim, eps.value_or(1e-6));
///     });
NormKind register_norm(NormFactory factory);

}  // namespace norma::nn
