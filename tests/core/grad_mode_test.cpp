#include "norma/core/grad_mode.h"

#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "support/catch.h"

#include <thread>

namespace norma {
namespace {

/// Runs `body` in another thread. Nothing of Catch2 in it: before version 3.9 that is not
/// thread-safe.
template <typename Body>
void in_another_thread(const Body& body) {
  std::thread(body).join();
}

TEST_CASE("grad mode is each thread's own", "[grad_mode]") {
  const NoGradGuard no_grad;
  bool recorded = false;
  Tensor sum;
  const Tensor x = ones({2}, {.requires_grad = true});
  in_another_thread([&] {
    recorded = GradMode::is_enabled();
    sum = x + x;
    GradMode::set_enabled(true);
  });
  CHECK(recorded);
  CHECK(sum.requires_grad());
  CHECK_FALSE(GradMode::is_enabled());  // what the other thread set stays there
  CHECK_FALSE((x + x).requires_grad());
}

TEST_CASE("anomaly mode is each thread's own", "[grad_mode]") {
  const DetectAnomalyGuard detect;
  bool detected = true;
  in_another_thread([&] {
    detected = AnomalyMode::is_enabled();
    AnomalyMode::set_enabled(false);
  });
  CHECK_FALSE(detected);
  CHECK(AnomalyMode::is_enabled());
}

}  // namespace
}  // namespace norma
