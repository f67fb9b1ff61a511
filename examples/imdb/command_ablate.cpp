// imdb ablate: trains the grid run by run, and writes its table after each.
#include <cstdio>

#include "imdb/ablate_run.h"
#include "imdb/ablate_table.h"
#include "imdb/command_support.h"
#include "imdb/files.h"
#include "imdb/interrupt.h"
#include "imdb/model.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;

// Evenly spaced, so of both classes alike: they stand one behind the other.
BatchSource test_source(const RunData& data, const BatchOptions& options, std::int64_t limit) {
  const auto all = static_cast<std::int64_t>(data.dataset.test.size());
  if (limit == 0 || limit >= all) return data.test_source(options);
  std::vector<std::int32_t> chosen;
  for (std::int64_t i = 0; i < limit; ++i)
    chosen.push_back(static_cast<std::int32_t>(i * all / limit));
  return make_source(data.test_tokens, data.dataset.test, chosen, options);
}

// What the options change of the setting that is compared with.
std::string changes(const TrainConfig& config) {
  const TrainConfig article = make_preset("imdb-seed");
  std::string text;
  for (const auto& field : config_fields()) {
    const std::string section = field.section, key = field.key;
    if (section == "run" || key == "norm" || key == "placement" || key == "init") continue;
    const auto had = get_field(article, field), has = get_field(config, field);
    if (had != has)
      text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", key, has, had);
  }
  return text.empty() ? "none" : text;
}

AblationReport make_report(const AblationGrid& grid, int threads) {
  const TrainConfig& c = grid.runs.front().config;
  AblationReport report;
  report.grid = grid;
  report.facts = {
      {"setting", fmt::format("{} layers, {} wide, {} heads, {} in the feed-forward, batches of "
                              "{}, AdamW at {}, {} epochs, {} tokens a review",
                              c.layers, c.d_model, c.heads, c.d_ff, c.batch_size, c.lr, c.epochs,
                              c.max_length)},
      {"other than the preset imdb-seed", changes(c)},
      {"data", data_name(c.data)},
      {"test reviews", grid.test_limit == 0 ? "all" : std::to_string(grid.test_limit)},
      {"device", c.device}};
  for (auto& fact : environment_facts(threads)) report.facts.push_back(std::move(fact));
  return report;
}

// The seconds left of the grid, from those left of this run and those that the finished ones took.
class GridClock {
 public:
  void start_run(std::size_t runs_behind) {
    behind_ = static_cast<double>(runs_behind);
    run_ = Stopwatch();
  }
  void finish_run() {
    ++finished_;
    seconds_ += run_.seconds();
  }
  double left(double of_run) const {
    const double one = finished_ > 0 ? seconds_ / finished_ : run_.seconds() + of_run;
    return of_run + behind_ * one;
  }

 private:
  Stopwatch run_;
  double behind_ = 0, finished_ = 0, seconds_ = 0;
};

class Ablation {
 public:
  Ablation(const AblateArguments& arguments, AblationGrid grid, int threads)
      : grid_(std::move(grid)),
        out_(grid_.out),
        report_(make_report(grid_, threads)),
        threads_(threads),
        limited_(arguments.stop_after > 0),
        steps_left_(arguments.stop_after) {}

  /// False when stopped.
  bool run() {
    const auto missing = collect_finished();
    if (missing.empty()) {
      write();
      return true;
    }
    const TrainConfig& config = missing.front()->config;
    const RunData data = prepare_data(config, nullptr, say);
    const BatchOptions options = make_batch_options(config);
    const BatchSource test = test_source(data, options, grid_.test_limit);
    check_data(data.train_source(options).hash(), test.reviews());
    make_directories(out_);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if ((limited_ && steps_left_ <= 0) || interrupt_.requested()) return false;
      const AblationRun& run = *missing[i];
      progress_.part_of(fmt::format("{}/{} {} seed {}", grid_.runs.size() - missing.size() + i + 1,
                                    grid_.runs.size(), run.group.name, run.config.seed),
                        [this](double seconds) { return clock_.left(seconds); });
      clock_.start_run(missing.size() - i - 1);
      if (!train(run, data, test)) return false;
    }
    return true;
  }

  const AblationReport& report() const { return report_; }

 private:
  std::vector<const AblationRun*> collect_finished() {
    std::vector<const AblationRun*> missing;
    for (const auto& run : grid_.runs) {
      auto result = finished_run(run, out_ / run.folder);
      if (result)
        report_.results.push_back(*result);
      else
        missing.push_back(&run);
    }
    say(fmt::format("{} runs, {} of them finished; results in {}", grid_.runs.size(),
                    report_.results.size(), out_.string()));
    return missing;
  }

  // False when stopped.
  bool train(const AblationRun& run, const RunData& data, const BatchSource& test) {
    const fs::path folder = out_ / run.folder;
    const std::int64_t before = steps_done(folder);
    TrainerHooks hooks{.interrupted = [this] { return interrupt_.requested(); },
                       .progress = &progress_};
    if (limited_) hooks.last_step = before + steps_left_;
    const auto result = train_run(run, data, test, threads_, folder, hooks);
    if (!result) return false;
    clock_.finish_run();
    steps_left_ -= result->steps - before;
    report_.results.push_back(*result);
    write();
    return true;
  }

  void check_data(std::uint64_t hash, std::int64_t test_reviews) const {
    for (const auto& result : report_.results)
      norma::check(result.data_hash == hash && result.test_reviews == test_reviews, "ablate",
                   "{} must hold results of the same data; got {} seed {} of others, measured on "
                   "{} test reviews; give another --out",
                   out_.string(), result.group, result.seed, result.test_reviews);
  }

  void write() const {
    write_file_atomic(out_ / "results.md", to_markdown(report_));
    write_file_atomic(out_ / "results.json", to_json(report_));
  }

  AblationGrid grid_;
  fs::path out_;
  AblationReport report_;
  int threads_;
  bool limited_;             // by --stop-after:
  std::int64_t steps_left_;  // of this session
  InterruptGuard interrupt_;
  Progress progress_;
  GridClock clock_;
};

}  // namespace

void run_ablate(const AblateArguments& arguments) {
  AblationGrid grid = plan_ablation(arguments);
  const TrainConfig& config = grid.runs.front().config;
  const int threads = set_threads(config.threads);
  make_device(config.device);
  if (config.data.empty())
    say("No --data given: the sample inside the program, which shows that it works and no more.");
  Ablation ablation(arguments, std::move(grid), threads);
  if (!ablation.run()) return say("stopped and saved; the same command continues");
  std::fputs(to_markdown(ablation.report()).c_str(), stdout);
}

}  // namespace imdb
