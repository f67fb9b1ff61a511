// imdb baseline: the linear rival.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "imdb/baseline.h"
#include "imdb/command_support.h"
#include "imdb/files.h"
#include "imdb/metrics.h"
#include "imdb/run_folder.h"
#include "imdb/stopwatch.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

std::string words_of(const std::vector<BaselineResult::Feature>& features, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, features.size()); ++i)
    text += (text.empty() ? "" : ", ") + features[i].ngram;
  return text;
}

}  // namespace

void run_baseline(const BaselineArguments& arguments) {
  norma::check(arguments.out.empty() || list_checkpoints(arguments.out).empty(), "baseline",
               "--out must not be the folder of a trained model, whose metrics.json it would "
               "replace; got {}",
               arguments.out);
  const int threads = set_threads(arguments.threads);
  const Stopwatch watch;
  const Dataset dataset = read_data(arguments.data);
  say(fmt::format("data: {}: {} for training and development, {} for test",
                  data_name(arguments.data), dataset.train.size(), dataset.test.size()));
  BaselineOptions options;
  options.seed = static_cast<std::uint64_t>(arguments.seed);
  const BaselineResult result = train_baseline(dataset, options);
  const double total = watch.seconds();
  if (!arguments.out.empty()) {
    make_directories(arguments.out);
    const nlohmann::ordered_json json = {{"preset", "baseline"},
                                         {"data", data_name(arguments.data)},
                                         {"seed", arguments.seed},
                                         {"device", "cpu"},
                                         {"threads", threads},
                                         {"dev_accuracy", result.dev_accuracy},
                                         {"test_accuracy", result.test_accuracy},
                                         {"train_seconds", result.train_seconds},
                                         {"total_seconds", total},
                                         {"peak_memory_bytes", peak_memory_bytes()},
                                         {"version", version()},
                                         {"git_revision", git_revision()},
                                         {"features", result.features},
                                         {"cost", result.cost},
                                         {"beta", result.beta}};
    write_file_atomic(std::filesystem::path(arguments.out) / "metrics.json",
                      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  std::printf("dev accuracy   %.4f\ntest accuracy  %.4f\n", result.dev_accuracy,
              result.test_accuracy);
  std::printf("features       %lld (C %g, beta %g)\ntime           %.1f s\n",
              static_cast<long long>(result.features), result.cost, result.beta, total);
  std::printf("most positive  %s\nmost negative  %s\n", words_of(result.top_positive, 10).c_str(),
              words_of(result.top_negative, 10).c_str());
}

}  // namespace imdb
