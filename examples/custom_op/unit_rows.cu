#include "unit_rows.cuh"

#include "unit_rows_launch.h"

namespace custom_op {

void launch_forward(const float* x, std::int64_t rows, std::int64_t width, float eps, float* y,
                    float* length) {
  if (rows == 0) return;
  norma::device::launch(
      {.name = "unit_rows_forward", .grid = {static_cast<unsigned>(rows)}, .block = {threads}},
      unit_rows_forward, x, width, eps, y, length);
}

void launch_backward(const float* y, const float* length, const float* dy, std::int64_t rows,
                     std::int64_t width, float* dx) {
  if (rows == 0) return;
  norma::device::launch(
      {.name = "unit_rows_backward", .grid = {static_cast<unsigned>(rows)}, .block = {threads}},
      unit_rows_backward, y, length, dy, width, dx);
}

}  // namespace custom_op
