#include "lm/text_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <unordered_set>

#include "imdb/archive.h"
#include "imdb/dataset.h"
#include "imdb/files.h"
#include "imdb/random.h"
#include "imdb/run_data.h"
#include "imdb/stopwatch.h"
#include "imdb/text.h"
#include "norma/core/error.h"
#include "norma/core/factory.h"

namespace lm {
namespace {

namespace fs = std::filesystem;
using norma::check;

/// Whether the file begins as an archive does: gzip, bzip2, xz, zstd, zip or plain tar.
bool is_archive(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(512, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  for (const std::string_view magic : {"\x1F\x8B", "BZh",
                                       "\xFD"
                                       "7zXZ",
                                       "\x28\xB5\x2F\xFD", "PK\x03\x04"})
    if (head.starts_with(magic)) return true;
  return head.compare(257, 5, "ustar") == 0;
}

bool holds_reviews(const std::string& data) {
  if (data.empty()) return true;
  std::error_code error;
  check<norma::FileError>(fs::exists(data, error), "data", "{} must exist; check --data", data);
  return fs::is_directory(data, error) || is_archive(data);
}

/// The unlabelled reviews of an archive, by number, but for those that `labelled` holds, too.
std::vector<std::string> unlabelled_reviews(const std::string& path,
                                            const imdb::Dataset& labelled) {
  constexpr std::uint64_t most_bytes = 1 << 20;
  std::map<std::int64_t, std::string> found;
  imdb::read_entries(
      path,
      [](std::string_view name) {
        return name.find("unsup/") != name.npos && name.ends_with("_0.txt") ? most_bytes : 0;
      },
      [&](std::string_view name, const std::string& content) {
        const std::string number(name.substr(name.rfind('/') + 1));
        found[std::strtoll(number.c_str(), nullptr, 10)] = imdb::clean_text(content);
      });
  check<norma::FileError>(!found.empty(), "data", "--unsup {} must hold files train/unsup/*_0.txt",
                          path);
  std::unordered_set<std::string_view> known;
  for (const auto* side : {&labelled.train, &labelled.test})
    for (const imdb::Review& review : *side) known.insert(review.text);
  std::vector<std::string> texts;
  for (auto& [number, text] : found)
    if (!known.contains(text)) texts.push_back(std::move(text));
  return texts;
}

Texts reviews(const std::string& data, const std::string& unsup, double dev_fraction) {
  imdb::Dataset dataset = imdb::read_data(data);
  std::vector<std::string> more;
  if (!unsup.empty()) more = unlabelled_reviews(unsup, dataset);
  const imdb::DevSplit split = imdb::split_dev(dataset.train, dev_fraction, imdb::kSplitSeed);
  Texts texts;
  texts.name = data.empty() ? "built-in sample (1,000 reviews)" : data;
  const auto take = [&](const std::vector<std::int32_t>& from, std::vector<std::string>& to) {
    for (const std::int32_t i : from)
      to.push_back(std::move(dataset.train[static_cast<std::size_t>(i)].text));
  };
  take(split.train, texts.train);
  take(split.dev, texts.dev);
  std::move(more.begin(), more.end(), std::back_inserter(texts.train));
  // Reviews are sorted by class, and --train-limit must not take one class alone.
  imdb::shuffle(texts.train, imdb::mix(imdb::kSplitSeed, 3));
  return texts;
}

Texts text_file(const std::string& path, double dev_fraction) {
  std::string text = imdb::read_file(path);
  const auto wanted =
      static_cast<std::size_t>((1 - dev_fraction) * static_cast<double>(text.size()));
  std::size_t cut = text.find_first_of("\n ", wanted);
  check<norma::ValueError>(cut != std::string::npos && cut > 0, "data",
                           "{} must be long enough to be divided into two sides; got {} bytes",
                           path, text.size());
  return {path, {text.substr(0, cut)}, {text.substr(cut)}};
}

/// Mean cross-entropy of tokens that are drawn by their frequency; one count more for each.
double unigram_loss(const TokenIds& train, const TokenIds& dev, std::int64_t vocabulary) {
  std::vector<double> count(static_cast<std::size_t>(vocabulary), 1.0);
  for (const std::int64_t token : train) ++count[static_cast<std::size_t>(token)];
  const double total = std::accumulate(count.begin(), count.end(), 0.0);
  double loss = 0;
  for (const std::int64_t token : dev)
    loss -= std::log(count[static_cast<std::size_t>(token)] / total);
  return loss / static_cast<double>(dev.size());
}

std::uint64_t hash_tokens(const TokenIds& tokens) {
  std::uint64_t hash = 0;
  for (const std::int64_t token : tokens) hash = imdb::mix(hash, static_cast<std::uint64_t>(token));
  return hash;
}

}  // namespace

Texts read_texts(const std::string& data, const std::string& unsup, double dev_fraction) {
  if (holds_reviews(data)) return reviews(data, unsup, dev_fraction);
  check<norma::ValueError>(unsup.empty(), "data",
                           "--unsup goes with the IMDb reviews as --data; got the text file {}",
                           data);
  return text_file(data, dev_fraction);
}

std::vector<std::string> read_whole(const std::string& data) {
  return holds_reviews(data) ? reviews(data, {}, 0).train : std::vector{imdb::read_file(data)};
}

Rows::Rows(TokenIds tokens, std::int64_t context, std::int64_t batch_size)
    : tokens_(std::move(tokens)), context_(context), batch_size_(batch_size) {}

std::int64_t Rows::rows() const {
  return (static_cast<std::int64_t>(tokens_.size()) - 1) / (context_ - 1);
}

std::vector<std::int64_t> Rows::in_order() const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::int64_t> Rows::shuffled(std::uint64_t seed, std::int64_t epoch) const {
  std::vector<std::int64_t> order = in_order();
  imdb::shuffle(order, imdb::mix(seed, epoch));
  return order;
}

norma::Tensor Rows::batch(const std::vector<std::int64_t>& order, std::int64_t index) const {
  const std::int64_t begin = index * batch_size_;
  const std::int64_t size = std::min(batch_size_, static_cast<std::int64_t>(order.size()) - begin);
  TokenIds values;
  for (std::int64_t i = begin; i < begin + size; ++i) {
    const auto from = tokens_.begin() + order[static_cast<std::size_t>(i)] * (context_ - 1);
    values.insert(values.end(), from, from + context_);
  }
  return norma::from_values(values, {size, context_});
}

TrainData prepare_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer,
                       const std::function<void(const std::string&)>& say) {
  const imdb::Stopwatch watch;
  Texts texts = read_texts(config.data, config.unsup, config.dev_fraction);
  const double reading = watch.seconds();
  if (!tokenizer) tokenizer = Tokenizer::train(texts.train, config.vocab_size);
  TokenIds train = tokenizer->encode_all(texts.train);
  TokenIds dev = tokenizer->encode_all(texts.dev);
  if (config.train_limit > 0 && config.train_limit < static_cast<std::int64_t>(train.size()))
    train.resize(static_cast<std::size_t>(config.train_limit));
  const auto needed = static_cast<std::size_t>(config.context);
  check<norma::ValueError>(train.size() >= needed && dev.size() >= needed, "data",
                           "each side of the text must have --context = {} tokens; got {} for "
                           "training, {} for development; take a longer text",
                           config.context, train.size(), dev.size());
  double dev_bytes = 0;
  for (const std::string& text : texts.dev) dev_bytes += static_cast<double>(text.size());
  const double unigram = unigram_loss(train, dev, tokenizer->vocab_size());
  const std::uint64_t hash = hash_tokens(train);
  say(fmt::format(
      "data: {}: {} tokens for training, {} for development, vocabulary of {}; {:.1f} s "
      "to read, {:.1f} s for the vocabulary and the tokens",
      texts.name, train.size(), dev.size(), tokenizer->vocab_size(), reading,
      watch.seconds() - reading));
  say(fmt::format("the entropy of the single tokens is {:.3f} nats: what a model must beat",
                  unigram));
  return {.name = texts.name,
          .tokenizer = std::move(tokenizer),
          .train = Rows(std::move(train), config.context, config.batch_size),
          .dev = Rows(std::move(dev), config.context, config.batch_size),
          .dev_bytes = dev_bytes,
          .unigram_loss = unigram,
          .hash = hash};
}

}  // namespace lm
