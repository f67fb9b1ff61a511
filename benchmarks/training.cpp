// Whole training steps of a small classifier: forward, backward, clipping and AdamW.
#include <norma/norma.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "case.h"

namespace norma::benchmarks {
namespace {

struct Setting {
  std::string family;
  std::int64_t d_model, num_layers, batch, length;
  double dropout = 0.0;
  std::int64_t vocab_size = 20000;
  double goal = 0.0;  ///< fraction of the multiply-add peak

  std::int64_t num_heads() const { return d_model / 32; }
  std::string name() const {
    return fmt::format("d{}_l{}_b{}_s{}{}", d_model, num_layers, batch, length,
                       dropout > 0.0 ? "_dropout" : "");
  }
  bool grows() const { return family == "growth"; }
};

// compare_pytorch.py has the same, from what export_training() wrote.
std::vector<Setting> all_settings() {
  std::vector<Setting> settings{
      {"training", 128, 2, 32, 256, 0.0, 20000, 0.55},
      {"training", 128, 2, 32, 256, 0.1, 20000, 0.55},
      {"training", 256, 6, 16, 256, 0.0, 20000, 0.62},
      {"training", 256, 6, 16, 256, 0.1, 20000, 0.62},
  };
  const auto grow = [&](std::int64_t d_model, std::int64_t layers, std::int64_t batch,
                        std::int64_t length) {
    settings.push_back({"growth", d_model, layers, batch, length, 0.0, 1000});
  };
  for (const int length : {64, 256, 1024, 4096}) grow(128, 2, 4, length);
  for (const int d_model : {64, 256, 512}) grow(d_model, 2, 4, 256);
  for (const int batch : {1, 16, 64}) grow(128, 2, batch, 256);
  for (const int layers : {1, 4, 8}) grow(128, layers, 4, 256);
  return settings;
}

nn::ClassifierConfig config_of(const Setting& setting) {
  return {.vocab_size = setting.vocab_size,
          .max_length = setting.length,
          .embedding_dropout = setting.dropout,
          .encoder = {.d_model = setting.d_model,
                      .num_heads = setting.num_heads(),
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
    tokens = masked_fill(randint(1, setting.vocab_size, {setting.batch, setting.length}),
                         padding_mask, 0);
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
  for (const Setting& setting : all_settings()) {
    const auto step = std::make_shared<std::unique_ptr<TrainingStep>>();
    cases.push_back({.name = setting.family + "/step/" + setting.name(),
                     // Those that grow differ only in size, and meet PyTorch's gate.
                     .gate =
                         [=] {
                           if (!setting.grows()) check_against_float64(setting);
                         },
                     .prepare = [=] { *step = std::make_unique<TrainingStep>(setting); },
                     .run = [=] { (*step)->run(); },
                     .flops = flops_of(setting),
                     .goal = setting.goal});
  }
  return cases;
}

void export_training(const std::string& folder) {
  for (const Setting& setting : all_settings()) {
    if (setting.dropout != 0.0) continue;
    std::filesystem::create_directories(folder + "/" + setting.family);
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
    safetensors::save_file(
        tensors, fmt::format("{}/{}/{}.safetensors", folder, setting.family, setting.name()));
  }
}

}  // namespace norma::benchmarks
