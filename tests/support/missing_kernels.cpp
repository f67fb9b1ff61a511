#include "support/missing_kernels.h"

#include "norma/core/error.h"

#include <cstdio>
#include <map>
#include <string>

namespace norma::test {

namespace {

struct Missing {
  std::map<std::string, int> kernels;
  ~Missing() {
    for (const auto& [kernel, samples] : kernels)
      std::fprintf(stderr, "left out %d times: the GPU has no kernel for %s\n", samples,
                   kernel.c_str());
  }
};

}  // namespace

bool where_implemented(const Device& device, const std::function<void()>& check) {
  if (!device.is_cuda()) {
    check();
    return true;
  }
  static Missing missing;
  try {
    check();
    return true;
  } catch (const NotImplementedError& error) {
    ++missing.kernels[error.operation()];
    return false;
  }
}

}  // namespace norma::test
