// Writing text with a language model, one token after the other.
#pragma once

#include "norma/nn/causal_lm.h"

#include <functional>

namespace norma::nn {

/// As in HF generate: temperature first, then top_k, then top_p of what is left.
struct SamplingOptions {
  double temperature = 1.0;  ///< logits are divided by it; 0: always the most probable token
  std::int64_t top_k = 0;    ///< only so many of the most probable tokens; 0: all
  double top_p = 1.0;  ///< only the fewest most probable tokens that together reach this share
};

/// The token that `u`, uniform in [0, 1), picks from logits [vocab]. Equal logits stand in the
/// order of their tokens. Throws ValueError for options out of range, or where no logit is finite.
std::int64_t sample_token(const Tensor& logits, const SamplingOptions& options, double u);

struct GenerateOptions {
  std::int64_t max_new_tokens = 128;
  std::optional<std::int64_t> eos_token_id = std::nullopt;  ///< ends the text; is not returned
  SamplingOptions sampling = {};
  std::uint64_t seed = 0;  ///< the same seed, prompt and weights give the same text
  bool use_cache = true;   ///< else every token runs the whole text again, with the same result
  /// Gets each token as it comes; false ends the text.
  std::function<bool(std::int64_t token)> on_token = nullptr;
};

/// What `model` writes after `prompt`, without the prompt. The model is put into evaluation mode
/// for the time being. Throws ValueError for an empty prompt.
std::vector<std::int64_t> generate(CausalLM& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options = {});

}  // namespace norma::nn
