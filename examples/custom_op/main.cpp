// Tests the kernels of unit_rows against the definition, forward and backward. Without a GPU they
// run in the emulator, in every order of threads: a missing barrier would show as a difference.
#include "unit_rows.h"

#include <norma/cuda/emulator/schedule.h>

#include <cmath>
#include <iostream>

using namespace norma;

namespace {

/// Without CUDA the kernels run on memory of the host; the emulated device of NORMA_CUDA=EMULATE
/// adds canaries around it.
Device kernel_device() { return is_available(cuda(0)) ? cuda(0) : cpu; }

/// As std::max, but NaN stays: what a missing barrier may leave is the NaN of unwritten memory.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

/// The largest difference of outputs and gradients between the kernels and the definition.
double largest_difference(std::int64_t rows, std::int64_t width) {
  const Tensor values = randn({rows, width});
  const Tensor cotangent = randn({rows, width});
  const auto run = [&](const Device& device, const auto& function) {
    const Tensor x = values.to(device).requires_grad_();
    const Tensor y = function(x);
    const Tensor dx = grad({y}, {x}, {.grad_outputs = {cotangent.to(device)}})[0];
    return TensorList{y.detach().cpu(), dx.cpu()};
  };
  const TensorList kernels =
      run(kernel_device(), [](const Tensor& x) { return custom_op::unit_rows(x, 1e-6); });
  const TensorList expected =
      run(cpu, [](const Tensor& x) { return custom_op::composite(x, 1e-6); });
  double largest = 0.0;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    largest = larger(largest, amax((kernels[i] - expected[i]).abs()).item());
  return largest;
}

}  // namespace

int main() {
#ifdef CUSTOM_OP_WITH_CUDA
  if (!is_available(cuda(0))) {
    std::cout << "unit_rows was compiled for a GPU, and here is none\n";
    return 0;
  }
#endif
  manual_seed(1);
  double worst = 0.0;
  for (const emulator::Schedule& schedule : emulator::all_schedules()) {
    const emulator::ScheduleGuard guard(schedule);
    for (const std::int64_t width : {1, 31, 32, 33, 128, 1025})
      worst = larger(worst, largest_difference(3, width));
  }
  std::cout << "unit_rows: largest difference from its definition: " << worst << '\n';
  return worst < 1e-5 ? 0 : 1;
}
