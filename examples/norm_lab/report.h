// The report: one HTML file with all experiments, and the table that the terminal shows.
#pragma once

#include "norm_lab/experiment.h"

#include <string>
#include <utility>
#include <vector>

namespace norm_lab {

/// An experiment that was run.
struct Finished {
  Experiment experiment;
  Result result;
  double seconds = 0.0;
};

/// Name and value of what the reader should know: date, machine, seed.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The page. All texts are escaped; charts are inline SVG; colours follow the reader's light or
/// dark setting.
std::string render_report(const std::vector<Finished>& all, const Settings& settings,
                          const Facts& facts);

/// Claim, rows and verdict for the terminal.
std::string render_text(const Finished& one);

/// "0.016", or "yes" where the expectation is one of yes and no.
std::string measured_text(const Row& row);

/// "norm_lab signal --seed 1".
std::string command_of(const Experiment& experiment, const Settings& settings);

}  // namespace norm_lab
