// How far a result may lie from its definition: the one rule from which every tolerance of the op
// table follows.
//
// A result of size |e| in a dtype with unit roundoff u (half its epsilon; U that of the accumulate
// type) may differ from the definition in float64 by
//
//     u |e|  +  6 sigma,    sigma^2 = (S + |e|)^2 (stored u^2 + (1 + m / 2) U^2) / 3.
//
// The first term rounds the result. The second is six standard deviations of what the roundings
// before it do, each uniform in +-1 unit roundoff:
//
//  - S is the size of the terms, measured: how far the result moves (root mean square) per relative
//    error of every input and of every value that the definition computes on its way. Where terms
//    cancel, S is larger than |e|; a mean of 1e4 beside a spread of 1 gives S = 1e4.
//  - m is the longest chain of additions. The sum of n terms walks randomly, so the roundings of a
//    chain have m / 2 times the variance of one. A long sum has at least 32 chains (ops/cpu/row.h,
//    rows_per_part of ops/cpu/norm_row.h, a warp on a GPU): m = n / 32. Up to 64 terms may have
//    one, and all of them where sanitizers keep loops from being vectorized.
//  - `stored` counts the values between input and result that an operation rounds to the dtype
//    because it is defined so (Llama's RMSNorm) or runs as several kernels. A row of the table says
//    how many, and why. No other number can be set.
//
// Below the normal numbers of a dtype, half the distance of the smallest is added.
#pragma once

#include "support/compare.h"

#include <functional>
#include <vector>

namespace norma::test {

/// The terms of the longest sum behind `result`, from the shapes of all tensors of a call: a sum
/// runs along dimensions of one of them.
std::int64_t longest_sum(const Tensor& result, const TensorList& tensors);

/// S for each element of each result: `results` runs twice or more on `inputs` (float64, CPU) with
/// relative errors of +-2^-30 in them and in what elementary kernels compute.
std::vector<std::vector<double>> sizes_of_terms(
    const std::function<TensorList(const TensorList& inputs)>& results, const TensorList& inputs,
    const TensorList& expected);

/// The rule above. `sizes` has an element for each of `expected`.
Comparison within_rounding(const Tensor& actual, const Tensor& expected,
                           const std::vector<double>& sizes, std::int64_t terms, int stored);

}  // namespace norma::test
