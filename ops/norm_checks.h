// What the front doors of the norms check, and how they see weight and bias. For ops/*.cpp only.
#pragma once

#include "norma/ops/norm.h"
#include "norma/ops/row_norm.h"

namespace norma::detail {

/// Machine epsilon of the type of the statistics.
double default_eps(DType dtype);
/// The last `count` dimensions, as negative numbers.
Shape last_dims(std::int64_t count);
Tensor contiguous_or_undefined(const Tensor& tensor);

/// Parameters of a norm of rows of `width`.
RowNormParams row_norm_params(bool centred, std::int64_t width, const NormOptions& options,
                              double eps);

/// Defined and floating-point.
void check_norm_input(const char* name, const Tensor& input);
/// eps >= 0.
void check_eps(const char* name, double eps);
/// The input's last dimensions are normalized_shape.
void check_normalized(const char* name, const Tensor& input, const Shape& normalized_shape);
/// The dtype and device of the input.
void check_like_input(const char* name, const char* what, const Tensor& parameter,
                      const Tensor& input);
/// `parameter`, where defined, has this shape, and the input's dtype and device.
void check_parameter(const char* name, const char* what, const Tensor& parameter,
                     const Tensor& input, const Shape& shape);

/// Weight and bias over the last dimensions, possibly with leading dimensions of the input (head of
/// norm.h): checks them, fills params.weight_repeat and returns the layout.
RowLayout gain_layout(const char* name, const Tensor& input, const Shape& normalized_shape,
                      const Tensor& weight, const Tensor& bias, RowNormParams& params);

}  // namespace norma::detail
