#include "norma/nn/generate.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace norma::nn {

namespace {

/// Evaluation mode for a scope.
class EvalGuard {
 public:
  explicit EvalGuard(Module& module) : module_(module), training_(module.is_training()) {
    module_.eval();
  }
  ~EvalGuard() { module_.train(training_); }
  EvalGuard(const EvalGuard&) = delete;
  EvalGuard& operator=(const EvalGuard&) = delete;

 private:
  Module& module_;
  bool training_;
};

void check_options(const SamplingOptions& options) {
  check<ValueError>(options.temperature >= 0.0 && std::isfinite(options.temperature),
                    "sample_token",
                    "temperature must be positive, or 0 for the most probable token; got {}",
                    options.temperature);
  check<ValueError>(options.top_k >= 0, "sample_token",
                    "top_k must be positive, or 0 for all tokens; got {}", options.top_k);
  check<ValueError>(options.top_p > 0.0 && options.top_p <= 1.0, "sample_token",
                    "top_p must be in (0, 1]; got {}", options.top_p);
}

}  // namespace

std::int64_t sample_token(const Tensor& logits, const SamplingOptions& options, double u) {
  check_options(options);
  check<ShapeError>(logits.dim() == 1 && logits.size(0) > 0, "sample_token",
                    "logits must be [vocab]; got {}", logits.shape());
  const std::vector<double> values = logits.to_vector<double>();
  check<ValueError>(
      std::none_of(values.begin(), values.end(), [](double x) { return std::isnan(x); }),
      "sample_token", "logits must be numbers; got nan");
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  const double largest = values[order[0]];
  check<ValueError>(std::isfinite(largest), "sample_token",
                    "the largest logit must be finite; got {}", largest);
  std::size_t kept = options.top_k > 0
                         ? std::min(order.size(), static_cast<std::size_t>(options.top_k))
                         : order.size();
  if (options.temperature == 0.0) kept = 1;
  std::vector<double> weights(kept);
  for (std::size_t i = 0; i < kept; ++i)
    weights[i] = kept == 1 ? 1.0 : std::exp((values[order[i]] - largest) / options.temperature);
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double reached = 0.0;
  for (std::size_t i = 0; i < kept; ++i) {
    reached += weights[i];
    if (reached < options.top_p * total) continue;
    kept = i + 1;
    total = reached;
  }
  double rest = u * total;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    rest -= weights[i];
    if (rest < 0.0) return static_cast<std::int64_t>(order[i]);
  }
  return static_cast<std::int64_t>(order[kept - 1]);
}

std::vector<std::int64_t> generate(CausalLM& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options) {
  check<ValueError>(!prompt.empty(), "generate",
                    "prompt must have a token to start from; got none");
  const NoGradGuard no_grad;
  const EvalGuard eval(model);
  const Device device = model.lm_head.weight.device();
  DecoderCache cache;
  std::vector<std::int64_t> text = prompt;
  std::vector<std::int64_t> next = prompt;  // what the model has not seen yet
  for (std::int64_t i = 0; i < options.max_new_tokens; ++i) {
    const std::vector<std::int64_t>& input = options.use_cache ? next : text;
    const auto length = static_cast<std::int64_t>(input.size());
    const Tensor tokens = from_values(input, {1, length}).to(device);
    const Tensor states = model.model(tokens, options.use_cache ? &cache : nullptr);
    const Tensor logits = model.lm_head(states.narrow(1, length - 1, 1)).reshape({-1});
    const auto words = philox(options.seed, static_cast<std::uint64_t>(i));
    const double u = uniform_from_bits(words[0], words[1]);
    const std::int64_t token = sample_token(logits, options.sampling, u);
    if (token == options.eos_token_id) break;
    text.push_back(token);
    next.assign(1, token);
    if (options.on_token && !options.on_token(token)) break;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

}  // namespace norma::nn
