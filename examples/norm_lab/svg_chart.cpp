#include "norm_lab/svg_chart.h"

#include "norm_lab/axis.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace norm_lab {

namespace {

// Geometry in SVG units; the page scales the whole.
constexpr double kWidth = 560, kHeight = 300;
constexpr double kLeft = 62, kRight = 16, kTop = 14, kBottom = 46;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kCellHeight = 22;

std::string color(std::size_t series) { return fmt::format("c{}", series % 8 + 1); }

std::string text(const char* css, double x, double y, const char* anchor,
                 const std::string& content) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                     css, x, y, anchor, content);
}

std::string labels(const Chart& chart, double height) {
  return text("label", kLeft + kPlotWidth / 2, height - 6, "middle", escaped(chart.x_label)) +
         fmt::format(
             "<text class=\"label\" transform=\"translate(14 {:.1f}) rotate(-90)\" "
             "text-anchor=\"middle\">{}</text>\n",
             kTop + (height - kTop - kBottom) / 2, escaped(chart.y_label));
}

std::string grid(const Axis& y) {
  std::string svg;
  for (const Axis::Tick& tick : y.ticks()) {
    const double at = kTop + kPlotHeight - y.at(tick.value);
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       kLeft, kWidth - kRight, at, at);
    svg += text("tick", kLeft - 7, at + 3.5, "end", tick.text);
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n", kLeft, kTop, kTop + kPlotHeight,
                     kWidth - kRight);
  return svg;
}

std::string lines(const Chart& chart) {
  Axis x(kPlotWidth, chart.log_x), y(kPlotHeight, chart.log_y);
  for (const Series& series : chart.series) {
    for (const double value : series.x) x.take(value);
    for (const double value : series.y) y.take(value);
  }
  x.finish();
  y.finish();
  std::string svg = grid(y) + labels(chart, kHeight);
  for (const Axis::Tick& tick : x.ticks()) {
    const double at = kLeft + x.at(tick.value);
    svg += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>",
                       at, kTop + kPlotHeight, kTop + kPlotHeight + 4);
    svg += text("tick", at, kTop + kPlotHeight + 17, "middle", tick.text);
  }
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    std::string path, dots;
    bool pen_down = false;
    for (std::size_t k = 0; k < std::min(series.x.size(), series.y.size()); ++k) {
      if (!x.shows(series.x[k]) || !y.shows(series.y[k])) {
        pen_down = false;
        continue;
      }
      const double px = kLeft + x.at(series.x[k]), py = kTop + kPlotHeight - y.at(series.y[k]);
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", px, py);
      pen_down = true;
      if (series.y.size() <= 30 && !series.dashed)
        dots += fmt::format(
            "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {}</title>"
            "</circle>",
            color(i), px, py, escaped(series.name), number(series.y[k]));
    }
    svg += fmt::format("<path class=\"line {}{}\" d=\"{}\"/>{}\n", color(i),
                       series.dashed ? " dashed" : "", path, dots);
  }
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>", kWidth,
                     kHeight, escaped(chart.title), svg);
}

std::string bars(const Chart& chart) {
  Axis y(kPlotHeight, chart.log_y);
  if (!chart.log_y) y.take(0.0);
  for (const Series& series : chart.series)
    for (const double value : series.y) y.take(value);
  y.finish();
  std::string svg = grid(y) + labels(chart, kHeight);
  const double slot =
      kPlotWidth / static_cast<double>(std::max<std::size_t>(1, chart.categories.size()));
  const double width =
      slot * 0.72 / static_cast<double>(std::max<std::size_t>(1, chart.series.size()));
  const double base = kTop + kPlotHeight - y.at(chart.log_y ? y.low() : std::max(0.0, y.low()));
  for (std::size_t k = 0; k < chart.categories.size(); ++k) {
    const double left = kLeft + slot * (static_cast<double>(k) + 0.14);
    svg += text("tick", left + slot * 0.36, kTop + kPlotHeight + 17, "middle",
                escaped(chart.categories[k]));
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const Series& series = chart.series[i];
      if (k >= series.y.size() || !y.shows(series.y[k])) continue;
      const double top = kTop + kPlotHeight - y.at(series.y[k]);
      svg += fmt::format(
          "<rect class=\"bar {}{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
          "<title>{}, {}: {}</title></rect>",
          color(i), series.dashed ? " open" : "", left + width * static_cast<double>(i),
          std::min(top, base), width * 0.94, std::max(1.0, std::abs(base - top)),
          escaped(chart.categories[k]), escaped(series.name), number(series.y[k]));
    }
  }
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>", kWidth,
                     kHeight, escaped(chart.title), svg);
}

/// One row of cells for each series; the figure stands in the cell, so that colour is not needed.
std::string heat(const Chart& chart) {
  constexpr double left = 128;
  const double plot = kWidth - left - kRight;
  const double height = kTop + kCellHeight * static_cast<double>(chart.series.size()) + kBottom;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Series& series : chart.series)
    for (const double value : series.y)
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
  const double slot = plot / static_cast<double>(std::max<std::size_t>(1, chart.categories.size()));
  std::string svg;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    const double top = kTop + kCellHeight * static_cast<double>(i);
    svg += text("tick", left - 7, top + kCellHeight / 2 + 4, "end", escaped(series.name));
    for (std::size_t k = 0; k < series.y.size(); ++k) {
      const bool finite = std::isfinite(series.y[k]);
      double share = finite && high > low ? (series.y[k] - low) / (high - low) : 1.0;
      if (finite && chart.low_is_good) share = 1.0 - share;
      svg += fmt::format(
          "<rect class=\"{}\" style=\"--share:{:.2f}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{}\"/>",
          finite ? "cell" : "cell lost", share, left + slot * static_cast<double>(k) + 1, top + 1,
          slot - 2, kCellHeight - 2);
      svg += text(finite ? "value" : "value", left + slot * (static_cast<double>(k) + 0.5),
                  top + kCellHeight / 2 + 4, "middle",
                  finite ? fmt::format("{:.3g}", series.y[k]) : "diverged");
    }
  }
  for (std::size_t k = 0; k < chart.categories.size(); ++k)
    svg += text("tick", left + slot * (static_cast<double>(k) + 0.5), height - kBottom + 16,
                "middle", escaped(chart.categories[k]));
  svg += text("label", left + plot / 2, height - 8, "middle", escaped(chart.x_label));
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n{}</svg>",
                     kWidth, height, escaped(chart.title), svg);
}

std::string legend(const Chart& chart) {
  if (chart.kind == ChartKind::heat) return escaped(chart.value_label);
  if (chart.series.size() < 2) return "";
  std::string html;
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    html += fmt::format("<span class=\"key {}{}\"></span>{} ", color(i),
                        chart.series[i].dashed ? " dashed" : "", escaped(chart.series[i].name));
  return html;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  return result;
}

std::string render_chart(const Chart& chart) {
  const std::string svg = chart.kind == ChartKind::line   ? lines(chart)
                          : chart.kind == ChartKind::bars ? bars(chart)
                                                          : heat(chart);
  return fmt::format(
      "<figure><figcaption>{}<span class=\"legend\">{}</span></figcaption>\n{}</figure>\n",
      escaped(chart.title), legend(chart), svg);
}

}  // namespace norm_lab
