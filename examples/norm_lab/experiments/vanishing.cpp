// R5, R8: a network in which gradients do vanish, and two remedies.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/relu_stack.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kDepth = 30, kWidth = 512;

/// x + ReLU(Linear(RMSNorm(x))).
struct ResidualLayer : nn::Layer<ResidualLayer> {
  nn::RMSNorm norm{kWidth};
  nn::Linear linear{kWidth, kWidth};
  nn::ReLU relu;
  ResidualLayer() {
    register_module("norm", norm);
    register_module("linear", linear);
    register_module("relu", relu);
  }
  Tensor forward(const Tensor& x) { return x + relu(linear(norm(x))); }
};

std::vector<double> weight_gradients(nn::Sequential& net, std::uint64_t seed) {
  manual_seed(seed + 1);
  const nn::Monitor monitor(net);
  net(randn({32, kWidth})).sum().backward();
  std::vector<double> norms;
  for (const nn::ParameterStats& stats : monitor.parameters())
    if (stats.kind == nn::ParameterKind::matrix) norms.push_back(stats.gradient_norm);
  return norms;
}

}  // namespace

Result vanishing(const Settings& settings) {
  manual_seed(settings.seed);
  const auto plain = relu_stack(kDepth, kWidth, true);
  const auto normed = relu_stack(kDepth, kWidth, true, StackNorm::before_relu);
  nn::Sequential residual;
  for (std::int64_t layer = 0; layer < kDepth; ++layer) residual.emplace<ResidualLayer>();
  const auto none = weight_gradients(*plain, settings.seed);
  const auto norm = weight_gradients(*normed, settings.seed);
  const auto pre = weight_gradients(residual, settings.seed);

  const std::vector<double> layers = counted(kDepth);
  return {.claim =
              "Thirty layers without norm or residual lose the gradient; a residual path with "
              "pre-norm keeps it.",
          .source = "R5, R8",
          .setting =
              "30 × [Linear(512, 512) with bias, ReLU], loss = output.sum(), batch 32 of N(0, 1)",
          .rows = {{"no norm: gradient norm of layer 1", within_factor(1e-8, 100), none.front()},
                   {"no norm: of layer 30", within_factor(227, 1.5), none.back()},
                   {"no norm: last / first", at_least(1e8), none.back() / none.front()},
                   {"pre-norm with residual: largest ratio of last and first", at_most(100),
                    std::max(pre.back() / pre.front(), pre.front() / pre.back())},
                   {"RMSNorm alone, no residual: last / first", at_most(1e8),
                    norm.back() / norm.front(), Tests::reference}},
          .finding =
              "This is the picture that the articles draw with eight layers: it takes thirty. "
              "Each layer is then a straight line on a logarithmic scale.",
          .charts = {{.title = "Gradients of the weights in 30 layers",
                      .x_label = "layer",
                      .y_label = "gradient norm",
                      .log_y = true,
                      .series = {{"no norm", layers, none},
                                 {"RMSNorm", layers, norm},
                                 {"pre-norm, residual", layers, pre}}}}};
}

}  // namespace norm_lab
