// A project of its own that knows nothing but norma's public target and umbrella header.
#include <norma/norma.h>

#include <cstdio>
#include <string>

int main() {
  try {
    norma::check<norma::ShapeError>(false, "consumer", "must be {}; got {}", 1, 2);
  } catch (const norma::Error& error) {
    std::puts(error.what());
    return std::string(error.what()) == "[consumer] must be 1; got 2" ? 0 : 1;
  }
  return 1;
}
