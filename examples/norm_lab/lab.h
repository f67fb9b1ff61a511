// Runs experiments and writes their report.
#pragma once

#include "norm_lab/experiment.h"

#include <filesystem>
#include <string>
#include <vector>

namespace norm_lab {

struct LabOptions {
  Settings settings;
  std::filesystem::path out = "runs/norm_lab.html";
  bool print = true;  ///< results on standard output, progress on standard error
};

/// Runs the experiments one after the other; the report is complete after each of them, so that a
/// run that is stopped leaves what it found. Throws norma::FileError where it cannot be written.
void run_lab(const std::vector<Experiment>& chosen, const LabOptions& options);

}  // namespace norm_lab
