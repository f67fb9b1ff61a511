// The norms' CUDA kernels as rows of a table: what a launch takes, what is right, and how often it
// must read or write a tensor at least.
#pragma once

#include <norma/core/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace norma::benchmarks {

/// A kernel with the tensors of one call.
struct Launch {
  TensorList outputs;
  TensorList kept = {};                   ///< what `run` reads besides, statistics and workspace
  std::function<void(void* stream)> run;  ///< nothing but launches: it can be captured
};

struct Kernel {
  std::string name;  ///< norm/direction; pytorch.py has the same names
  double passes;     ///< over tensors of [rows, width]
  std::function<std::vector<Shape>(std::int64_t rows, std::int64_t width)> inputs;
  /// The outputs in float64 by the CPU, from inputs there.
  std::function<TensorList(const TensorList& inputs)> reference;
  /// From inputs on cuda(0) in one floating-point dtype.
  std::function<Launch(const TensorList& inputs)> prepare;
};

std::vector<Kernel> norm_kernels();

}  // namespace norma::benchmarks
