// Charts as SVG text, for the report.
#pragma once

#include "norm_lab/result.h"

#include <string>

namespace norm_lab {

/// A `<figure>` with title, legend, axes with ticks and labels, and the data.
std::string render_chart(const Chart& chart);

/// `text` with &, <, > and quotes as entities.
std::string escaped(const std::string& text);

}  // namespace norm_lab
