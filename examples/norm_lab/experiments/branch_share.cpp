// L2, R35: what one more layer adds to the stream.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/reference_model.h"
#include "norma/core/random.h"

#include <cmath>

#include <map>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kLayers = 24;

/// rms of what the feed-forward adds over rms of the stream it is added to, by layer.
std::vector<double> shares(nn::NormPlacement placement, std::uint64_t seed) {
  manual_seed(seed);
  ReferenceModel model(placement, kLayers);
  const ReferenceBatch batch;
  nn::Monitor monitor(model);
  model(batch.inputs);
  std::map<std::string, nn::ActivationStats> by_name;
  for (const nn::ActivationStats& stats : monitor.activations()) by_name[stats.name] = stats;
  // The stream enters the norm before the sublayer, or, where there is none, the sublayer itself.
  const bool pre = placement == nn::NormPlacement::pre || placement == nn::NormPlacement::scaled;
  std::vector<double> result;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string mlp = part_of_layer(layer, "mlp");
    const std::string stream = pre ? part_of_layer(layer, "norm2") : mlp;
    result.push_back(by_name.at(mlp).rms / by_name.at(stream).input_rms);
  }
  return result;
}

}  // namespace

Result branch_share(const Settings& settings) {
  using P = nn::NormPlacement;
  const auto pre = shares(P::pre, settings.seed), post = shares(P::post, settings.seed),
             deep = shares(P::deep_norm, settings.seed), scaled = shares(P::scaled, settings.seed);
  const std::vector<double> layers = counted(kLayers);
  const double exponent = fit_power(layers, pre).slope;
  std::vector<double> theory;
  for (const double layer : layers) theory.push_back(pre[0] / std::sqrt(layer));
  return {
      .claim = "In pre-norm the share of a layer's branch in the stream falls as 1/L.",
      .source = "R35, L2; the third article",
      .setting =
          "24 layers of width 64, uniform attention, Xavier's initial values; share of the "
          "feed-forward",
      .rows = {{"pre: exponent of the share of the variance", near(-1, 0.25), 2 * exponent},
               {"pre: exponent of the share of the amplitude", near(-1, 0.25), exponent},
               {"pre: amplitude, layer 1, as simulated", about(0.565, 0.15), pre.front(),
                Tests::reference},
               {"pre: amplitude, layer 24, as simulated", about(0.109, 0.25), pre.back(),
                Tests::reference},
               {"post: the same at layer 24", between(0.45, 0.65), post.back(), Tests::reference},
               {"deep_norm: the same at layer 24", between(0.03, 0.05), deep.back(),
                Tests::reference},
               {"scaled: the same at layer 24", within_factor(0.06, 1.5), scaled.back(),
                Tests::reference}},
      .depends_on = "what the share is of: of the variance 1/l, of the amplitude |f| / |x| 1/√l",
      .finding =
          "Post-norm and DeepNorm do not dilute their later layers; DeepNorm starts with "
          "small branches everywhere instead.",
      .charts = {{.title = "Share of the feed-forward in the stream",
                  .x_label = "layer",
                  .y_label = "|f(x)| / |x|",
                  .log_x = true,
                  .log_y = true,
                  .series = {{"pre", layers, pre},
                             {"post", layers, post},
                             {"deep_norm", layers, deep},
                             {"scaled", layers, scaled},
                             {"pre as 1/√l", layers, theory, true}}}}};
}

}  // namespace norm_lab
