// Where a run keeps its results:
//
//     runs/imdb-tiny-seed1/
//       config.toml  metrics.json  report.html
//       events/                     for TensorBoard
//       checkpoints/step-00000352/  the last two; each complete in itself
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace imdb {

/// Throws norma::ValueError when `out` holds a run already or is a file. Touches nothing.
void check_run_folder(const std::string& out);

/// The folder for a new run: `out`, or the first free one of runs/NAME, runs/NAME-2, …. A run in
/// `out` is removed when `overwrite` is set, otherwise refused as by `check_run_folder`.
std::filesystem::path prepare_run_folder(const std::string& out, const std::string& name,
                                         bool overwrite);

/// Whether the folder holds a run (metrics or checkpoints).
bool holds_run(const std::filesystem::path& folder);

/// Writes a checkpoint as a whole or not at all: `fill` puts files into a temporary folder, all are
/// flushed to the disk, then it is renamed to `checkpoints/step-N`. One of the same step stays as
/// `step-N.replaced` until then, so that at every instant the newest checkpoint is complete.
/// Afterwards only the newest `keep` remain. A failure leaves the earlier checkpoints and throws
/// (WriteError for the disk).
std::filesystem::path write_checkpoint_folder(
    const std::filesystem::path& run, std::int64_t step, std::size_t keep,
    const std::function<void(const std::filesystem::path&)>& fill);

/// Complete checkpoints of a run, oldest first.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& run);

/// The checkpoint that `path` means: itself, or the newest of the run there; empty: that of the
/// newest run in `runs`. Throws norma::FileError that says what was looked for, and that `program`
/// makes one.
std::filesystem::path find_checkpoint(const std::string& path, const char* program = "imdb",
                                      const std::filesystem::path& runs = "runs");

/// The run that a checkpoint belongs to: the folder above `checkpoints/`, or its own.
std::filesystem::path run_of_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace imdb
