// A norm of one's own, checked and then used in every placement.
#include <norma/norma.h>

#include <iostream>

using namespace norma;

namespace {

/// x / (mean |x| + eps) * weight: RMSNorm with the mean of magnitudes, which needs no square.
struct L1Norm : nn::Norm {
  Tensor weight;
  double eps;

  L1Norm(std::int64_t width, double epsilon) : weight(ones({width})), eps(epsilon) {
    register_parameter("weight", weight, nn::ParameterKind::norm);
  }
  Tensor forward(const Tensor& x) override { return x * weight / (x.abs().mean({-1}, true) + eps); }
};

const nn::NormKind l1_norm = nn::register_norm([](std::int64_t width, std::optional<double> eps) {
  return std::make_unique<L1Norm>(width, eps.value_or(1e-6));
});

bool gradients_are_right() {
  L1Norm norm(6, 1e-6);
  norm.to(float64);
  const Tensor x = randn({3, 6}, {.dtype = float64, .requires_grad = true});
  return bool(gradcheck([&](const TensorList& in) { return norm(in[0]); }, {x, norm.weight}));
}

/// How far 30 steps bring the loss of a small encoder down.
double loss_ratio(nn::NormPlacement placement) {
  manual_seed(1);
  nn::TransformerEncoder encoder({.d_model = 16,
                                  .num_heads = 2,
                                  .num_layers = 2,
                                  .norm = l1_norm,
                                  .placement = placement,
                                  .dropout = 0.0});
  const Tensor x = randn({4, 5, 16}), target = 0.2 * randn({4, 5, 16});
  optim::AdamW optimizer(optim::weight_decay_groups(encoder, 0.01), {.lr = 1e-2});
  double first = 0.0, last = 0.0;
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(encoder(x), target);
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item();
  }
  return last / first;
}

}  // namespace

int main() {
  manual_seed(1);
  bool right = gradients_are_right();
  std::cout << "gradients: " << (right ? "right" : "wrong") << '\n';
  for (const auto& [placement, name] : nn::EnumNames<nn::NormPlacement>::values) {
    const double ratio = loss_ratio(placement);
    std::cout << name << ": loss after 30 steps / at the start: " << ratio << '\n';
    right = right && ratio < 0.95;
  }
  return right ? 0 : 1;
}
