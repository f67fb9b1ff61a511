#include "norm_lab/result.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace norm_lab {

std::string number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  if (size >= 1e5) return fmt::format("{:.3g}", value);
  if (size >= 1000 || value == std::round(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

Expected about(double value, double relative) {
  const double amount = std::abs(value) * relative;
  return {value - amount, value + amount,
          fmt::format("{} ± {:.3g} %", number(value), 100 * relative)};
}
Expected near(double value, double amount) {
  return {value - amount, value + amount, fmt::format("{} ± {}", number(value), number(amount))};
}
Expected between(double low, double high) {
  return {low, high, fmt::format("{} … {}", number(low), number(high))};
}
Expected at_most(double high) { return {.high = high, .text = fmt::format("≤ {}", number(high))}; }
Expected at_least(double low) { return {.low = low, .text = fmt::format("≥ {}", number(low))}; }
Expected within_factor(double value, double factor) {
  return {value / factor, value * factor,
          fmt::format("{} within ×{}", number(value), number(factor))};
}
Expected is(bool truth) {
  const double value = truth ? 1.0 : 0.0;
  return {value, value, truth ? "yes" : "no"};
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::confirmed:
      return "confirmed";
    case Verdict::refuted:
      return "refuted";
    case Verdict::depends:
      break;
  }
  return "depends";
}

Verdict judge(const Result& result) {
  const auto claims = [](const Row& row) { return row.tests == Tests::claim; };
  const bool any_claim = std::any_of(result.rows.begin(), result.rows.end(), claims);
  int agree = 0, differ = 0;
  for (const Row& row : result.rows)
    if (!any_claim || claims(row)) ++(row.agrees() ? agree : differ);
  if (differ == 0) return Verdict::confirmed;
  return agree > 0 && !result.depends_on.empty() ? Verdict::depends : Verdict::refuted;
}

}  // namespace norm_lab
