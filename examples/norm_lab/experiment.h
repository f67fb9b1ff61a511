// An experiment: one small file in experiments/, with one function, registered in experiments.cpp.
#pragma once

#include "norm_lab/result.h"
#include "norma/core/device.h"

#include <cstdint>
#include <vector>

namespace norm_lab {

struct Settings {
  std::uint64_t seed = 1;
  norma::Device device = norma::cpu;  ///< cuda(0) takes the large sizes
  bool quick = false;                 ///< a few steps only: shows that it works, proves nothing
  bool large() const { return device.is_cuda(); }
};

struct Experiment {
  const char* name;   ///< the subcommand
  const char* group;  ///< the chapter of the report
  const char* title;
  Result (*run)(const Settings& settings);
};

/// All, in the order of the report.
const std::vector<Experiment>& experiments();

}  // namespace norm_lab
