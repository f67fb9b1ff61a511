// What holds for every operation whatever it computes: results repeat, threads do not matter,
// inputs stay as they were, nothing is recorded without need, bad input gets an error.
#include "support/catch.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/golden.h"
#include "support/missing_kernels.h"
#include "support/op_table.h"
#include "support/sanitizers.h"

#include "norma/core/autograd.h"
#include "norma/core/node.h"
#include "norma/ops/cpu/parallel.h"

#include <omp.h>

#include <algorithm>

namespace norma::test {
namespace {

TensorList forward_and_backward(const OpEntry& op, const OpSample& sample, DType dtype,
                                const Device& device = norma::cpu) {
  TensorList inputs;
  TensorList targets;
  for (const Tensor& input : sample.inputs) {
    inputs.push_back(on_device(converted(input, dtype), device));
    if (op.differentiable && inputs.back().defined() && inputs.back().is_floating_point())
      targets.push_back(inputs.back().requires_grad_());
  }
  TensorList results = sample.run(inputs);
  TensorList roots;
  TensorList seeds;
  for (const Tensor& output : results) {
    if (!output.requires_grad()) continue;
    roots.push_back(output);
    seeds.push_back(on_device(random(output.shape(), 5).to(output.dtype()), device));
  }
  if (!roots.empty())
    for (const Tensor& gradient :
         grad(roots, targets, {.grad_outputs = seeds, .allow_unused = true}))
      results.push_back(gradient);
  return results;
}

class ThreadGuard {
 public:
  explicit ThreadGuard(int threads) : previous_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadGuard() { omp_set_num_threads(previous_); }
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;

 private:
  int previous_;
};

/// Calls `check(op, sample, dtype)` for all there are.
template <class Check>
void for_each_sample(const Check& check) {
  for (const OpEntry& op : op_table()) DYNAMIC_SECTION(op.name) {
      for (const OpSample& sample : samples_with_sizes(op))
        for (const DType dtype : op.dtypes) {
          if (too_long_when_sanitized(sample, dtype)) continue;
          INFO(sample.label << ", " << dtype_name(dtype));
          check(op, sample, dtype);
        }
    }
}

/// Whether parallel_for gives the elements of an input, or of a result, to more than one thread.
bool is_worth_two_threads(const OpSample& sample) {
  const auto is_large = [](const Tensor& x) {
    return x.defined() && x.numel() >= 2 * parallel_grain;
  };
  if (std::any_of(sample.inputs.begin(), sample.inputs.end(), is_large)) return true;
  const TensorList outputs = sample.run(sample.inputs);
  return std::any_of(outputs.begin(), outputs.end(), is_large);
}

}  // namespace

TEST_CASE("every operation repeats bit for bit", "[suite][devices][values]") {
  for_each_sample([](const OpEntry& op, const OpSample& sample, DType dtype) {
    for (const Device& device : devices()) {
      if (takes_too_long(device, elements(sample))) continue;
      INFO(device.str());
      where_implemented(device, [&] {
        const TensorList first = forward_and_backward(op, sample, dtype, device);
        const TensorList second = forward_and_backward(op, sample, dtype, device);
        REQUIRE(first.size() == second.size());
        for (std::size_t i = 0; i < first.size(); ++i) CHECK(bitwise_equal(first[i], second[i]));
      });
    }
  });
}

TEST_CASE("results do not depend on the number of threads", "[suite][values]") {
  for_each_sample([](const OpEntry& op, const OpSample& sample, DType dtype) {
    TensorList one;
    TensorList three;
    {
      const ThreadGuard threads(1);
      one = forward_and_backward(op, sample, dtype);
    }
    {
      const ThreadGuard threads(3);
      three = forward_and_backward(op, sample, dtype);
    }
    REQUIRE(one.size() == three.size());
    // The matrix product library may split a sum by threads (a large K), which leaves roundings of
    // its terms. All else is bitwise equal.
    const double rounding = dtype == bfloat16 ? 8e-3 : dtype == float16 ? 1e-3 : 1e-5;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (op.thread_dependent)
        CHECK(close_to_largest(three[i], one[i], rounding));
      else
        CHECK(bitwise_equal(three[i], one[i]));
    }
  });
}

TEST_CASE("every operation has a sample that runs on several threads", "[suite]") {
  for (const OpEntry& op : op_table()) {
    if (!op.no_threads_because.empty()) continue;
    INFO(op.name);
    // Of norms: the museum's 65537 rows.
    CHECK((op.at_size || std::any_of(op.samples.begin(), op.samples.end(), is_worth_two_threads)));
  }
}

TEST_CASE("every operation has a sample without elements", "[suite]") {
  const auto is_empty = [](const Tensor& x) { return x.defined() && x.numel() == 0; };
  for (const OpEntry& op : op_table()) {
    if (!op.no_empty_because.empty()) continue;
    INFO(op.name);
    CHECK(std::any_of(op.samples.begin(), op.samples.end(), [&](const OpSample& sample) {
      return std::any_of(sample.inputs.begin(), sample.inputs.end(), is_empty);
    }));
  }
}

TEST_CASE("operations leave inputs alone and record only what is needed", "[suite]") {
  for_each_sample([](const OpEntry& op, const OpSample& sample, DType dtype) {
    const std::int64_t before = Node::live_count();
    TensorList inputs;
    for (const Tensor& input : sample.inputs) inputs.push_back(converted(input, dtype));
    const TensorList outputs = sample.run(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) CHECK(bitwise_equal(inputs[i], converted(sample.inputs[i], dtype)));
    for (const Tensor& output : outputs) CHECK_FALSE(output.requires_grad());
    CHECK(Node::live_count() == before);
    { const TensorList results = forward_and_backward(op, sample, dtype); }
    CHECK(Node::live_count() == before);
  });
}

TEST_CASE("bad input gets an error that says what, and what came", "[suite]") {
  for (const OpEntry& op : op_table()) {
    DYNAMIC_SECTION(op.name) {
      // Nearly every operation can be called wrongly; those that cannot say why.
      if (op.errors.empty()) CHECK_FALSE(op.no_errors_because.empty());
      for (const OpErrorSample& error : op.errors) {
        INFO(error.label);
        try {
          error.call();
          FAIL_CHECK("no error");
        } catch (const Error& e) {
          const std::string text = e.what();
          CHECK(text.starts_with("["));
          INFO(text);
          CHECK(text.find(error.message) != std::string::npos);
          CHECK(text.find("got") != std::string::npos);
        }
      }
    }
  }
}

}  // namespace norma::test
