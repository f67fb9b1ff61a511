#include "norm_lab/measure.h"

#include "norma/core/grad_mode.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

#include <algorithm>
#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

/// Figures are taken in float64, off the tape.
Tensor precise(const Tensor& x) { return x.detach().cpu().to(float64); }
double logarithm(double value) { return std::log(value); }

}  // namespace

double rms(const Tensor& x) { return std::sqrt(precise(x).square().mean().item()); }
double average(const Tensor& x) { return precise(x).mean().item(); }
double deviation(const Tensor& x) { return norma::std(precise(x), {}, 0).item(); }
double length(const Tensor& x) { return vector_norm(precise(x)).item(); }
double largest(const Tensor& x) { return amax(abs(precise(x))).item(); }
double difference(const Tensor& a, const Tensor& b) { return largest(precise(a) - precise(b)); }

double turn(const Tensor& a, const Tensor& b) {
  // From the distance of the unit vectors: 1 minus a cosine would cancel.
  return (normalize(precise(a)) - normalize(precise(b))).square().sum({-1}).mean().item() / 2.0;
}

double mean_cosine(const Tensor& rows) {
  const Tensor unit = normalize(precise(rows));
  const auto count = static_cast<double>(rows.size(0));
  return (unit.matmul(unit.t()).sum().item() - count) / (count * (count - 1.0));
}

std::vector<double> counted(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i + 1);
  return values;
}

Line fit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0.0, mean_y = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0.0, xy = 0.0, yy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return {xy / xx, yy > 0.0 ? xy * xy / (xx * yy) : 1.0};
}

Line fit_power(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> log_x(x.size()), log_y(y.size());
  std::transform(x.begin(), x.end(), log_x.begin(), logarithm);
  std::transform(y.begin(), y.end(), log_y.begin(), logarithm);
  return fit(log_x, log_y);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

nn::Monitor::Filter of_type(const std::string& type_name) {
  return [type_name](const nn::NamedModule& one) { return one.module->type_name() == type_name; };
}

nn::Monitor::Filter named(const std::string& ending) {
  return [ending](const nn::NamedModule& one) { return one.name.ends_with(ending); };
}

std::vector<double> collect(const nn::Monitor& monitor, double nn::ActivationStats::*figure) {
  std::vector<double> values;
  for (const nn::ActivationStats& stats : monitor.activations()) values.push_back(stats.*figure);
  return values;
}

}  // namespace norm_lab
