// Stands for the CUDA backend in a build without it (NORMA_CUDA=OFF).
#include "norma/core/device_start.h"

namespace norma {

std::string detail::start_cuda() {
  return "this program was built without one: configure norma with -DNORMA_CUDA=ON, or EMULATE to "
         "run CUDA kernels on the CPU";
}

}  // namespace norma
