// Losses. Names, options and semantics as in torch.nn.functional.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// What becomes of the losses of the elements: all of them, their (weighted) mean, or their sum.
enum class Reduction : std::uint8_t { none, mean, sum };

struct CrossEntropyOptions {
  Tensor weight = {};  ///< [classes] factor of each class, dtype of the input; without gradient
  std::int64_t ignore_index = -100;  ///< targets with this value give no loss and no gradient
  double label_smoothing = 0.0;  ///< in [0, 1]: this share of the target is spread over all classes
  Reduction reduction = Reduction::mean;
};

/// Cross-entropy of logits against class indices, fused: keeps the logits and one log-sum-exp a
/// row.
///
/// input [N, C], [C] or [N, C, d1, …]; target int64 without the class dimension. With w the class
/// weights (1 without) and e the smoothing, a row with target t loses
///     (1 - e) w_t (lse - x_t) + e / C sum_c w_c (lse - x_c).
/// The mean is the sum over rows divided by the sum of w_t over the rows that are not ignored: NaN
/// where all are, as in PyTorch. 16-bit logits are summed in float32; the result has the input's
/// dtype. Throws ShapeError, DTypeError, ValueError (smoothing), and IndexError naming a class
/// index out of [0, C).
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight = {};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};

/// -w_t input[t]: cross-entropy of log-probabilities. Shapes, mean and errors as cross_entropy.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options = {});

struct BinaryCrossEntropyOptions {
  Tensor weight = {};      ///< factor of each element, broadcast
  Tensor pos_weight = {};  ///< factor of the positive class, broadcast
  Reduction reduction = Reduction::mean;
};

/// -(p y log s(x) + (1 - y) log(1 - s(x))) with s the sigmoid and p the pos_weight, without
/// overflow for any x. `target` has the input's shape (ShapeError) and a floating-point dtype;
/// values between 0 and 1 are soft labels.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options = {});

struct MseLossOptions {
  Reduction reduction = Reduction::mean;
};

/// (input - target)^2. Shapes must be equal: PyTorch broadcasts with a warning, here it is a
/// ShapeError.
Tensor mse_loss(const Tensor& input, const Tensor& target, const MseLossOptions& options = {});

namespace composite {
/// The same by log_softmax, gather and sums.
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options = {});
}  // namespace composite

}  // namespace norma
