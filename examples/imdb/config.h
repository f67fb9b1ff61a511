// Everything that decides a training run, its presets, and its text form.
//
// One table, `config_fields()`, names every option once: the command line, config.toml, the help
// text, the report and the checks are all generated from it. A new option is one member and one
// row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace imdb {

/// All options of one training run. The defaults are the preset `imdb-tiny`.
struct TrainConfig {
  // [run]
  std::string preset = "imdb-tiny";
  std::string data;            ///< archive or folder; empty: the sample inside the program
  std::int64_t seed = 1;       ///< of initialization, shuffling and dropout
  std::string device = "cpu";  ///< "cpu" or "cuda:N"
  std::int64_t threads = 0;    ///< 0: all cores of this machine

  // [data]
  std::string tokenizer = "word";   ///< word | bpe | unigram
  std::int64_t vocab_size = 20000;  ///< words, or pieces in all
  std::int64_t max_length = 384;    ///< tokens kept of a review: its head and its tail
  std::int64_t head_length = 96;    ///< tokens kept from the start; the rest come from the end
  std::int64_t bigram_buckets = 0;  ///< rows of the hashed bigram embedding; 0: none
  double dev_fraction = 0.1;        ///< of the movies of the training set, held out
  std::int64_t train_limit = 0;     ///< train on so many reviews only; 0: all

  // [model]
  std::int64_t layers = 1;
  std::int64_t d_model = 64;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t d_ff = 128;
  std::string ffn = "gelu";        ///< gelu | relu | swiglu
  std::string norm = "rms_norm";   ///< a name of nn::NormKind
  std::string placement = "pre";   ///< a name of nn::NormPlacement
  std::string init = "default";    ///< default | xavier
  std::string positions = "rope";  ///< rope | learned | none
  std::string pooling = "mean";    ///< mean | max | mean_max | cls
  bool qk_norm = false;
  double embedding_std = 0.1;      ///< of the initial embeddings
  double dropout = 0.0;            ///< on the output of each residual branch
  double attention_dropout = 0.0;  ///< on attention probabilities
  double embedding_dropout = 0.4;  ///< on the elements of the embeddings
  double word_dropout = 0.3;       ///< probability that a token becomes <unk>
  double head_dropout = 0.5;       ///< before the last linear layer

  // [train]
  std::int64_t epochs = 4;
  std::int64_t batch_size = 64;
  double label_smoothing = 0.05;
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double eps = 1e-8;
  double weight_decay = 0.2;
  bool decay_embeddings = true;
  double clip_norm = 1.0;           ///< 0: no clipping
  std::string schedule = "cosine";  ///< constant | linear | cosine | inverse_sqrt | wsd
  std::int64_t warmup_steps = 150;
  double ema_decay = 0.998;           ///< 0: no moving average
  bool fit_shift = false;             ///< of the logits, to the development set after each epoch
  std::int64_t checkpoint_every = 0;  ///< steps between checkpoints; 0: once an epoch

  bool operator==(const TrainConfig&) const = default;
};

/// One option: where it lives, how it is called, what it may be.
struct ConfigField {
  using Member = std::variant<bool TrainConfig::*, std::int64_t TrainConfig::*,
                              double TrainConfig::*, std::string TrainConfig::*>;
  const char* section;  ///< table in the TOML file
  const char* key;      ///< key in the TOML file; the flag is `--key` with dashes
  const char* help;
  Member member;
  double min = 0;                         ///< numbers: smallest and
  double max = 0;                         ///< largest allowed value
  std::vector<std::string> choices = {};  ///< strings: allowed values; empty: any

  std::string flag() const;  ///< "--max-length"
};

/// The table of all options, in the order of the file.
const std::vector<ConfigField>& config_fields();

/// The field with this key, or nullptr.
const ConfigField* find_config_field(std::string_view key);

/// The value of one field as text: `true`, `0.3`, `imdb-tiny`.
std::string get_field(const TrainConfig& config, const ConfigField& field);

/// Sets one field from text. `where` names the source in errors ("flag --lr", "run.toml:
/// train.lr"). Throws norma::ValueError on a wrong type, an unknown choice or a value out of range.
void set_field(TrainConfig& config, const ConfigField& field, std::string_view text,
               const std::string& where);

/// Names of all presets, smallest model first.
const std::vector<std::string>& preset_names();

/// The preset of that name. Throws norma::ValueError that lists the names.
TrainConfig make_preset(std::string_view name);

/// Turns imdb-tiny into its measured variant with hashed bigrams (two layers, longer inputs).
/// Throws norma::ValueError for other presets, whose shape would not fit.
void apply_bigram_variant(TrainConfig& config);

/// Adapts a preset to the built-in sample: 25 times fewer reviews need more, smaller steps.
void apply_sample_variant(TrainConfig& config);

/// Throws norma::ValueError when options contradict each other (heads that do not divide the width,
/// a head longer than the whole, ...). Single values were checked when they were set.
void validate(const TrainConfig& config);

/// The file config.toml: all options in their sections, each with its help as a comment.
std::string to_toml(const TrainConfig& config);

/// Sets what a TOML text names and leaves the rest. Inverse of `to_toml`. Returns the keys that
/// were set. Throws norma::ValueError naming `file`, the key and the line: unknown keys and
/// sections, wrong types, values out of range, bad syntax.
std::vector<std::string> apply_toml(TrainConfig& config, std::string_view text,
                                    const std::string& file);

/// `apply_toml` of a file. Throws norma::FileError when it cannot be read.
std::vector<std::string> apply_toml_file(TrainConfig& config, const std::filesystem::path& path);

/// The configuration in a file that must name every option, as that of a checkpoint does: a default
/// in the place of one that got lost would be another model. Validated. Throws norma::FileError or
/// norma::ValueError, which names the keys that are missing.
TrainConfig read_complete_config(const std::filesystem::path& path);

}  // namespace imdb
