// A benchmark is a row: what must be right before it is timed, what is timed, and how much work
// that is.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace norma::benchmarks {

struct Case {
  std::string name;            ///< operation/direction/shape; compare_pytorch.py has the same names
  std::function<void()> gate;  ///< throws when the result is wrong
  std::function<void()> prepare{};  ///< makes what `run` needs, where the gate does not
  std::function<void()> run;        ///< what is timed
  double bytes = 0.0;               ///< read and written at least; 0 when arithmetic is the limit
  double flops = 0.0;               ///< operations at least; 0 when memory is the limit
  double working_set =
      0.0;            ///< bytes of one of its large arrays: the size of the copy to compare with
  double goal = 0.0;  ///< fraction of the ceiling to reach
};

/// Elementwise operations, norms, softmax, matrix products, attention, AdamW, and what recording
/// an operation costs.
std::vector<Case> operation_cases();
/// Whole training steps (forward, backward, clipping and AdamW), and how they grow with length,
/// width, batch and depth.
std::vector<Case> training_cases();
/// Writes inputs, weights, loss and gradients of those steps without dropout, one safetensors file
/// each: compare_pytorch.py repeats them before it times anything.
void export_training(const std::string& folder);

}  // namespace norma::benchmarks
