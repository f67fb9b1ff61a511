#include "norma/ops/matmul_precision.h"

#include <atomic>

namespace norma {

namespace {
std::atomic<Float32MatmulPrecision> chosen{Float32MatmulPrecision::highest};
}

void set_float32_matmul_precision(Float32MatmulPrecision precision) { chosen = precision; }
Float32MatmulPrecision float32_matmul_precision() { return chosen; }

}  // namespace norma
