#include "norm_lab/axis.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace norm_lab {

namespace {

/// 1, 2 or 5 times a power of ten, near range / count.
double nice_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double fraction = raw / power;
  return power * (fraction < 1.5 ? 1 : fraction < 3.5 ? 2 : fraction < 7.5 ? 5 : 10);
}

std::string linear_text(double value, double step) {
  if (value != 0 && (std::abs(value) >= 1e5 || step < 1e-4)) return fmt::format("{:.2g}", value);
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

/// 0.01, 1, 100 as they are; 10⁻⁸ and the like raised.
std::string power_text(double exponent) {
  const int power = static_cast<int>(std::lround(exponent));
  if (power >= -3 && power <= 3)
    return fmt::format("{:.{}f}", std::pow(10.0, power), power < 0 ? -power : 0);
  return fmt::format("10<tspan dy=\"-4\" font-size=\"8.5\">{}{}</tspan>", power < 0 ? "−" : "",
                     std::abs(power));
}

}  // namespace

double Axis::coordinate(double value) const { return logarithmic_ ? std::log10(value) : value; }

bool Axis::shows(double value) const {
  return std::isfinite(value) && (!logarithmic_ || value > 0.0);
}

void Axis::take(double value) {
  if (!shows(value)) return;
  const double at = coordinate(value);
  low_ = empty_ ? at : std::min(low_, at);
  high_ = empty_ ? at : std::max(high_, at);
  empty_ = false;
}

void Axis::finish() {
  const double smallest = logarithmic_ ? 1.0 : 1e-12 * std::max(1.0, std::abs(high_));
  if (high_ - low_ < smallest) {
    const double margin = logarithmic_ ? 0.5 : std::max(0.1 * std::abs(high_), 0.1);
    low_ -= margin;
    high_ += margin;
  }
  step_ = nice_step(high_ - low_, 5);
  if (logarithmic_) step_ = std::max(1.0, std::round(step_));
  low_ = std::floor(low_ / step_ + 1e-9) * step_;
  high_ = std::ceil(high_ / step_ - 1e-9) * step_;
}

double Axis::at(double value) const {
  return (coordinate(value) - low_) / (high_ - low_) * length_;
}

double Axis::low() const { return logarithmic_ ? std::pow(10.0, low_) : low_; }

std::vector<Axis::Tick> Axis::ticks() const {
  std::vector<Tick> result;
  const auto count = static_cast<int>(std::lround((high_ - low_) / step_));
  for (int i = 0; i <= count; ++i) {
    double at = low_ + i * step_;
    if (std::abs(at) < 1e-9 * step_) at = 0.0;
    if (logarithmic_)
      result.push_back({std::pow(10.0, at), power_text(at)});
    else
      result.push_back({at, linear_text(at, step_)});
  }
  return result;
}

}  // namespace norm_lab
