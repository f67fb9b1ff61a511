// Whole training steps of a small classifier: forward, backward, clipping and AdamW.
#include <norma/norma.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "case.h"

namespace norma::benchmarks {
namespace {

struct Setting {
  std::string name;
  std::int64_t d_model, num_heads, num_layers, batch, length;
  double dropout;
};

// The two models of PyTorch's comparison (compare_pytorch.py), and the first of them with dropout.
const Setting settings[] = {
    {"d128_l2_b32_s256", 128, 4, 2, 32, 256, 0.0},
    {"d128_l2_b32_s256_dropout", 128, 4, 2, 32, 256, 0.1},
    {"d256_l6_b16_s256", 256, 8, 6, 16, 256, 0.0},
};
constexpr std::int64_t vocab_size = 20000;

nn::ClassifierConfig config_of(const Setting& setting) {
  return {.vocab_size = vocab_size,
          .max_length = setting.length,
          .embedding_dropout = setting.dropout,
          .encoder = {.d_model = setting.d_model,
                      .num_heads = setting.num_heads,
                      .num_layers = setting.num_layers,
                      .dropout = setting.dropout,
                      .positions = nn::Positions::learned}};
}

/// Random tokens of random lengths (a quarter of the length and more), padded, and random labels.
struct Batch {
  Tensor tokens, padding_mask, labels;

  explicit Batch(const Setting& setting) {
    const Tensor lengths = randint(setting.length / 4, setting.length + 1, {setting.batch, 1});
    padding_mask =
        arange(static_cast<double>(setting.length)).reshape({1, setting.length}) >= lengths;
    tokens = masked_fill(randint(1, vocab_size, {setting.batch, setting.length}), padding_mask, 0);
    labels = randint(0, 2, {setting.batch});
  }
};

class TrainingStep {
 public:
  explicit TrainingStep(const Setting& setting)
      : model((manual_seed(1), config_of(setting))),
        batch(setting),
        optimizer_(model.parameters(), {.lr = 1e-4, .weight_decay = 0.01}) {}

  Tensor loss() { return cross_entropy(model(batch.tokens, batch.padding_mask), batch.labels); }

  void run() {
    optimizer_.zero_grad();
    loss().backward();
    optim::clip_grad_norm_(model.parameters(), 1.0);
    optimizer_.step();
  }

  nn::TransformerClassifier model;
  Batch batch;

 private:
  optim::AdamW optimizer_;
};

/// Loss and every gradient in float32 against the same model in float64.
void check_against_float64(const Setting& setting) {
  Setting exact_setting = setting;
  exact_setting.dropout = 0.0;
  TrainingStep step(exact_setting);
  nn::TransformerClassifier exact(config_of(exact_setting));
  exact.to(float64);
  exact.load_state_dict(step.model.state_dict());
  const Tensor loss = step.loss();
  const Tensor exact_loss =
      cross_entropy(exact(step.batch.tokens, step.batch.padding_mask), step.batch.labels);
  loss.backward();
  exact_loss.backward();
  check<ValueError>(std::abs(loss.item() - exact_loss.item()) <= 1e-5 * exact_loss.item(),
                    "training_step", "loss must agree with float64; got {} and {}", loss.item(),
                    exact_loss.item());
  const auto parameters = step.model.named_parameters();
  const auto exact_parameters = exact.named_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor expected = exact_parameters[i].tensor.grad();
    const double scale = amax(abs(expected)).item();
    const double error = amax(abs(parameters[i].tensor.grad().to(float64) - expected)).item();
    // A gradient that is 0 but for rounding (the bias of keys) has no scale of its own.
    check<ValueError>(
        error <= 1e-4 * scale + 1e-7, "training_step",
        "the gradient of {} must agree with float64; got an error of {} at a scale of {}",
        parameters[i].name, error, scale);
  }
}

/// Floating-point operations of one step: two for each weight and token forward and four backward,
/// and the seven matrix products of attention.
double flops_of(const Setting& setting) {
  const double tokens = static_cast<double>(setting.batch * setting.length);
  const double width = static_cast<double>(setting.d_model);
  const double layers = static_cast<double>(setting.num_layers);
  const double weights =
      layers * 12.0 * width * width;  // 4 of attention, 2 * 4 of the feed-forward
  const double attention =
      layers * 7.0 * 2.0 * tokens * static_cast<double>(setting.length) * width;
  return 6.0 * weights * tokens + attention;
}

}  // namespace

std::vector<Case> training_cases() {
  std::vector<Case> cases;
  for (const Setting& setting : settings) {
    const auto step = std::make_shared<std::unique_ptr<TrainingStep>>();
    cases.push_back({.name = "training/step/" + setting.name,
                     .gate =
                         [=] {
                           check_against_float64(setting);
                           *step = std::make_unique<TrainingStep>(setting);
                         },
                     .run = [=] { (*step)->run(); },
                     .flops = flops_of(setting),
                     .goal = 0.4});
  }
  return cases;
}

void export_training(const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const Setting& setting : settings) {
    if (setting.dropout != 0.0) continue;
    TrainingStep step(setting);
    std::map<std::string, Tensor> tensors{{"tokens", step.batch.tokens},
                                          {"padding_mask", step.batch.padding_mask},
                                          {"labels", step.batch.labels}};
    const Tensor loss = step.loss();
    loss.backward();
    tensors["loss"] = loss.detach();
    for (const nn::NamedParameter& parameter : step.model.named_parameters()) {
      tensors["state/" + parameter.name] = parameter.tensor.detach();
      tensors["grad/" + parameter.name] = parameter.tensor.grad();
    }
    safetensors::save_file(tensors, folder + "/" + setting.name + ".safetensors");
  }
}

}  // namespace norma::benchmarks
