// lm sample and lm eval: what a trained model writes, and how well it predicts a text.
#include <cmath>
#include <cstdio>

#include "imdb/command_support.h"
#include "lm/checkpoint.h"
#include "lm/commands.h"
#include "lm/report.h"
#include "lm/trainer.h"
#include "norma/core/error.h"

namespace lm {

void run_sample(const ModelArguments& arguments) {
  imdb::set_threads(arguments.threads);
  LoadedModel loaded = load_model(arguments.model, imdb::make_device(arguments.device));
  imdb::say(fmt::format("model: {}", loaded.checkpoint.string()));
  TokenIds prompt = loaded.tokenizer->encode(arguments.prompt);
  prompt.insert(prompt.begin(), Tokenizer::bos_id);

  norma::nn::GenerateOptions options = arguments.generate;
  options.use_cache = !arguments.no_cache;
  options.eos_token_id = Tokenizer::eos_id;
  options.on_token = [&](std::int64_t token) {
    const std::string text = loaded.tokenizer->decode({token});
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;  // a reader that has gone away ends the text
  };
  for (std::int64_t i = 0; i < arguments.samples; ++i) {
    if (i > 0) std::fputs("\n---\n", stdout);
    std::fputs(arguments.prompt.c_str(), stdout);
    norma::nn::generate(*loaded.model, prompt, options);
    ++options.seed;
  }
  std::fputc('\n', stdout);
}

void run_eval(const ModelArguments& arguments) {
  imdb::set_threads(arguments.threads);
  const norma::Device device = imdb::make_device(arguments.device);
  LoadedModel loaded = load_model(arguments.model, device);
  imdb::say(fmt::format("model: {}", loaded.checkpoint.string()));
  const std::string& data = arguments.data.empty() ? loaded.config.data : arguments.data;
  const std::vector<std::string> texts = arguments.data.empty()
                                             ? read_texts(data, {}, loaded.config.dev_fraction).dev
                                             : read_whole(data);
  const Rows rows(loaded.tokenizer->encode_all(texts), loaded.config.context,
                  loaded.config.batch_size);
  norma::check<norma::ValueError>(rows.rows() > 0, "eval",
                                  "the text must have {} tokens; got {}; take a longer text",
                                  loaded.config.context, rows.tokens().size());
  imdb::Progress progress;
  const auto result =
      evaluate(*loaded.model, rows, device, [&](std::int64_t done, std::int64_t total) {
        progress.update({.label = "eval", .done = done, .total = total});
        return true;
      });
  progress.finish();
  double bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<double>(text.size());
  std::printf(
      "tokens         %lld\nloss           %.4f\nperplexity     %.2f\naccuracy       %.4f\n"
      "bits per byte  %.3f\n",
      static_cast<long long>(result->tokens), result->loss, std::exp(result->loss),
      result->accuracy, bits_per_byte(result->loss, rows.tokens().size(), bytes));
}

}  // namespace lm
