// The launches, between unit_rows.cpp (tensors, any compiler) and unit_rows.cu (kernels, nvcc).
#pragma once

#include <cstdint>

namespace custom_op {

void launch_forward(const float* x, std::int64_t rows, std::int64_t width, float eps, float* y,
                    float* length);
void launch_backward(const float* y, const float* length, const float* dy, std::int64_t rows,
                     std::int64_t width, float* dx);

}  // namespace custom_op
