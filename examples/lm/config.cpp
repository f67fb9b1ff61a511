#include "lm/config.h"

#include <toml++/toml.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "imdb/files.h"

namespace lm {
namespace {

namespace nn = norma::nn;
using norma::check;
using norma::ValueError;

Config from_model(const char* name, const nn::CausalLMConfig& model) {
  const nn::TransformerConfig& d = model.decoder;
  Config c;
  c.preset = name;
  c.vocab_size = model.vocab_size;
  c.layers = d.num_layers;
  c.d_model = d.d_model;
  c.heads = d.num_heads;
  c.kv_heads = d.num_kv_heads;
  c.d_ff = d.d_ff;
  c.norm = std::string(nn::to_string(d.norm));
  c.norm_eps = *d.eps;
  c.qk_norm = d.qk_norm != nn::NormKind::none;
  c.rope_theta = d.rope_theta;
  c.dropout = d.dropout;
  // MiniMind's recipe of pre-training, but for a warm-up and weight decay on matrices alone.
  c.context = 512;
  c.epochs = 2;
  c.batch_size = 32;
  c.lr = 5e-4;
  c.beta2 = 0.999;
  c.weight_decay = 0.01;
  c.warmup_steps = 100;
  c.min_lr_ratio = 0.1;
  return c;
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
void assign(T& member, std::string_view text, double low, double high, const std::string& where) {
  if constexpr (std::is_same_v<T, std::string>) {
    member = text;
  } else if constexpr (std::is_same_v<T, bool>) {
    check<ValueError>(text == "true" || text == "false", "config",
                      "{}: must be true or false; got \"{}\"", where, text);
    member = text == "true";
  } else {
    T value{};
    check<ValueError>(parse_number(text, value), "config", "{}: must be a {}; got \"{}\"", where,
                      std::is_same_v<T, double> ? "number" : "whole number", text);
    const auto number = static_cast<double>(value);
    check<ValueError>(std::isfinite(number) && number >= low && number <= high, "config",
                      "{}: must lie in [{:g}, {:g}]; got {}", where, low, high, text);
    member = value;
  }
}

template <class T>
std::string toml_value(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text = fmt::format("{}", value);
  if (std::is_same_v<T, double> && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = {"lm-tiny", "minimind-v2", "minimind-3"};
  return names;
}

Config make_preset(std::string_view name) {
  if (name == "lm-tiny") return Config{};
  if (name == "minimind-v2") return from_model("minimind-v2", nn::minimind_v2());
  if (name == "minimind-3") return from_model("minimind-3", nn::minimind_3());
  throw ValueError("config", fmt::format("preset must be one of {}; got \"{}\"",
                                         fmt::join(preset_names(), ", "), name));
}

void set_option(Config& config, std::string_view key, std::string_view text,
                const std::string& where) {
  bool known = false;
  each_option(config, [&](const char* name, auto& member, const char*, double low, double high) {
    if (key != name) return;
    known = true;
    assign(member, text, low, high, where);
  });
  check<ValueError>(known, "config", "{}: unknown option; `lm train --help` lists all", where);
}

nn::CausalLMConfig model_config(const Config& c, std::int64_t vocabulary) {
  const auto kind = nn::parse<nn::NormKind>(c.norm);
  nn::CausalLMConfig model{.vocab_size = vocabulary,
                           .tie_word_embeddings = c.tie_embeddings,
                           .embedding_dropout = c.dropout};
  model.decoder = {.d_model = c.d_model,
                   .num_heads = c.heads,
                   .num_kv_heads = c.kv_heads,
                   .d_ff = c.d_ff,
                   .num_layers = c.layers,
                   .activation = nn::Activation::swiglu,
                   .norm = kind,
                   .placement = nn::parse<nn::NormPlacement>(c.placement),
                   .eps = c.norm_eps,
                   .dropout = c.dropout,
                   .positions = nn::Positions::rope,
                   .rope_theta = c.rope_theta,
                   .qk_norm = c.qk_norm ? nn::NormKind::rms_norm : nn::NormKind::none,
                   .causal = true,
                   .bias = false,
                   .llama_names = true};
  model.validate();
  return model;
}

std::string to_toml(const Config& config) {
  std::string text =
      "# Configuration of an lm run. Train it again: lm train --config config.toml\n";
  each_option(config, [&](const char* name, const auto& member, const char* help, double, double) {
    text += fmt::format("{:<32} # {}\n", fmt::format("{} = {}", name, toml_value(member)), help);
  });
  return text;
}

std::vector<std::pair<std::string, std::string>> read_toml(const std::filesystem::path& path) {
  toml::table table;
  try {
    table = toml::parse(imdb::read_file(path), path.string());
  } catch (const toml::parse_error& error) {
    throw ValueError("config", fmt::format("{}, line {}: not valid TOML: {}", path.string(),
                                           error.source().begin.line, error.description()));
  }
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, node] : table) {
    std::string text;
    if (const auto* s = node.as_string())
      text = s->get();
    else if (const auto* b = node.as_boolean())
      text = b->get() ? "true" : "false";
    else if (const auto* i = node.as_integer())
      text = std::to_string(i->get());
    else if (const auto* d = node.as_floating_point())
      text = fmt::format("{}", d->get());
    else
      throw ValueError("config", fmt::format("{}: {}: must be a text, a number, true or false",
                                             path.string(), key.str()));
    values.emplace_back(std::string(key.str()), text);
  }
  return values;
}

Config read_config(const std::filesystem::path& path) {
  Config config;
  std::set<std::string> given;
  for (const auto& [key, text] : read_toml(path)) {
    set_option(config, key, text, fmt::format("{}: {}", path.string(), key));
    given.insert(key);
  }
  // A default in the place of an option that got lost would be another model.
  each_option(config, [&](const char* name, const auto&, const char*, double, double) {
    check<ValueError>(given.contains(name), "config", "{} must name every option; it lacks {}",
                      path.string(), name);
  });
  return config;
}

}  // namespace lm
