// Initializers: fill a tensor in place, outside of the tape, from the default generator of its
// device. Names, arguments and semantics of torch.nn.init; each returns its argument.
//
// "fan_in" and "fan_out" of a weight [out, in, *kernel] are in * numel(kernel) and out *
// numel(kernel).
#pragma once

#include "norma/core/tensor.h"

#include <string_view>

namespace norma::nn::init {

/// Which fan keeps its variance: of the activations (fan_in) or of the gradients (fan_out).
enum class FanMode { fan_in, fan_out };
/// The non-linearity that follows the layer.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// Factor that keeps the standard deviation through a non-linearity: 1 for linear and sigmoid, 5/3
/// for tanh, sqrt(2) for relu, sqrt(2 / (1 + param^2)) for leaky_relu (param: the negative slope),
/// 3/4 for selu.
double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);

/// U(a, b).
const Tensor& uniform_(const Tensor& tensor, double a = 0.0, double b = 1.0);
/// N(mean, std^2).
const Tensor& normal_(const Tensor& tensor, double mean = 0.0, double std = 1.0);
const Tensor& constant_(const Tensor& tensor, double value);
const Tensor& zeros_(const Tensor& tensor);
const Tensor& ones_(const Tensor& tensor);
/// N(mean, std^2) restricted to [a, b] (absolute bounds), by inversion of the distribution
/// function.
const Tensor& trunc_normal_(const Tensor& tensor, double mean = 0.0, double std = 1.0,
                            double a = -2.0, double b = 2.0);
/// U(-l, l), l = gain * sqrt(6 / (fan_in + fan_out)). Glorot and Bengio 2010.
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1.0);
/// N(0, gain^2 * 2 / (fan_in + fan_out)).
const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1.0);
/// U(-l, l), l = calculate_gain(nonlinearity, a) * sqrt(3 / fan). He et al. 2015.
const Tensor& kaiming_uniform_(const Tensor& tensor, double a = 0.0, FanMode mode = FanMode::fan_in,
                               Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
/// N(0, calculate_gain(nonlinearity, a)^2 / fan).
const Tensor& kaiming_normal_(const Tensor& tensor, double a = 0.0, FanMode mode = FanMode::fan_in,
                              Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
/// A (semi-)orthogonal matrix times gain: orthonormal rows or columns, whichever are fewer;
/// trailing dimensions are flattened. Saxe et al. 2013. On the CPU in float64, whatever the tensor.
const Tensor& orthogonal_(const Tensor& tensor, double gain = 1.0);
/// Ones on the diagonal of a matrix, else zeros: a linear layer that keeps its input as far as it
/// can.
const Tensor& eye_(const Tensor& tensor);
/// The same for a convolution [out, in, *kernel] of one to three kernel dimensions: a one in the
/// middle of the kernels (i, i), in each of `groups` groups of output channels, else zeros.
const Tensor& dirac_(const Tensor& tensor, std::int64_t groups = 1);
/// N(0, std^2) in a matrix whose columns have ceil(sparsity * rows) zeros at random places. Martens
/// 2010.
const Tensor& sparse_(const Tensor& tensor, double sparsity, double std = 0.01);

}  // namespace norma::nn::init
