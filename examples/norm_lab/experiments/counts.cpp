// R13, R56: how many parameters, how many norms.
#include "norm_lab/experiments/list.h"
#include "norma/nn/transformer.h"

namespace norm_lab {

using namespace norma;

namespace {

double parameters(nn::NormKind kind, std::int64_t width) {
  return static_cast<double>(nn::make_norm(kind, width)->num_parameters());
}

/// Norms of a MiniMind of eight layers; widths do not count.
double norms(nn::QKNorm qk) {
  nn::TransformerEncoder model({.d_model = 8,
                                .num_heads = 2,
                                .num_layers = 8,
                                .activation = nn::Activation::swiglu,
                                .norm = nn::NormKind::rms_norm,
                                .qk_form = qk});
  double count = 0;
  for (nn::Module* module : model.modules()) count += dynamic_cast<nn::RMSNorm*>(module) != nullptr;
  return count;
}

}  // namespace

Result counts(const Settings&) {
  const std::vector<double> widths = {256, 512, 1024, 2048, 4096};
  std::vector<double> layer_norm, rms_norm;
  for (const double width : widths) {
    layer_norm.push_back(parameters(nn::NormKind::layer_norm, static_cast<std::int64_t>(width)));
    rms_norm.push_back(parameters(nn::NormKind::rms_norm, static_cast<std::int64_t>(width)));
  }
  return {
      .claim =
          "LayerNorm has twice the parameters of RMSNorm: 8192 and 4096 at width 4096, 1024 "
          "and 512 at 512. MiniMind v2 has 17 RMSNorms.",
      .source = "R13, R56; the first, second and third article",
      .setting = "layers with their defaults; eight layers, pre-norm and a final norm",
      .rows = {{"LayerNorm, width 4096", near(8192, 0), layer_norm.back()},
               {"RMSNorm, width 4096", near(4096, 0), rms_norm.back()},
               {"LayerNorm, width 512", near(1024, 0), layer_norm[1]},
               {"RMSNorm, width 512", near(512, 0), rms_norm[1]},
               {"RMSNorms of 8 pre-norm layers", near(17, 0), norms(nn::QKNorm::none)},
               {"with QK-norm, as in MiniMind 3", near(33, 0), norms(nn::QKNorm::qwen3),
                Tests::reference}},
      .finding =
          "The quiz of the notes says 16: it forgets the final norm, without which a "
          "pre-norm stack hands on a stream of any size.",
      .charts = {{.title = "Parameters of one norm",
                  .x_label = "width",
                  .y_label = "parameters",
                  .series = {{"LayerNorm", widths, layer_norm}, {"RMSNorm", widths, rms_norm}}}}};
}

}  // namespace norm_lab
