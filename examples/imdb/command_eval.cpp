// imdb eval: a trained model on a split of the data.
#include <cstdio>

#include "imdb/command_support.h"
#include "imdb/evaluate.h"
#include "imdb/model.h"
#include "imdb/progress.h"
#include "norma/core/error.h"

namespace imdb {

void run_eval(const ModelArguments& arguments) {
  set_threads(arguments.threads);
  const norma::Device device = make_device(arguments.device);
  LoadedModel loaded = load_model(arguments.model, device);
  say(fmt::format("model: {}", loaded.checkpoint.string()));

  TrainConfig config = loaded.config;
  if (!arguments.data.empty()) config.data = arguments.data;
  const RunData data = prepare_data(config, loaded.tokenizer, say);
  const BatchOptions options = make_batch_options(config);
  const BatchSource source = arguments.split == "test"  ? data.test_source(options)
                             : arguments.split == "dev" ? data.dev_source(options)
                                                        : data.train_source(options);
  norma::check<norma::ValueError>(source.reviews() > 0, "eval", "the {} split of {} is empty",
                                  arguments.split, data.name);
  Progress progress;
  const auto show = [&](std::int64_t done, std::int64_t total) {
    progress.update({arguments.split, done, total});
    return true;
  };
  const Evaluation result =
      shifted(evaluate(*loaded.model, source, device, show).value(), loaded.state.logit_shift);
  progress.finish();
  const auto& counts = result.confusion.counts;
  std::printf("split     %s (%lld reviews)\n", arguments.split.c_str(),
              static_cast<long long>(source.reviews()));
  std::printf("accuracy  %.4f\nloss      %.4f\n\n", result.accuracy, result.loss);
  std::printf("              predicted\n              negative  positive\n");
  std::printf("is negative   %8lld  %8lld\nis positive   %8lld  %8lld\n",
              static_cast<long long>(counts[0][0]), static_cast<long long>(counts[0][1]),
              static_cast<long long>(counts[1][0]), static_cast<long long>(counts[1][1]));
}

}  // namespace imdb
