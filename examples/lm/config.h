// Everything that decides a run of `lm`, its presets, and its text form.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/nn/causal_lm.h"

namespace lm {

/// All options of one training run. The defaults are the preset `lm-tiny`.
struct Config {
  std::string preset = "lm-tiny";
  std::string data;
  std::string unsup;
  std::string device = "cpu";
  std::int64_t seed = 1;
  std::int64_t threads = 0;

  std::int64_t vocab_size = 2048;
  std::int64_t context = 128;
  double dev_fraction = 0.1;
  std::int64_t train_limit = 0;

  std::int64_t layers = 4;
  std::int64_t d_model = 128;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t d_ff = 384;
  std::string norm = "rms_norm";
  std::string placement = "pre";
  double norm_eps = 1e-6;
  bool qk_norm = true;
  double rope_theta = 1e4;
  bool tie_embeddings = true;
  double dropout = 0.1;

  std::int64_t epochs = 5;
  std::int64_t batch_size = 16;
  double lr = 2e-3;
  double beta2 = 0.98;
  double weight_decay = 0.1;
  double clip_norm = 1.0;
  std::int64_t warmup_steps = 60;
  double min_lr_ratio = 0.1;

  bool operator==(const Config&) const = default;
};

/// Calls `visit(key, member, help, smallest, largest)` for every option, in the order of
/// config.toml; bounds are for numbers. The command line, the file and the report are made from it.
/// The flag of `d_model` is --d-model.
template <class C, class Visit>
void each_option(C& c, Visit&& visit) {
  constexpr double many = 1e9;
  visit("preset", c.preset, "lm-tiny, minimind-v2 or minimind-3", 0.0, 0.0);
  visit("data", c.data, "a text file, or the IMDb archive or folder; empty: built-in sample", 0.0,
        0.0);
  visit(
      "unsup", c.unsup,
      "archive with the IMDb reviews without a label (it may be --data again), to learn from, too",
      0.0, 0.0);
  visit("device", c.device, "where to compute: cpu, cuda or cuda:N", 0.0, 0.0);
  visit("seed", c.seed, "seed of initialization, shuffling and dropout", 0.0, 4294967295.0);
  visit("threads", c.threads,
        "CPU threads; 0: all cores. Resuming bit for bit needs the same number", 0.0, 4096.0);
  visit("vocab_size", c.vocab_size, "byte-pair pieces, learned from the training text", 300.0, 1e6);
  visit("context", c.context, "tokens that the model is trained on at once", 2.0, 65536.0);
  visit("dev_fraction", c.dev_fraction, "share of the text held out for development", 0.001, 0.5);
  visit("train_limit", c.train_limit, "train on so many tokens only; 0: all", 0.0, 1e12);
  visit("layers", c.layers, "Transformer blocks", 1.0, 1000.0);
  visit("d_model", c.d_model, "width of the residual stream", 1.0, 65536.0);
  visit("heads", c.heads, "attention heads; must divide d_model", 1.0, 1024.0);
  visit("kv_heads", c.kv_heads, "key and value heads (grouped queries); 0: as many as heads", 0.0,
        1024.0);
  visit("d_ff", c.d_ff, "inner width of the SwiGLU part", 1.0, 1e6);
  visit("norm", c.norm, "kind of normalization, a name of nn::NormKind", 0.0, 0.0);
  visit("placement", c.placement, "where the norms stand in a block, a name of nn::NormPlacement",
        0.0, 0.0);
  visit("norm_eps", c.norm_eps, "eps of the norms", 1e-12, 1.0);
  visit("qk_norm", c.qk_norm, "normalize queries and keys of each head", 0.0, 0.0);
  visit("rope_theta", c.rope_theta, "base of the rotary positions", 1.0, 1e12);
  visit("tie_embeddings", c.tie_embeddings, "the head has the weight of the embedding", 0.0, 0.0);
  visit("dropout", c.dropout, "dropout on embeddings and on each residual branch", 0.0, 0.99);
  visit("epochs", c.epochs, "passes over the training text", 1.0, 1e6);
  visit("batch_size", c.batch_size, "rows of `context` tokens in a step", 1.0, 1e6);
  visit("lr", c.lr, "peak learning rate", 0.0, 1e3);
  visit("beta2", c.beta2, "AdamW: decay of the second moment", 0.0, 0.999999);
  visit("weight_decay", c.weight_decay, "of the matrices; not of norms and embeddings", 0.0, 1e3);
  visit("clip_norm", c.clip_norm, "largest gradient norm; 0: no clipping", 0.0, many);
  visit("warmup_steps", c.warmup_steps, "steps of linear warm-up", 0.0, many);
  visit("min_lr_ratio", c.min_lr_ratio, "share of the learning rate that the cosine ends at", 0.0,
        1.0);
}

/// "lm-tiny", "minimind-v2", "minimind-3".
const std::vector<std::string>& preset_names();
/// The preset of that name. Throws norma::ValueError that lists the names.
Config make_preset(std::string_view name);

/// Sets one option from text; `where` names the source in errors. Throws norma::ValueError for an
/// unknown key, a wrong type or a value out of range.
void set_option(Config& config, std::string_view key, std::string_view text,
                const std::string& where);

/// The model's configuration for a vocabulary of that size. Throws norma::ValueError for an
/// impossible one.
norma::nn::CausalLMConfig model_config(const Config& config, std::int64_t vocabulary);

/// config.toml: every option with its help as a comment.
std::string to_toml(const Config& config);
/// The keys and values of a TOML file, as text for set_option.
std::vector<std::pair<std::string, std::string>> read_toml(const std::filesystem::path& path);
/// The config.toml of a checkpoint, which must name every option.
Config read_config(const std::filesystem::path& path);

}  // namespace lm
