// What an experiment gives: a claim, what was expected, what was measured, and charts of it.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace norm_lab {

/// The values that would agree with an expectation, and how that is written.
struct Expected {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string text;
  bool holds(double measured) const { return measured >= low && measured <= high; }
};
/// value, give or take a fraction of it.
Expected about(double value, double relative);
/// value, give or take an amount.
Expected near(double value, double amount);
Expected between(double low, double high);
Expected at_most(double high);
Expected at_least(double low);
/// Within a factor of the value, either way: for what is known by its order of magnitude.
Expected within_factor(double value, double factor);
/// 1 for true, 0 for false.
Expected is(bool truth);

/// What a row of an experiment tests.
enum class Tests {
  claim,      ///< a statement of the source: what decides the verdict
  reference,  ///< what the project's own derivation or earlier run says; differing is worth a look
};

struct Row {
  std::string quantity;  ///< with its unit
  Expected expected;
  double measured = 0.0;
  Tests tests = Tests::claim;
  bool agrees() const { return expected.holds(measured); }
};

enum class Verdict {
  confirmed,  ///< every statement of the claim agrees with what was measured
  refuted,    ///< not every one
  depends,    ///< some do and some do not, and the experiment knows on what it depends
};
const char* to_string(Verdict verdict);

/// One curve, or one group of bars.
struct Series {
  std::string name;
  std::vector<double> x;  ///< of bars: ignored
  std::vector<double> y;  ///< values that are not finite make gaps
  bool dashed = false;    ///< a claim or a theory, not a measurement
};

enum class ChartKind { line, bars, heat };

struct Chart {
  ChartKind kind = ChartKind::line;
  std::string title = {};
  std::string x_label = {};  ///< with unit
  std::string y_label = {};
  bool log_x = false;
  bool log_y = false;
  std::vector<Series> series = {};  ///< lines; bars: one value a category; heat: one row each
  std::vector<std::string> categories = {};  ///< of bars, and the columns of a heat map
  std::string value_label = {};              ///< of a heat map: what the colour means
  bool low_is_good = true;                   ///< of a heat map
};

/// A table beside the expectations; the first column names the row.
struct Table {
  std::string title = {};
  std::vector<std::string> columns = {};
  std::vector<std::vector<std::string>> rows = {};
};

struct Result {
  std::string claim;
  std::string source;   ///< who says so, and the numbers R… and L… of the list of claims
  std::string setting;  ///< sizes, steps, seeds
  std::vector<Row> rows = {};
  std::string depends_on = {};  ///< said where the verdict is `depends`
  std::string finding = {};     ///< one or two sentences for the reader, about how to read it
  std::vector<Chart> charts = {};
  std::vector<Table> tables = {};
};

/// From the rows that test the claim; where none does, from all.
Verdict judge(const Result& result);

/// 0.0163, 1.6e-12, 47.2: four significant digits.
std::string number(double value);

}  // namespace norm_lab
