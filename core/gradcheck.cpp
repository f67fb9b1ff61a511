#include "norma/core/gradcheck.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"

#include <algorithm>
#include <cmath>

namespace norma {

namespace {

using Values = std::vector<double>;

/// Random numbers of the check itself: they leave the default generator alone.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_{seed, 0} {}
  /// In [0.5, 1.5) with a random sign: never near zero, so that nothing hides.
  double next() {
    const double u = uniform_from_bits(philox_word(state_, word_++));
    return u < 0.5 ? -0.5 - 2.0 * u : 2.0 * u - 0.5;
  }
  Tensor like(const Tensor& tensor) {
    Values values(static_cast<std::size_t>(tensor.numel()));
    for (double& value : values) value = next();
    return from_values(values, tensor.shape(),
                       {.dtype = tensor.dtype(), .device = tensor.device()});
  }

 private:
  PhiloxState state_;
  std::uint64_t word_ = 0;
};

bool differentiable(const Tensor& tensor) { return tensor.defined() && tensor.is_floating_point(); }

class Checker {
 public:
  Checker(const GradcheckFunction& function, const TensorList& inputs,
          const GradcheckOptions& options)
      : function_(function), options_(options), random_(options.seed) {
    check<AutogradError>(options.eps > 0.0 && options.cotangents > 0, "gradcheck",
                         "eps and cotangents must be positive; got {} and {}", options.eps,
                         options.cotangents);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& input = inputs[i];
      if (!differentiable(input) || !input.requires_grad()) {
        inputs_.push_back(input);
        continue;
      }
      if (input.dtype() != DType::float64)
        report_.warnings.push_back(
            fmt::format("input {} is {}: central differences need float64; expect false alarms, or "
                        "a tolerance that hides errors",
                        i, input.dtype()));
      const Tensor copy = empty(input.shape(), {.dtype = input.dtype(), .device = input.device()});
      detail::copy(copy, input);
      inputs_.push_back(copy.requires_grad_());
      checked_.push_back(i);
    }
    check<AutogradError>(
        !checked_.empty(), "gradcheck",
        "at least one floating-point input must require grad; got none; call requires_grad_()");
  }

  GradcheckReport run() {
    const TensorList outputs = evaluate(inputs_);
    if (std::none_of(outputs.begin(), outputs.end(),
                     [](const Tensor& t) { return t.requires_grad(); }))
      return fail("no output depends on an input that requires grad: the graph is cut");
    check_cut_outputs(outputs);
    for (int round = 0; round < options_.cotangents && report_.ok; ++round)
      check_derivatives(outputs);
    if (report_.ok) check_zero_cotangent(outputs);
    if (report_.ok && options_.check_noncontiguous) check_layouts(outputs);
    return std::move(report_);
  }

 private:
  TensorList evaluate(const TensorList& inputs) const {
    const EnableGradGuard recording;
    return function_(inputs);
  }

  GradcheckReport fail(std::string message) {
    report_.ok = false;
    report_.message = "[gradcheck] " + std::move(message);
    for (const std::string& warning : report_.warnings)
      report_.message += "\n  warning: " + warning;
    return report_;
  }

  /// A floating-point output without history must not change with the inputs.
  void check_cut_outputs(const TensorList& outputs) {
    if (options_.allow_non_differentiable) return;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!differentiable(outputs[i]) || outputs[i].requires_grad()) continue;
      std::vector<Values> v(outputs.size());
      v[i] = random_.like(outputs[i]).to_vector<double>();
      for (const std::size_t k : checked_) {
        const Tensor& input = inputs_[k];
        const Values original = input.to_vector<double>();
        double offset = 0.0;
        const double numeric = central_difference(v, [&](double sign) {
          offset += sign;
          Values x = original;
          for (double& value : x) value += offset * options_.eps;
          write(input, offset == 0.0 ? original : x);
        });
        if (std::abs(numeric) <= options_.atol) continue;
        fail(fmt::format(
            "output {} changes with input {} (derivative {:.6g}) but has no history: its graph is "
            "cut; where that is meant, set allow_non_differentiable",
            i, k, numeric));
        return;
      }
    }
  }

  TensorList cotangents_of(const TensorList& outputs) {
    TensorList cotangents;
    for (const Tensor& output : outputs)
      cotangents.push_back(output.requires_grad() ? random_.like(output) : Tensor());
    return cotangents;
  }

  /// v^T J for each checked input; zeros where an input is not used.
  std::vector<Values> analytic(const TensorList& inputs, const TensorList& cotangents) const {
    const TensorList outputs = evaluate(inputs);
    TensorList roots;
    TensorList seeds;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || !cotangents[i].defined()) continue;
      roots.push_back(outputs[i]);
      seeds.push_back(cotangents[i]);
    }
    TensorList targets;
    for (const std::size_t i : checked_) targets.push_back(inputs[i]);
    const TensorList gradients =
        grad(roots, targets, {.grad_outputs = seeds, .allow_unused = true});
    std::vector<Values> result;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      result.push_back(gradients[i].defined()
                           ? gradients[i].to_vector<double>()
                           : Values(static_cast<std::size_t>(targets[i].numel()), 0.0));
    return result;
  }

  /// v . (f(x + delta) - f(x - delta)) / 2h, with x changed by `move(sign)`.
  template <class Move>
  double central_difference(const std::vector<Values>& v, const Move& move) const {
    const NoGradGuard no_grad;
    move(+1.0);
    const TensorList plus = function_(inputs_);
    std::vector<Values> high;
    for (const Tensor& output : plus)
      high.push_back(differentiable(output) ? output.to_vector<double>() : Values());
    move(-2.0);
    const TensorList minus = function_(inputs_);
    double sum = 0.0;
    for (std::size_t i = 0; i < minus.size(); ++i) {
      if (v[i].empty()) continue;
      const Values low = minus[i].to_vector<double>();
      for (std::size_t j = 0; j < low.size(); ++j) sum += v[i][j] * (high[i][j] - low[j]);
    }
    move(+1.0);
    return sum / (2.0 * options_.eps);
  }

  void check_derivatives(const TensorList& outputs) {
    const TensorList cotangents = cotangents_of(outputs);
    const std::vector<Values> gradients = analytic(inputs_, cotangents);
    if (!same(gradients, analytic(inputs_, cotangents), options_.nondet_tol)) {
      fail(
          "two backward runs on the same inputs differ: the function is not repeatable; seed "
          "random numbers inside of it");
      return;
    }
    std::vector<Values> v;
    for (const Tensor& cotangent : cotangents)
      v.push_back(cotangent.defined() ? cotangent.to_vector<double>() : Values());
    for (std::size_t k = 0; k < checked_.size(); ++k) {
      if (options_.fast_mode)
        compare_direction(k, gradients[k], v);
      else
        compare_elements(k, gradients[k], v);
    }
    summarize();
  }

  void compare_elements(std::size_t k, const Values& gradient, const std::vector<Values>& v) {
    const Tensor& input = inputs_[checked_[k]];
    Values x = input.to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double original = x[i];
      double offset = 0.0;
      const double numeric = central_difference(v, [&](double sign) {
        offset += sign;
        x[i] = offset == 0.0 ? original : original + offset * options_.eps;
        write(input, x);
      });
      Shape index;
      std::int64_t rest = static_cast<std::int64_t>(i);
      for (const std::int64_t step : contiguous_strides(input.shape())) {
        index.push_back(rest / step);
        rest %= step;
      }
      compare({checked_[k], index, gradient[i], numeric, 0.0});
    }
  }

  void compare_direction(std::size_t k, const Values& gradient, const std::vector<Values>& v) {
    const Tensor& input = inputs_[checked_[k]];
    const Values original = input.to_vector<double>();
    Values direction(original.size());
    for (double& value : direction) value = random_.next();
    double analytic_value = 0.0;
    for (std::size_t i = 0; i < gradient.size(); ++i) analytic_value += gradient[i] * direction[i];
    double offset = 0.0;
    const double numeric = central_difference(v, [&](double sign) {
      offset += sign;
      Values x = original;
      for (std::size_t i = 0; offset != 0.0 && i < x.size(); ++i)
        x[i] += offset * options_.eps * direction[i];
      write(input, x);
    });
    compare({checked_[k], {}, analytic_value, numeric, 0.0});
  }

  static void write(const Tensor& tensor, const Values& values) {
    detail::copy(tensor, from_values(values, tensor.shape()));
  }

  void compare(GradcheckFailure element) {
    const double difference = std::abs(element.analytic - element.numeric);
    const double scale = std::max(std::abs(element.analytic), std::abs(element.numeric));
    element.relative_error = scale > 0.0 ? difference / scale : 0.0;
    const bool holds = difference <= options_.atol + options_.rtol * std::abs(element.numeric);
    // Where both are tiny the relative error says nothing.
    if (difference > options_.atol || !holds)
      report_.max_relative_error = std::max(report_.max_relative_error, element.relative_error);
    if (!holds) report_.worst.push_back(element);  // also for NaN
  }

  void summarize() {
    if (report_.worst.empty()) return;
    std::vector<GradcheckFailure>& worst = report_.worst;
    std::stable_sort(worst.begin(), worst.end(),
                     [](const GradcheckFailure& a, const GradcheckFailure& b) {
                       const auto error = [](const GradcheckFailure& f) {
                         return std::abs(f.analytic - f.numeric);
                       };
                       return std::isnan(error(a)) ? !std::isnan(error(b)) : error(a) > error(b);
                     });
    std::string text = fmt::format(
        "analytic and numeric gradient differ in {} element{} (atol {}, rtol {}, eps {}); the "
        "worst:",
        worst.size(), worst.size() == 1 ? "" : "s", options_.atol, options_.rtol, options_.eps);
    worst.resize(std::min<std::size_t>(
        worst.size(), static_cast<std::size_t>(std::max(options_.report_worst, 1))));
    for (const GradcheckFailure& f : worst)
      text += fmt::format(
          "\n  input {} {}: analytic {:.10g}, numeric {:.10g}, relative error {:.3g}", f.input,
          options_.fast_mode ? std::string("in a random direction") : "element " + f.index.str(),
          f.analytic, f.numeric, f.relative_error);
    fail(std::move(text));
  }

  void check_zero_cotangent(const TensorList& outputs) {
    TensorList zeros;
    for (const Tensor& output : outputs)
      zeros.push_back(output.requires_grad() ? zeros_like(output) : Tensor());
    const std::vector<Values> gradients = analytic(inputs_, zeros);
    for (std::size_t k = 0; k < gradients.size(); ++k)
      for (const double value : gradients[k])
        if (value != 0.0) {  // NaN too
          fail(fmt::format("a zero cotangent must give a zero gradient; input {} got {}",
                           checked_[k], value));
          return;
        }
  }

  void check_layouts(const TensorList& outputs) {
    const TensorList cotangents = cotangents_of(outputs);
    const std::vector<Values> expected = analytic(inputs_, cotangents);
    TensorList inputs = inputs_;
    for (const std::size_t i : checked_)
      inputs[i] = detail::noncontiguous_copy(inputs_[i]).requires_grad_();
    compare_layout("non-contiguous inputs", expected, analytic(inputs, cotangents));
    TensorList strided;
    for (const Tensor& cotangent : cotangents)
      strided.push_back(cotangent.defined() ? detail::noncontiguous_copy(cotangent) : Tensor());
    compare_layout("a non-contiguous cotangent", expected, analytic(inputs_, strided));
    // What sum().backward() sends: one value, stride 0.
    TensorList expanded;
    TensorList dense;
    for (const Tensor& output : outputs) {
      if (!output.requires_grad()) {
        expanded.emplace_back();
        dense.emplace_back();
        continue;
      }
      const TensorOptions like{.dtype = output.dtype(), .device = output.device()};
      expanded.push_back(detail::make_view(full({1}, 0.75, like), output.shape(),
                                           Shape::filled(output.dim(), 0), 0));
      dense.push_back(full(output.shape(), 0.75, like));
    }
    compare_layout("an expanded cotangent", analytic(inputs_, dense), analytic(inputs_, expanded));
  }

  void compare_layout(const char* what, const std::vector<Values>& expected,
                      const std::vector<Values>& actual) {
    // Another layout may take another summation order: a few ulps, nothing more.
    const double rounding = report_.warnings.empty() ? 1e-9 : 1e-2;
    if (report_.ok && !same(expected, actual, std::max(options_.nondet_tol, rounding)))
      fail(
          fmt::format("{} must give the same gradients as contiguous ones; got others; make inputs "
                      "contiguous before a "
                      "kernel reads them",
                      what));
  }

  static bool same(const std::vector<Values>& a, const std::vector<Values>& b, double tolerance) {
    for (std::size_t k = 0; k < a.size(); ++k)
      for (std::size_t i = 0; i < a[k].size(); ++i) {
        if (std::isnan(a[k][i]) && std::isnan(b[k][i])) continue;
        if (!(std::abs(a[k][i] - b[k][i]) <= tolerance * std::max(1.0, std::abs(a[k][i]))))
          return false;
      }
    return true;
  }

  GradcheckFunction function_;
  GradcheckOptions options_;
  Random random_;
  TensorList inputs_;
  std::vector<std::size_t> checked_;
  GradcheckReport report_;
};

}  // namespace

namespace detail {

Tensor noncontiguous_copy(const Tensor& tensor) {
  Shape reversed = tensor.shape();
  std::reverse(reversed.begin(), reversed.end());
  reversed.push_back(2);
  // NaN in the gaps: whoever reads one shows it.
  const Tensor buffer = full(reversed, tensor.is_floating_point() ? std::nan("") : 0.0,
                             {.dtype = tensor.dtype(), .device = tensor.device()});
  Shape strides;
  for (std::int64_t i = tensor.dim() - 1; i >= 0; --i) strides.push_back(buffer.strides()[i]);
  Tensor view = make_view(buffer, tensor.shape(), strides, 1);
  copy(view, tensor);
  return view;
}

GradcheckReport gradcheck(const GradcheckFunction& function, const TensorList& inputs,
                          const GradcheckOptions& options) {
  return Checker(function, inputs, options).run();
}

GradcheckReport gradgradcheck(const GradcheckFunction& function, const TensorList& inputs,
                              const GradcheckOptions& options) {
  // The gradient as a function of the inputs and of one cotangent per differentiable output.
  Random random(options.seed + 1);
  TensorList all = inputs;
  std::vector<std::size_t> roots;
  {
    const EnableGradGuard recording;
    const TensorList outputs = function(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      roots.push_back(i);
      all.push_back(random.like(outputs[i]).requires_grad_());
    }
  }
  const std::size_t input_count = inputs.size();
  const auto gradient = [&function, &roots, input_count](const TensorList& places) {
    const EnableGradGuard recording;  // numeric differences run it under no_grad
    TensorList leading(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(input_count));
    TensorList targets;
    for (Tensor& input : leading) {
      if (!differentiable(input) || !input.requires_grad()) continue;
      input = detail::alias(input);
      targets.push_back(input);
    }
    const TensorList outputs = function(leading);
    TensorList starts;
    TensorList cotangents;
    for (std::size_t k = 0; k < roots.size(); ++k) {
      starts.push_back(outputs[roots[k]]);
      cotangents.push_back(places[input_count + k]);
    }
    TensorList gradients = grad(
        starts, targets, {.grad_outputs = cotangents, .create_graph = true, .allow_unused = true});
    for (std::size_t k = 0; k < gradients.size(); ++k)
      if (!gradients[k].defined()) gradients[k] = zeros_like(targets[k]);
    return gradients;
  };
  return gradcheck(gradient, all, options);
}

}  // namespace detail

}  // namespace norma
