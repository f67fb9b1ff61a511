#include "norma/optim/lr_scheduler.h"

#include "norma/core/factory.h"
#include "norma/optim/sgd.h"
#include "support/catch.h"

#include <cmath>
#include <numbers>

namespace norma::optim {
namespace {

using Catch::Contains;

std::vector<double> factors(const Schedule& schedule, std::int64_t count) {
  std::vector<double> result;
  for (std::int64_t step = 0; step < count; ++step) result.push_back(schedule(step));
  return result;
}
void require_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i] == Approx(expected[i]).margin(1e-12));
  }
}

TEST_CASE("schedules have their shapes", "[schedule]") {
  require_close(factors(constant_schedule(), 3), {1, 1, 1});
  require_close(factors(constant_schedule({.warmup_steps = 4}), 6), {0.25, 0.5, 0.75, 1, 1, 1});
  require_close(factors(linear_schedule({.warmup_steps = 2, .total_steps = 6}), 8),
                {0.5, 1, 1, 0.75, 0.5, 0.25, 0, 0});
  require_close(factors(linear_schedule({.total_steps = 4, .min_ratio = 0.2}), 6),
                {1, 0.8, 0.6, 0.4, 0.2, 0.2});
  const double half = 0.1 + 0.9 * 0.5;
  const double early = 0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi / 4));
  const double late = 0.1 + 0.9 * 0.5 * (1 + std::cos(3 * std::numbers::pi / 4));
  require_close(
      factors(cosine_schedule({.warmup_steps = 2, .total_steps = 6, .min_ratio = 0.1}), 8),
      {0.5, 1, 1, early, half, late, 0.1, 0.1});
  require_close(factors(inverse_sqrt_schedule({.warmup_steps = 2}), 8),
                {0.5, 1, std::sqrt(2.0 / 3), std::sqrt(0.5), std::sqrt(0.4), std::sqrt(1.0 / 3),
                 std::sqrt(2.0 / 7), 0.5});
  require_close(factors(inverse_sqrt_schedule({}), 4),
                {1, std::sqrt(0.5), std::sqrt(1.0 / 3), 0.5});
  require_close(factors(wsd_schedule({.warmup_steps = 2, .total_steps = 8, .decay_steps = 4}), 10),
                {0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0});
}

TEST_CASE("schedules are found by name", "[schedule]") {
  const ScheduleOptions options = {
      .warmup_steps = 3, .total_steps = 20, .min_ratio = 0.1, .decay_steps = 5};
  CHECK(factors(make_schedule("constant", options), 25) == factors(constant_schedule(options), 25));
  CHECK(factors(make_schedule("linear", options), 25) == factors(linear_schedule(options), 25));
  CHECK(factors(make_schedule("cosine", options), 25) == factors(cosine_schedule(options), 25));
  CHECK(factors(make_schedule("inverse_sqrt", options), 25) ==
        factors(inverse_sqrt_schedule(options), 25));
  CHECK(factors(make_schedule("wsd", options), 25) == factors(wsd_schedule(options), 25));
  CHECK_THROWS_WITH(make_schedule("step", options), Contains("got \"step\""));
}

TEST_CASE("schedules refuse phases that do not fit", "[schedule]") {
  CHECK_THROWS_WITH(cosine_schedule({.warmup_steps = 5, .total_steps = 5}),
                    Contains("total_steps must exceed the warm-up of 5"));
  CHECK_THROWS_WITH(linear_schedule({}), Contains("total_steps"));
  CHECK_THROWS_WITH(constant_schedule({.warmup_steps = -1}), Contains("warmup_steps"));
  CHECK_THROWS_WITH(linear_schedule({.total_steps = 5, .min_ratio = 1.5}), Contains("min_ratio"));
  CHECK_THROWS_WITH(wsd_schedule({.warmup_steps = 3, .total_steps = 5, .decay_steps = 3}),
                    Contains("decay_steps"));
  CHECK_THROWS_WITH(wsd_schedule({.total_steps = 5}), Contains("decay_steps"));
}

TEST_CASE("the scheduler sets every group's rate from its base", "[lr_scheduler]") {
  const Tensor a = ones({1}, {.requires_grad = true});
  const Tensor b = ones({1}, {.requires_grad = true});
  SGD optimizer({{.params = {a}, .lr = 0.4}, {.params = {b}}}, {.lr = 2.0});
  LRScheduler scheduler(optimizer, linear_schedule({.warmup_steps = 2, .total_steps = 4}));
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.2, 1.0});
  scheduler.step();
  CHECK(*optimizer.param_groups()[0].lr == 0.4);
  scheduler.step();
  scheduler.step();
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.2, 1.0});
  CHECK(scheduler.current_step() == 3);
  scheduler.step();
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.0, 0.0});
}

TEST_CASE("a saved schedule continues, whichever is loaded first", "[lr_scheduler]") {
  const Schedule schedule = cosine_schedule({.warmup_steps = 3, .total_steps = 20});
  const auto make = [] { return ones({1}, {.requires_grad = true}); };
  SGD first(TensorList{make()}, {.lr = 0.3});
  LRScheduler before(first, schedule);
  for (int i = 0; i < 7; ++i) before.step();

  SGD second(TensorList{make()}, {.lr = 0.3});
  LRScheduler after(second, schedule);
  const bool optimizer_first = GENERATE(true, false);
  if (optimizer_first) second.load_state_dict(first.state_dict());
  after.load_state_dict(before.state_dict());
  if (!optimizer_first) second.load_state_dict(first.state_dict());
  for (int i = 0; i < 15; ++i) {
    REQUIRE(after.get_last_lr() == before.get_last_lr());
    before.step();
    after.step();
  }
  SGD other({{.params = {make()}}, {.params = {make()}}});
  LRScheduler wrong(other, schedule);
  CHECK_THROWS_WITH(wrong.load_state_dict(before.state_dict()), Contains("must have shape [2]"));
}

TEST_CASE("the scheduler refuses what cannot work", "[lr_scheduler]") {
  SGD optimizer(TensorList{ones({1}, {.requires_grad = true})});
  CHECK_THROWS_WITH(LRScheduler(optimizer, nullptr), Contains("must be a function"));
  CHECK_THROWS_WITH(LRScheduler(optimizer, [](std::int64_t) { return std::nan(""); }),
                    Contains("finite factors"));
  LRScheduler scheduler(optimizer, constant_schedule());
  optimizer.add_param_group({.params = {ones({1}, {.requires_grad = true})}});
  CHECK_THROWS_WITH(scheduler.step(), Contains("groups must be added before"));
}

}  // namespace
}  // namespace norma::optim
