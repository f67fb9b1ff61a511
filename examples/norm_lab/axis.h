// One axis of a chart: its range, its ticks, and where a value lies on it.
#pragma once

#include <string>
#include <vector>

namespace norm_lab {

class Axis {
 public:
  /// `length` in SVG units. A logarithmic axis has no place for values that are not positive.
  Axis(double length, bool logarithmic) : length_(length), logarithmic_(logarithmic) {}

  void take(double value);
  /// Widens the range to round numbers, and to a size where all values were equal.
  void finish();
  bool shows(double value) const;
  /// Distance from the low end in SVG units.
  double at(double value) const;

  struct Tick {
    double value = 0.0;
    std::string text;
  };
  std::vector<Tick> ticks() const;
  double low() const;

 private:
  double coordinate(double value) const;

  double length_;
  bool logarithmic_;
  bool empty_ = true;
  double low_ = 0.0, high_ = 1.0;  // powers of ten where logarithmic
  double step_ = 1.0;
};

}  // namespace norm_lab
