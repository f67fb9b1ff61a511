#include "imdb/run_folder.h"

#include <algorithm>
#include <tuple>

#include "imdb/checkpoint.h"
#include "imdb/files.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;
using norma::check;
using norma::FileError;
using norma::ValueError;

constexpr char kRuns[] = "runs";
constexpr char kCheckpoints[] = "checkpoints";
constexpr char kPrefix[] = "step-";
constexpr char kReplaced[] = ".replaced";  // a checkpoint that a new one of its step replaces
constexpr char kTemporary[] = "tmp-";      // not complete yet, or no more

bool is_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kStateFile, ignored);
}

bool starts_with(const fs::path& name, const char* prefix) {
  return name.string().rfind(prefix, 0) == 0;
}

// By step; of one step, the one that is being replaced comes first.
bool older(const fs::path& a, const fs::path& b) {
  const auto key = [](const fs::path& path) {
    const fs::path name = path.filename();
    return std::tuple(name.stem().string().size(), name.stem(), !name.has_extension());
  };
  return key(a) < key(b);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    paths.push_back(it->path());
  return paths;
}

// Only what a run wrote; a user's other files in the folder stay.
void remove_run(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {kCheckpoints, "events", "metrics.json", "report.html", "config.toml"}) {
    fs::remove_all(folder / name, error);
    check<WriteError>(!error, "write", "cannot remove {}: {}", (folder / name).string(),
                      error.message());
  }
}

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  check<WriteError>(!error, "write", "cannot rename {} to {}: {}", from.string(), to.string(),
                    error.message());
}

// What is half removed must not look like a checkpoint, so its name goes first.
void remove_checkpoint(const fs::path& folder) {
  const fs::path temporary = folder.parent_path() / (kTemporary + folder.filename().string());
  std::error_code error;
  fs::remove_all(temporary, error);
  fs::rename(folder, temporary, error);
  if (!error) fs::remove_all(temporary, error);
}

// Puts a complete folder under the name `target`. Wherever this ends, by a power failure say, a
// complete checkpoint of the step stands under its name or as `.replaced`, and is found.
void put_in_place(const fs::path& complete, const fs::path& target) {
  const fs::path replaced = target.string() + kReplaced;
  if (is_checkpoint(target)) {
    remove_checkpoint(replaced);
    rename_folder(target, replaced);
  } else {
    std::error_code error;
    fs::remove_all(target, error);  // whatever has taken the name; the rename below reports it
  }
  rename_folder(complete, target);
  sync_to_disk(target.parent_path());
  remove_checkpoint(replaced);
}

}  // namespace

bool holds_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "metrics.json", ignored) || !list_checkpoints(folder).empty();
}

void check_run_folder(const std::string& out) {
  check(!holds_run(out), "train",
        "--out must not hold a run already; got {}; continue it with --resume {}, or replace it "
        "with --overwrite",
        out, out);
  std::error_code ignored;
  check(!fs::exists(out, ignored) || fs::is_directory(out, ignored), "train",
        "--out must be a folder; got the file {}", out);
}

fs::path prepare_run_folder(const std::string& out, const std::string& name, bool overwrite) {
  fs::path folder = out;
  if (out.empty()) {
    make_directories(kRuns);
    // The one that creates the folder has it: two runs may start at once.
    std::error_code error;
    folder = fs::path(kRuns) / name;
    for (int n = 2; !fs::create_directory(folder, error); ++n) {
      check<WriteError>(!error || fs::exists(folder), "write", "cannot create folder {}: {}",
                        folder.string(), error.message());
      folder = fs::path(kRuns) / fmt::format("{}-{}", name, n);
    }
  } else {
    if (overwrite && holds_run(folder)) remove_run(folder);
    check_run_folder(out);
    make_directories(folder);
  }
  return folder;
}

fs::path write_checkpoint_folder(const fs::path& run, std::int64_t step, std::size_t keep,
                                 const std::function<void(const fs::path&)>& fill) {
  const fs::path parent = run / kCheckpoints;
  const fs::path target = parent / fmt::format("{}{:08}", kPrefix, step);
  const fs::path temporary = parent / fmt::format("{}{:08}", kTemporary, step);
  std::error_code error;
  for (const auto& path : entries(parent))  // of a run that was killed
    if (starts_with(path.filename(), kTemporary)) fs::remove_all(path, error);
  make_directories(temporary);
  try {
    fill(temporary);
    for (const auto& file : entries(temporary)) sync_to_disk(file);
    sync_to_disk(temporary);
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  put_in_place(temporary, target);
  const auto all = list_checkpoints(run);
  for (std::size_t i = 0; i + keep < all.size(); ++i) remove_checkpoint(all[i]);
  return target;
}

std::vector<fs::path> list_checkpoints(const fs::path& run) {
  std::vector<fs::path> found;
  for (const auto& path : entries(run / kCheckpoints))
    if (starts_with(path.filename(), kPrefix) && is_checkpoint(path)) found.push_back(path);
  std::sort(found.begin(), found.end(), older);
  return found;
}

fs::path find_checkpoint(const std::string& path, const char* program, const fs::path& runs) {
  if (!path.empty()) {
    std::error_code error;  // exists() without it throws where a folder may not be entered
    const bool exists = fs::exists(path, error);
    check<FileError>(!error, "checkpoint", "cannot open {}: {}", path, error.message());
    check<FileError>(exists, "checkpoint", "{} does not exist; train first, or name a run", path);
    if (is_checkpoint(path)) return path;
    const auto all = list_checkpoints(path);
    check<FileError>(!all.empty(), "checkpoint",
                     "{} must be a run or a checkpoint; found neither {} nor {}/{}*", path,
                     kStateFile, kCheckpoints, kPrefix);
    return all.back();
  }
  fs::path newest;
  fs::file_time_type newest_time;
  for (const auto& run : entries(runs)) {
    const auto all = list_checkpoints(run);
    if (all.empty()) continue;
    std::error_code error;
    const auto time = fs::last_write_time(all.back(), error);
    if (newest.empty() || time > newest_time) {
      newest = all.back();
      newest_time = time;
    }
  }
  check<FileError>(
      !newest.empty(), "checkpoint",
      "no trained model in ./{}; train one with `{} train`, or name a run with --model",
      runs.string(), program);
  return newest;
}

fs::path run_of_checkpoint(const fs::path& checkpoint) {
  auto folder = fs::weakly_canonical(checkpoint);
  if (!folder.has_filename()) folder = folder.parent_path();
  const auto parent = folder.parent_path();
  return parent.filename() == kCheckpoints ? parent.parent_path() : folder;
}

}  // namespace imdb
