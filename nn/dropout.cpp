#include "norma/nn/dropout.h"

#include "norma/ops/dropout.h"

namespace norma::nn {

Dropout::Dropout(double probability) : p(probability) {
  check<ValueError>(p >= 0.0 && p <= 1.0, "Dropout", "p must be in [0, 1]; got {}", p);
}

Tensor Dropout::forward(const Tensor& x) {
  return p > 0.0 && is_training() ? dropout(x, p, true) : x;
}

std::string Dropout::extra_repr() const { return fmt::format("p={}", p); }

}  // namespace norma::nn
