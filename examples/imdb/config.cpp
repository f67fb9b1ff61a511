#include "imdb/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "norma/core/error.h"
#include "norma/nn/placement.h"

namespace imdb {
namespace {

namespace nn = norma::nn;
using norma::check;
using norma::ValueError;

constexpr double kAny = 1e18;  // no bound that a sane run could meet
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// All that the library has, so that a new norm is an option here, too.
template <nn::NamedEnum E>
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [value, name] : nn::EnumNames<E>::values) all.emplace_back(name);
  return all;
}

std::vector<ConfigField> make_fields() {
  using C = TrainConfig;
  constexpr double kCount = 1e9;
  constexpr double kBelowOne = 0.999999;
  return {
      {"run", "preset", "recipe that the other options start from", &C::preset, 0, 0,
       preset_names()},
      {"run", "data", "aclImdb_v1.tar.gz or the folder unpacked from it; empty: built-in sample",
       &C::data},
      {"run", "seed", "seed of initialization, shuffling and dropout", &C::seed, 0, 4294967295.0},
      {"run", "device", "where to compute: cpu, cuda or cuda:N", &C::device},
      // Which numbers are possible is up to the machine: set_threads knows.
      {"run", "threads", "CPU threads; 0: all cores. Resuming bit for bit needs the same number",
       &C::threads, -kInfinity, kInfinity},

      {"data",
       "tokenizer",
       "words and punctuation, or subwords by SentencePiece",
       &C::tokenizer,
       0,
       0,
       {"word", "bpe", "unigram"}},
      {"data", "vocab_size",
       "words kept (word; 259 special entries come on top), or pieces in all (bpe, unigram)",
       &C::vocab_size, 64, 4e6},
      {"data", "max_length", "tokens kept of a review: its head and its tail", &C::max_length, 4,
       65536},
      {"data", "head_length", "tokens kept from the start of a long review; the rest from its end",
       &C::head_length, 0, 65536},
      {"data", "bigram_buckets", "rows of the hashed bigram embedding; 0: none", &C::bigram_buckets,
       0, 1.0 * (1 << 26)},
      {"data", "dev_fraction", "share of the training set held out for development, by movie",
       &C::dev_fraction, 0.01, 0.5},
      {"data", "train_limit", "train on so many reviews only; 0: all", &C::train_limit, 0, kCount},

      {"model", "layers", "Transformer blocks", &C::layers, 1, 1000},
      {"model", "d_model", "width of the residual stream", &C::d_model, 1, 65536},
      {"model", "heads", "attention heads; must divide d_model", &C::heads, 1, 1024},
      {"model", "kv_heads", "key and value heads (grouped queries); 0: as many as heads",
       &C::kv_heads, 0, 1024},
      {"model", "d_ff", "inner width of the feed-forward part", &C::d_ff, 1, 1e6},
      {"model", "ffn", "kind of the feed-forward part", &C::ffn, 0, 0, {"gelu", "relu", "swiglu"}},
      {"model", "norm", "kind of normalization", &C::norm, 0, 0, names<nn::NormKind>()},
      {"model", "placement", "where the norms stand in a block", &C::placement, 0, 0,
       names<nn::NormPlacement>()},
      {"model",
       "init",
       "initial matrices of the blocks: PyTorch's of a linear layer, or Xavier's with zero biases",
       &C::init,
       0,
       0,
       {"default", "xavier"}},
      {"model",
       "positions",
       "how the model learns about order",
       &C::positions,
       0,
       0,
       {"rope", "learned", "none"}},
      {"model",
       "pooling",
       "how token states become one vector",
       &C::pooling,
       0,
       0,
       {"mean", "max", "mean_max", "cls"}},
      {"model", "qk_norm", "RMS-normalize queries and keys of each head", &C::qk_norm},
      {"model", "embedding_std", "standard deviation of the initial embeddings", &C::embedding_std,
       0, 10},
      {"model", "dropout", "dropout on the output of each residual branch", &C::dropout, 0,
       kBelowOne},
      {"model", "attention_dropout", "dropout on attention probabilities", &C::attention_dropout, 0,
       kBelowOne},
      {"model", "embedding_dropout", "dropout on the elements of the embeddings",
       &C::embedding_dropout, 0, kBelowOne},
      {"model", "word_dropout", "probability that a training token becomes <unk>", &C::word_dropout,
       0, kBelowOne},
      {"model", "head_dropout", "dropout before the last linear layer", &C::head_dropout, 0,
       kBelowOne},

      {"train", "epochs", "passes over the training set", &C::epochs, 1, 1e6},
      {"train", "batch_size", "reviews a step", &C::batch_size, 1, 1e6},
      {"train", "label_smoothing", "share of the target spread over all classes",
       &C::label_smoothing, 0, kBelowOne},
      {"train", "lr", "peak learning rate", &C::lr, 0, 1e3},
      {"train", "beta1", "AdamW: decay of the first moment", &C::beta1, 0, kBelowOne},
      {"train", "beta2", "AdamW: decay of the second moment", &C::beta2, 0, kBelowOne},
      {"train", "eps", "AdamW: added to the root of the second moment", &C::eps, 1e-30, 1},
      {"train", "weight_decay", "AdamW: decoupled decay of matrices", &C::weight_decay, 0, 1e3},
      {"train", "decay_embeddings", "decay the embedding tables too", &C::decay_embeddings},
      {"train", "clip_norm", "largest norm of all gradients together; 0: no clipping",
       &C::clip_norm, 0, kAny},
      {"train",
       "schedule",
       "course of the learning rate after the warm-up",
       &C::schedule,
       0,
       0,
       {"constant", "linear", "cosine", "inverse_sqrt", "wsd"}},
      {"train", "warmup_steps", "steps of linear warm-up, at most half of the run",
       &C::warmup_steps, 0, kCount},
      {"train", "ema_decay", "decay of the moving average of the weights; 0: none", &C::ema_decay,
       0, kBelowOne},
      {"train", "fit_shift", "fit one shift of the logits to the development set", &C::fit_shift},
      {"train", "checkpoint_every", "steps between checkpoints; 0: one an epoch",
       &C::checkpoint_every, 0, kCount},
  };
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
void check_range(T value, const ConfigField& field, const std::string& where) {
  const auto number = static_cast<double>(value);
  const bool inside = std::isfinite(number) && number >= field.min && number <= field.max;
  if constexpr (std::is_same_v<T, double>)
    check(inside, "config", "{}: must lie in [{:g}, {:g}]; got {}", where, field.min, field.max,
          value);
  else
    check(inside, "config", "{}: must lie in [{:.0f}, {:.0f}]; got {}", where, field.min, field.max,
          value);
}

}  // namespace

std::string ConfigField::flag() const {
  std::string text = std::string("--") + key;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> fields = make_fields();
  return fields;
}

const ConfigField* find_config_field(std::string_view key) {
  for (const auto& field : config_fields())
    if (key == field.key) return &field;
  return nullptr;
}

std::string get_field(const TrainConfig& config, const ConfigField& field) {
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), std::string TrainConfig::*>)
          return config.*member;
        else
          return fmt::format("{}", config.*member);  // shortest text that reads back exactly
      },
      field.member);
}

void set_field(TrainConfig& config, const ConfigField& field, std::string_view text,
               const std::string& where) {
  std::visit(
      [&](auto member) {
        auto& target = config.*member;
        using T = std::remove_reference_t<decltype(target)>;
        if constexpr (std::is_same_v<T, std::string>) {
          const auto& choices = field.choices;
          check(choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end(),
                "config", "{}: must be one of {}; got \"{}\"", where, join(choices, ", "), text);
          target = text;
        } else if constexpr (std::is_same_v<T, bool>) {
          check(text == "true" || text == "false", "config",
                "{}: must be true or false; got \"{}\"", where, text);
          target = text == "true";
        } else {
          T value{};
          check(parse_number(text, value), "config", "{}: must be {}; got \"{}\"", where,
                std::is_same_v<T, double> ? "a number" : "a whole number", text);
          check_range(value, field, where);
          target = value;
        }
      },
      field.member);
}

void validate(const TrainConfig& c) {
  check(c.d_model % c.heads == 0, "config",
        "heads must divide d_model; got {} heads and d_model {}; try --heads {}", c.heads,
        c.d_model, c.d_model % 32 == 0 ? c.d_model / 32 : 1);
  check(c.kv_heads <= c.heads && (c.kv_heads == 0 || c.heads % c.kv_heads == 0), "config",
        "kv_heads must divide heads; got {} kv_heads and {} heads", c.kv_heads, c.heads);
  check(c.positions != "rope" || (c.d_model / c.heads) % 2 == 0, "config",
        "positions = rope rotates pairs, so d_model / heads must be even; got {} / {} = {}",
        c.d_model, c.heads, c.d_model / c.heads);
  check(c.head_length <= c.max_length, "config",
        "head_length must not exceed max_length; got {} > {}; set both", c.head_length,
        c.max_length);
  check(c.pooling != "cls" || c.head_length < c.max_length, "config",
        "pooling = cls needs one token more, so head_length must be less than max_length; got {} "
        "and {}",
        c.head_length, c.max_length);
  check((c.norm == "none") == (c.placement == "none"), "config",
        "norm and placement must both be none or neither; got norm {} and placement {}", c.norm,
        c.placement);
  check(c.bigram_buckets != 1, "config",
        "bigram_buckets must be 0 or at least 2, for one is the padding's; got 1");
  check(!c.preset.empty(), "config", "preset must have a name; got an empty one");
}

}  // namespace imdb
