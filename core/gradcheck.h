// gradcheck and gradgradcheck: is the backward of a function the derivative of its forward?
//
//     const auto report = gradcheck([](const TensorList& in) { return Swish::apply(in[0], 1.5); },
//                                   {randn({3, 4}, {.dtype = float64, .requires_grad = true})});
//     if (!report) std::cerr << report.message;
//
// What is checked, for every input that requires grad:
//   - full mode: with random cotangents v, each element of v^T J against the central difference
//     (f(x + h e_i) - f(x - h e_i)) / 2h; fast mode: one number u^T (v^T J) per input, for a random
//     direction u;
//   - a zero cotangent gives exactly zero gradients;
//   - a second run gives the same bits (or within nondet_tol);
//   - non-contiguous inputs and non-contiguous or expanded cotangents give the same gradients.
// Cotangents are random, never ones: ones cannot see errors in softmax or in a norm. After
// torch.autograd.gradcheck.
#pragma once

#include "norma/core/tensor.h"

#include <string>
#include <type_traits>
#include <vector>

namespace norma {

struct GradcheckOptions {
  double eps = 1e-6;   ///< step h of the central difference
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol * |numeric| must hold
  double rtol = 1e-3;
  double nondet_tol = 0.0;  ///< largest difference allowed between two runs
  bool fast_mode = false;   ///< one random direction per input instead of every element
  int cotangents = 2;       ///< independent random cotangents
  bool check_noncontiguous = true;
  bool allow_non_differentiable = false;  ///< floating-point outputs may lack a derivative
  int report_worst = 5;                   ///< how many elements the message lists
  std::uint64_t seed = 0;                 ///< of cotangents and directions
};

/// One element (full mode) or direction (fast mode) whose values differ.
struct GradcheckFailure {
  std::size_t input = 0;  ///< index in `inputs`
  Shape index;            ///< of the element; empty in fast mode
  double analytic = 0.0;
  double numeric = 0.0;
  double relative_error = 0.0;
};

struct GradcheckReport {
  bool ok = true;
  std::string message;                  ///< what failed and where; empty when ok
  std::vector<GradcheckFailure> worst;  ///< largest errors first
  std::vector<std::string> warnings;    ///< such as single precision
  double max_relative_error = 0.0;      ///< over all that differ by more than atol
  explicit operator bool() const { return ok; }
};

using GradcheckFunction = std::function<TensorList(const TensorList& inputs)>;

namespace detail {
GradcheckReport gradcheck(const GradcheckFunction& function, const TensorList& inputs,
                          const GradcheckOptions& options);
GradcheckReport gradgradcheck(const GradcheckFunction& function, const TensorList& inputs,
                              const GradcheckOptions& options);

/// The values of `tensor` in a buffer with gaps: every dimension reversed in memory, every second
/// element used.
Tensor noncontiguous_copy(const Tensor& tensor);

/// A function of a TensorList that returns a Tensor or a TensorList, as the latter.
template <class F>
GradcheckFunction list_function(F function) {
  if constexpr (std::is_same_v<std::invoke_result_t<F, const TensorList&>, Tensor>)
    return [function](const TensorList& inputs) { return TensorList{function(inputs)}; };
  else
    return function;
}
}  // namespace detail

/// Compares analytic and numeric first derivatives of `function`, which must be deterministic (seed
/// inside it). Inputs should be float64; anything else gets a warning. Throws AutogradError when no
/// input requires grad.
template <class F>
GradcheckReport gradcheck(F function, const TensorList& inputs,
                          const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::list_function(std::move(function)), inputs, options);
}

/// The same for second derivatives: gradcheck of the gradient as a function of inputs and
/// cotangents.
template <class F>
GradcheckReport gradgradcheck(F function, const TensorList& inputs,
                              const GradcheckOptions& options = {}) {
  return detail::gradgradcheck(detail::list_function(std::move(function)), inputs, options);
}

}  // namespace norma
