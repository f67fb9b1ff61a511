// One run of `imdb ablate`: the Trainer, epoch by epoch, and a file that says what came out.
#pragma once

#include <filesystem>
#include <optional>

#include "imdb/ablate_grid.h"
#include "imdb/ablate_result.h"
#include "imdb/run_data.h"
#include "imdb/trainer.h"

namespace imdb {

/// The result of a run that is over, from its folder. Throws norma::ValueError when the folder
/// holds a run of other options than `run`, norma::FileError when its files are damaged.
std::optional<AblationResult> finished_run(const AblationRun& run,
                                           const std::filesystem::path& folder);

/// The step of the last checkpoint in the folder, or 0.
std::int64_t steps_done(const std::filesystem::path& folder);

/// Trains `run` in its folder, from its last checkpoint if there is one. Nothing when stopped by
/// `hooks`, all saved. A run that diverges is a result like any other. Afterwards the checkpoints
/// are removed: a grid of them is gigabytes.
std::optional<AblationResult> train_run(const AblationRun& run, const RunData& data,
                                        const BatchSource& test, std::int64_t threads,
                                        const std::filesystem::path& folder,
                                        const TrainerHooks& hooks);

}  // namespace imdb
