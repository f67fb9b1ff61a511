// imdb info: this program and machine, a data set, or a model.
#include <algorithm>
#include <cstdio>
#include <set>

#include "imdb/command_support.h"
#include "imdb/metrics.h"
#include "imdb/progress.h"

namespace imdb {
namespace {

void print_line(const std::string& name, const std::string& value) {
  std::printf("%-22s %s\n", name.c_str(), value.c_str());
}

void describe_side(const char* name, const std::vector<Review>& reviews) {
  std::int64_t positive = 0;
  std::set<std::int64_t> movies;
  std::vector<std::size_t> lengths;
  for (const auto& review : reviews) {
    positive += review.label;
    if (review.movie >= 0) movies.insert(review.movie);
    lengths.push_back(review.words.size());
  }
  std::sort(lengths.begin(), lengths.end());
  print_line(name, fmt::format("{} reviews: {} positive, {} negative; {} movies", reviews.size(),
                               positive, static_cast<std::int64_t>(reviews.size()) - positive,
                               movies.empty() ? "unknown" : std::to_string(movies.size())));
  if (!lengths.empty())
    print_line("  tokens a review",
               fmt::format("median {}, 90 % at most {}, longest {}", lengths[lengths.size() / 2],
                           lengths[lengths.size() * 9 / 10], lengths.back()));
}

void describe_data(const std::string& path) {
  const Dataset dataset = read_data(path);
  print_line("data", dataset.source);
  describe_side("train", dataset.train);
  describe_side("test", dataset.test);
  print_line("distinct tokens", std::to_string(dataset.words.size()));
  for (const auto& warning : dataset.warnings) print_line("warning", warning);
}

void describe_model(const std::string& path) {
  const LoadedModel loaded = load_model(path, norma::cpu);
  print_line("checkpoint", loaded.checkpoint.string());
  print_line("trained on", loaded.state.data_name);
  print_line("steps", fmt::format("{} ({} epochs and {} batches)", loaded.state.step,
                                  loaded.state.epoch, loaded.state.batch));
  print_line("training time", format_duration(loaded.state.train_seconds));
  for (const auto& epoch : loaded.state.epochs)
    print_line(fmt::format("  epoch {}", epoch.epoch),
               fmt::format("train loss {:.4f}, dev loss {:.4f}, dev accuracy {:.4f}",
                           epoch.train_loss, epoch.dev_loss, epoch.dev_accuracy));
  print_line("tokenizer", fmt::format("{}, {} entries", loaded.tokenizer->kind(),
                                      loaded.tokenizer->vocab_size()));
  print_line("parameters", std::to_string(loaded.model->num_parameters()));
  std::printf("\n%s\n\n%s", loaded.model->str().c_str(), to_toml(loaded.config).c_str());
}

}  // namespace

void run_info(const ModelArguments& arguments) {
  if (!arguments.data.empty()) describe_data(arguments.data);
  if (!arguments.model.empty()) describe_model(arguments.model);
  if (!arguments.data.empty() || !arguments.model.empty()) return;
  for (const auto& [name, value] : environment_facts(available_processors()))
    print_line(name, value);
  std::string presets;
  for (const auto& name : preset_names()) presets += (presets.empty() ? "" : ", ") + name;
  print_line("presets", presets);
  print_line("data", "none given; --data PATH describes one, --model DIR a trained model");
}

}  // namespace imdb
