#include "imdb/svg_chart.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace imdb {
namespace {

// Geometry in SVG units; the page scales the whole.
constexpr double kWidth = 560, kHeight = 300;
constexpr double kLeft = 58, kRight = 14, kTop = 14, kBottom = 44;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

// A range that has a size also when all values are equal.
Range widened(Range r) {
  if (r.empty()) return {0, 1};
  if (r.high - r.low < 1e-12 * std::max(1.0, std::abs(r.high))) {
    const double margin = r.high == 0 ? 1 : std::abs(r.high) * 0.1;
    r.low -= margin;
    r.high += margin;
  }
  return r;
}

struct Axes {
  Range x, y;
  double px(double value) const { return kLeft + (value - x.low) / (x.high - x.low) * kPlotWidth; }
  double py(double value) const {
    return kTop + kPlotHeight - (value - y.low) / (y.high - y.low) * kPlotHeight;
  }
};

// 1, 2 or 5 times a power of ten, nearest to range / count.
double nice_step(double range, int count) {
  const double raw = range / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double fraction = raw / power;
  const int digit = fraction < 1.5 ? 1 : fraction < 3.5 ? 2 : fraction < 7.5 ? 5 : 10;
  return power * digit;
}

std::vector<double> ticks_of_step(double low, double high, double step) {
  std::vector<double> ticks;
  for (double n = std::ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; ++n)
    ticks.push_back(n == 0 ? 0 : n * step);
  return ticks;
}

std::string tick_text(double value, double step, bool percent) {
  if (percent) return fmt::format("{:.{}f} %", 100 * value, 100 * step < 0.999 ? 1 : 0);
  if (value != 0 && (std::abs(value) < 1e-3 || std::abs(value) >= 1e5))
    return fmt::format("{:.2g}", value);
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

std::string line_path(const Series& series, const Axes& axes) {
  std::string path;
  bool pen_down = false;
  for (std::size_t i = 0; i < series.x.size() && i < series.y.size(); ++i) {
    if (!std::isfinite(series.y[i])) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", axes.px(series.x[i]),
                        axes.py(series.y[i]));
    pen_down = true;
  }
  return path;
}

std::string render_grid(const Chart& chart, const Axes& axes, const std::vector<double>& x_ticks,
                        const std::vector<double>& y_ticks) {
  const auto step = [](const std::vector<double>& ticks) {
    return ticks.size() > 1 ? ticks[1] - ticks[0] : 1.0;
  };
  std::string svg;
  for (const double tick : y_ticks)
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kLeft, kWidth - kRight, axes.py(tick), kLeft - 7, axes.py(tick) + 3.5,
        tick_text(tick, step(y_ticks), chart.percent));
  for (const double tick : x_ticks)
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        axes.px(tick), kTop + kPlotHeight, kTop + kPlotHeight + 4, kTop + kPlotHeight + 17,
        tick_text(tick, step(x_ticks), false));
  svg += fmt::format("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>\n", kLeft, kTop,
                     kTop + kPlotHeight, kWidth - kRight);
  svg +=
      fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                  kLeft + kPlotWidth / 2, kHeight - 8, chart.x_label);
  svg += fmt::format(
      "<text class=\"label\" transform=\"translate(13 {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      kTop + kPlotHeight / 2, chart.y_label);
  return svg;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  if (!(high > low) || !std::isfinite(high - low)) return {low};
  return ticks_of_step(low, high, nice_step(high - low, count));
}

void downsample(std::vector<double>& x, std::vector<double>& y, std::size_t limit) {
  const std::size_t count = std::min(x.size(), y.size());
  if (limit == 0 || count <= limit) return;
  const std::size_t group = (count + limit - 1) / limit;
  std::size_t out = 0;
  for (std::size_t begin = 0; begin < count; begin += group, ++out) {
    const std::size_t end = std::min(count, begin + group);
    double sum_x = 0, sum_y = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum_x += x[i];
      sum_y += y[i];
    }
    x[out] = sum_x / static_cast<double>(end - begin);
    y[out] = sum_y / static_cast<double>(end - begin);
  }
  x.resize(out);
  y.resize(out);
}

std::vector<double> smooth(const std::vector<double>& y, double horizon) {
  const double decay = 1 - 1 / std::max(1.0, horizon);
  std::vector<double> result;
  result.reserve(y.size());
  double sum = 0, weight = 0;
  for (const double value : y) {
    if (std::isfinite(value)) {
      sum = decay * sum + (1 - decay) * value;
      weight = decay * weight + (1 - decay);
    }
    result.push_back(weight > 0 ? sum / weight : value);
  }
  return result;
}

std::string render_chart(const Chart& chart) {
  Axes axes;
  for (const auto& series : chart.series) {
    for (const double x : series.x) axes.x.take(x);
    for (const double y : series.y) axes.y.take(y);
  }
  axes.x = widened(axes.x);
  axes.y = widened(axes.y);
  // Round limits outwards, so that no line touches the frame.
  if (chart.x_from_zero) axes.x.low = std::min(0.0, axes.x.low);
  if (chart.from_zero) axes.y.low = std::min(0.0, axes.y.low);
  const double y_step = nice_step(axes.y.high - axes.y.low, 5);
  axes.y.low = std::floor(axes.y.low / y_step + 1e-9) * y_step;
  axes.y.high = std::ceil(axes.y.high / y_step - 1e-9) * y_step;
  const auto y_ticks = ticks_of_step(axes.y.low, axes.y.high, y_step);
  const auto x_ticks = nice_ticks(axes.x.low, axes.x.high, 6);

  std::string legend;
  if (chart.series.size() > 1)
    for (const auto& series : chart.series)
      legend += fmt::format("<span class=\"key {}{}\"></span>{} ", series.css,
                            series.faint ? " faint" : "", series.name);
  std::string html = fmt::format(
      "<figure><figcaption>{}<span class=\"legend\">{}</span></figcaption>\n", chart.title, legend);
  html += fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                      kHeight, chart.title);
  html += render_grid(chart, axes, x_ticks, y_ticks);
  for (const auto& series : chart.series) {
    html += fmt::format("<path class=\"line {}{}\" d=\"{}\"/>\n", series.css,
                        series.faint ? " faint" : "", line_path(series, axes));
    if (!series.markers) continue;
    for (std::size_t i = 0; i < series.x.size() && i < series.y.size(); ++i)
      if (std::isfinite(series.y[i]))
        html += fmt::format(
            "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: {}</title>"
            "</circle>\n",
            series.css, axes.px(series.x[i]), axes.py(series.y[i]), series.name,
            chart.percent ? fmt::format("{:.2f} %", 100 * series.y[i])
                          : fmt::format("{:.4g}", series.y[i]));
  }
  return html + "</svg></figure>\n";
}

}  // namespace imdb
