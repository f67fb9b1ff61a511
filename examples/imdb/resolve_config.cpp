#include "imdb/commands.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

void apply_flags(TrainConfig& config, const TrainArguments& arguments) {
  for (const auto& [field, text] : arguments.flags)
    set_field(config, *field, text, "flag " + field->flag());
}

void apply_file(TrainConfig& config, const TrainArguments& arguments) {
  if (!arguments.config_file.empty()) apply_toml_file(config, arguments.config_file);
}

}  // namespace

TrainConfig resolve_config(const TrainArguments& arguments) {
  // The file may name the preset and the data, which decide what lies under the file.
  TrainConfig asked;
  apply_file(asked, arguments);
  apply_flags(asked, arguments);

  TrainConfig config = make_preset(asked.preset);
  if (arguments.bigram) apply_bigram_variant(config);
  if (asked.data.empty()) apply_sample_variant(config);
  apply_file(config, arguments);
  apply_flags(config, arguments);
  validate(config);
  return config;
}

}  // namespace imdb
