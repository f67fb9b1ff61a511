// Line charts as SVG text, for report.html.
#pragma once

#include <string>
#include <vector>

namespace imdb {

/// One line of a chart.
struct Series {
  std::string name;  ///< in the legend; must be free of markup
  std::string css;   ///< class that gives the colour: "c1", "c2"
  std::vector<double> x;
  std::vector<double> y;  ///< values that are not finite make gaps
  bool markers = false;   ///< a dot at each point
  bool faint = false;     ///< raw data behind a smoothed line
};

struct Chart {
  std::string title;
  std::string x_label;  ///< with unit
  std::string y_label;
  std::vector<Series> series;
  bool percent = false;     ///< y values are fractions, shown in percent
  bool from_zero = false;   ///< the y axis starts at 0
  bool x_from_zero = true;  ///< so does the x axis
};

/// A `<figure>` with title, axes with ticks and labels, grid, legend and lines.
std::string render_chart(const Chart& chart);

/// Round numbers (1, 2 or 5 times a power of ten) that cover [low, high], about `count` of them.
std::vector<double> nice_ticks(double low, double high, int count);

/// Means of consecutive groups, so that at most `limit` points remain. x is the group's middle.
void downsample(std::vector<double>& x, std::vector<double>& y, std::size_t limit);

/// Exponential moving average with bias correction; `horizon` is the number of points it looks
/// back.
std::vector<double> smooth(const std::vector<double>& y, double horizon);

}  // namespace imdb
