#include "imdb/run_data.h"

#include <algorithm>

#include "imdb/random.h"
#include "imdb/stopwatch.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

// The same number of each class, whatever the order of the reviews.
void limit_training(DevSplit& split, const std::vector<Review>& reviews, std::int64_t limit) {
  if (limit == 0 || limit >= static_cast<std::int64_t>(split.train.size())) return;
  std::vector<std::int32_t> shuffled = split.train;
  shuffle(shuffled, mix(kSplitSeed, 2));
  std::int64_t left[2] = {limit / 2, limit - limit / 2};
  split.train.clear();
  for (const std::int32_t i : shuffled)
    if (left[reviews[static_cast<std::size_t>(i)].label]-- > 0) split.train.push_back(i);
  std::sort(split.train.begin(), split.train.end());
}

}  // namespace

BatchSource RunData::train_source(const BatchOptions& options) const {
  return make_source(train_tokens, dataset.train, split.train, options);
}
BatchSource RunData::dev_source(const BatchOptions& options) const {
  return make_source(train_tokens, dataset.train, split.dev, options);
}
BatchSource RunData::test_source(const BatchOptions& options) const {
  return make_source(test_tokens, dataset.test, options);
}

Dataset read_data(const std::string& data) {
  return data.empty() ? read_sample() : read_dataset(data);
}

std::string data_name(const std::string& data) {
  return data.empty() ? "built-in sample (1,000 + 1,000 reviews)" : data;
}

RunData prepare_data(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                     const std::function<void(const std::string&)>& say) {
  RunData data;
  const Stopwatch reading;
  data.name = data_name(config.data);
  data.dataset = read_data(config.data);
  for (const auto& warning : data.dataset.warnings) say("warning: " + warning);
  data.split = split_dev(data.dataset.train, config.dev_fraction, kSplitSeed);
  limit_training(data.split, data.dataset.train, config.train_limit);
  say(fmt::format("data: {}: {} for training, {} for development ({}), {} for test; {:.1f} s",
                  data.name, data.split.train.size(), data.split.dev.size(),
                  data.split.by_movie ? "of other movies" : "cut at random",
                  data.dataset.test.size(), reading.seconds()));

  const Stopwatch tokenizing;
  data.tokenizer = tokenizer
                       ? std::move(tokenizer)
                       : std::shared_ptr<const Tokenizer>(make_tokenizer(
                             config.tokenizer, config.vocab_size, data.dataset, data.split.train));
  data.train_tokens = data.tokenizer->encode_reviews(data.dataset, data.dataset.train);
  data.test_tokens = data.tokenizer->encode_reviews(data.dataset, data.dataset.test);
  say(fmt::format("tokens: {}, vocabulary of {}; {:.1f} s", data.tokenizer->kind(),
                  data.tokenizer->vocab_size(), tokenizing.seconds()));
  return data;
}

}  // namespace imdb
