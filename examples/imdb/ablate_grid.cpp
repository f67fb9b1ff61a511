#include "imdb/ablate_grid.h"

#include <algorithm>

#include "imdb/model.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

constexpr std::int64_t kQuickTest = 5000;

TrainConfig base_config(const AblateArguments& arguments) {
  TrainConfig config = make_preset("imdb-seed");
  if (arguments.quick) apply_quick_variant(config);
  for (const auto& [field, text] : arguments.flags)
    set_field(config, *field, text, "flag " + field->flag());
  return config;
}

std::string default_folder(bool quick, bool sample) {
  return fmt::format("runs/ablate{}{}", quick ? "-quick" : "", sample ? "-sample" : "");
}

AblationRun make_run(const TrainConfig& base, const AblationGroup& group, std::int64_t seed) {
  AblationRun run{group, base, fmt::format("{}-seed{}", group.name, seed)};
  std::replace(run.folder.begin(), run.folder.end(), '/', '-');
  run.config.norm = group.norm;
  run.config.placement = group.placement;
  run.config.init = group.init;
  run.config.seed = seed;
  validate(run.config);
  make_classifier_config(run.config, run.config.vocab_size);  // an impossible shape throws here
  return run;
}

}  // namespace

const std::vector<AblationGroup>& ablation_groups() {
  // DeepNorm scales Xavier's initial values, so it has those.
  static const std::vector<AblationGroup> groups = {
      {"A", "layer_norm", "pre", "default", "89.3 %"},
      {"A2", "rms_norm", "pre"},
      {"B1", "none", "none", "default", "diverges"},
      {"B2", "none", "none", "xavier", "diverges"},
      {"C1", "batch_norm_naive", "pre", "default", "76.1 %"},
      {"C2", "batch_norm", "pre", "default", "76.1 %"},
      {"D", "layer_norm", "post"},
      {"E", "layer_norm", "deep_norm", "xavier"},
  };
  return groups;
}

AblationGroup parse_group(const std::string& text) {
  std::string names;
  for (const auto& group : ablation_groups()) {
    if (group.name == text) return group;
    names += group.name + ", ";
  }
  const auto first = text.find('/');
  norma::check(first != text.npos, "ablate",
               "--groups must name some of {}or a norm and a placement as rms_norm/sandwich; got "
               "\"{}\"",
               names, text);
  const auto second = text.find('/', first + 1);
  AblationGroup group{text, text.substr(0, first), text.substr(first + 1, second - first - 1)};
  if (second != text.npos) group.init = text.substr(second + 1);
  TrainConfig checked;
  for (const auto& [key, value] :
       {std::pair("norm", group.norm), {"placement", group.placement}, {"init", group.init}})
    set_field(checked, *find_config_field(key), value, "--groups " + text);
  return group;
}

// A sixteenth of the work a token, and an eighth of the tokens.
void apply_quick_variant(TrainConfig& c) {
  c.d_model = 64;
  c.heads = 4;
  c.d_ff = 256;
  c.max_length = 128;
  c.head_length = 32;
  c.train_limit = 8000;
  c.epochs = 3;
}

AblationGrid plan_ablation(const AblateArguments& arguments) {
  const TrainConfig base = base_config(arguments);
  std::vector<AblationGroup> groups;
  for (const auto& text : arguments.groups) groups.push_back(parse_group(text));
  if (groups.empty()) groups = ablation_groups();
  AblationGrid grid;
  grid.out =
      arguments.out.empty() ? default_folder(arguments.quick, base.data.empty()) : arguments.out;
  grid.test_limit = arguments.test_limit.value_or(arguments.quick ? kQuickTest : 0);
  for (const std::int64_t seed : arguments.seeds)
    for (const auto& group : groups) {
      grid.runs.push_back(make_run(base, group, seed));
      for (std::size_t i = 0; i + 1 < grid.runs.size(); ++i)
        norma::check(grid.runs[i].folder != grid.runs.back().folder, "ablate",
                     "--groups and --seeds must not repeat; got {} twice", grid.runs[i].folder);
    }
  return grid;
}

}  // namespace imdb
