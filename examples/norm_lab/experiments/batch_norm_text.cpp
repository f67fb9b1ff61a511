// L9, R47: BatchNorm on texts of different length.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/nn/classifier.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/loss.h"
#include "norma/ops/reduction.h"
#include "norma/optim/adamw.h"
#include "norma/optim/weight_decay_groups.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kVocabulary = 64, kLength = 24;

enum class Kind { layer_norm, naive, masked };
constexpr std::array<std::pair<Kind, const char*>, 3> kKinds = {
    std::pair(Kind::layer_norm, "LayerNorm"), std::pair(Kind::naive, "BatchNorm, naive"),
    std::pair(Kind::masked, "BatchNorm, masked")};

/// Texts of random words; the class is whether words 1 … 31 outnumber words 32 … 63.
struct Texts {
  Tensor words, padding, classes;
  Texts(std::int64_t count, bool padded) {
    const Tensor all = randint(1, kVocabulary, {count, kLength});
    const Tensor lengths =
        padded ? randint(1, kLength + 1, {count, 1}) : full({count, 1}, kLength, {.dtype = int64});
    const Tensor place = arange(kLength, {.dtype = int64}).unsqueeze(0);
    padding = place >= lengths;
    words = masked_fill(all, padding, 0);
    const Tensor balance = where(words < 32, ones({1}), full({1}, -1.0));
    classes = (masked_fill(balance, padding, 0.0).sum({1}) > 0.0).to(int64);
  }
};

double accuracy(nn::TransformerClassifier& model, const Texts& texts, std::int64_t batch) {
  const NoGradGuard no_grad;
  double right = 0.0;
  const std::int64_t count = texts.words.size(0);
  for (std::int64_t at = 0; at < count; at += batch) {
    const Tensor scores =
        model(texts.words.narrow(0, at, batch), texts.padding.narrow(0, at, batch));
    right += (argmax(scores, 1) == texts.classes.narrow(0, at, batch)).to(float32).sum().item();
  }
  return 100.0 * right / static_cast<double>(count);
}

struct Outcome {
  double test = 0.0;  // accuracy in evaluation, percent
  double gap = 0.0;   // from that with the statistics of each batch, points
};

Outcome run(Kind kind, std::int64_t batch, bool padded, const Settings& settings) {
  manual_seed(settings.seed);
  nn::TransformerClassifier model(
      {.vocab_size = kVocabulary,
       .max_length = kLength,
       .encoder = {
           .d_model = 32,
           .num_heads = 2,
           .d_ff = 64,
           .num_layers = 2,
           .norm = kind == Kind::layer_norm ? nn::NormKind::layer_norm : nn::NormKind::batch_norm,
           .dropout = 0.0}});
  if (kind == Kind::naive)  // the block says which tokens are padding; naive does not listen
    for (nn::Module* module : model.modules())
      if (dynamic_cast<nn::Norm*>(module) != nullptr)
        module->register_forward_pre_hook(
            [](nn::Module& norm, const Tensor&) { dynamic_cast<nn::Norm&>(norm).use_padding({}); });
  optim::AdamW optimizer(optim::weight_decay_groups(model, 0.01), {.lr = 2e-3});
  const int steps = settings.quick ? 3 : 250;
  for (int step = 0; step < steps; ++step) {
    const Texts texts(batch, padded);
    optimizer.zero_grad();
    cross_entropy(model(texts.words, texts.padding), texts.classes).backward();
    optimizer.step();
  }
  manual_seed(settings.seed + 1);
  const Texts texts(settings.quick ? 64 : 1024, padded);
  model.eval();
  const double test = accuracy(model, texts, batch);
  model.train();
  return {test, std::abs(accuracy(model, texts, batch) - test)};
}

}  // namespace

Result batch_norm_text(const Settings& settings) {
  const std::vector<double> batches = {4, 16, 64};
  Chart tests{.title = "Accuracy on fresh texts",
              .x_label = "batch size",
              .y_label = "accuracy in percent",
              .log_x = true};
  Chart gaps{.title = "Gap between training and evaluation mode",
             .x_label = "batch size",
             .y_label = "points",
             .log_x = true};
  Table table{.title = "Accuracy in evaluation (gap to training mode), percent",
              .columns = {"norm", "padding", "batch 4", "batch 16", "batch 64"}};
  std::vector<std::vector<Outcome>> all;  // by kind, padded or not, then batch size
  for (const auto& [kind, name] : kKinds)
    for (const bool padded : {false, true}) {
      Series test{fmt::format("{}, {}", name, padded ? "50 % padding" : "none"), batches, {}};
      Series gap = test;
      std::vector<std::string> cells = {name, padded ? "50 %" : "none"};
      all.emplace_back();
      for (const double batch : batches) {
        const Outcome one = run(kind, static_cast<std::int64_t>(batch), padded, settings);
        all.back().push_back(one);
        test.y.push_back(one.test);
        gap.y.push_back(one.gap);
        cells.push_back(fmt::format("{:.1f} ({:.1f})", one.test, one.gap));
      }
      table.rows.push_back(cells);
      if (!padded && kind == Kind::masked) continue;  // without padding a mask changes nothing
      tests.series.push_back(test);
      gaps.series.push_back(gap);
    }
  const auto &layer = all[1], &naive = all[3], &masked = all[5];
  return {.claim =
              "BatchNorm fails on text: padding, small batches, and statistics that differ between "
              "training and evaluation.",
          .source =
              "R47, L9; the articles; against it Wang et al. 2022 (RegularizedBN): for "
              "classification on a par with LayerNorm",
          .setting =
              "2 layers of width 32, 250 steps of AdamW at 2e-3, up to 24 words, which half of 64 "
              "words is in the majority; 1,024 fresh texts; lengths 1 … 24 where padded",
          .rows = {{"naive, padding, batch 4: points behind LayerNorm", at_least(2),
                    layer[0].test - naive[0].test},
                   {"naive, padding, batch 64: points behind LayerNorm", at_least(2),
                    layer[2].test - naive[2].test},
                   {"masked, padding, batch 64: points behind LayerNorm", at_least(2),
                    layer[2].test - masked[2].test},
                   {"naive, padding: gap at batch 4 − gap at batch 64, points", at_least(1),
                    naive[0].gap - naive[2].gap},
                   {"LayerNorm: gap, points", near(0, 0), layer[0].gap, Tests::reference}},
          .depends_on =
              "the batch: BatchNorm loses with few texts in a batch and comes close with many, "
              "with a mask for padding sooner than without",
          .finding =
              "The gap between the two modes is what RegularizedBN penalizes. The full study on "
              "real reviews is `imdb ablate`.",
          .charts = {tests, gaps},
          .tables = {table}};
}

}  // namespace norm_lab
