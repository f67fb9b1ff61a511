#include "norma/nn/point_norms.h"

#include "norma/ops/point_norm.h"

namespace norma::nn {

using detail::add_norm_parameter;
using detail::check_width;

DyT::DyT(std::int64_t width, double alpha_init, bool with_bias) {
  check_width("DyT", width);
  add_norm_parameter(*this, "alpha", alpha, {1}, alpha_init);
  add_norm_parameter(*this, "weight", weight, {width}, 1.0);
  if (with_bias) add_norm_parameter(*this, "bias", bias, {width}, 0.0);
}
Tensor DyT::forward(const Tensor& x) { return dynamic_tanh(x, alpha, weight, bias); }

Derf::Derf(std::int64_t width, double alpha_init, bool with_bias) {
  check_width("Derf", width);
  add_norm_parameter(*this, "alpha", alpha, {1}, alpha_init);
  add_norm_parameter(*this, "shift", shift, {1}, 0.0);
  add_norm_parameter(*this, "weight", weight, {width}, 1.0);
  if (with_bias) add_norm_parameter(*this, "bias", bias, {width}, 0.0);
}
Tensor Derf::forward(const Tensor& x) { return dynamic_erf(x, alpha, shift, weight, bias); }

LayerScale::LayerScale(std::int64_t width, double init_value) {
  check_width("LayerScale", width);
  add_norm_parameter(*this, "gamma", gamma, {width}, init_value);
}
Tensor LayerScale::forward(const Tensor& x) { return layer_scale(x, gamma); }

HeadScale::HeadScale(std::int64_t heads) {
  check_width("HeadScale", heads);
  add_norm_parameter(*this, "gamma", gamma, {heads}, 1.0);
}
Tensor HeadScale::forward(const Tensor& x) { return head_scale(x, gamma); }

}  // namespace norma::nn
