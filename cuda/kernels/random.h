// Random numbers on the device: element i depends on (seed, offset, i) alone, and is made of the
// same random words as on the CPU (ops/cpu/random.cpp).
#pragma once

#include "norma/core/philox.h"

#include <cstdint>

namespace norma::cuda_kernels {

/// In [low, high).
template <class T>
void uniform(const PhiloxState& state, double low, double high, std::int64_t count, T* out,
             void* stream);
template <class T>
void normal(const PhiloxState& state, double mean, double std, std::int64_t count, T* out,
            void* stream);
/// In [low, high): the CPU's bit for bit.
template <class T>
void randint(const PhiloxState& state, std::int64_t low, std::int64_t high, std::int64_t count,
             T* out, void* stream);

}  // namespace norma::cuda_kernels
