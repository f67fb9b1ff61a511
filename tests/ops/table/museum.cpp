#include "support/op_table.h"
#include "support/sanitizers.h"

#include <fmt/format.h>

namespace norma::test {

namespace {
/// A divisor of the rows that is not 1, where there is a small one.
std::int64_t outer_of(std::int64_t rows) { return rows % 3 == 0 ? 3 : 1; }
}  // namespace

Shape Size::rows_shape() const {
  const std::int64_t outer = outer_of(rows);
  switch (dims) {
    case 1:
      return {width};
    case 3:
      return {outer, rows / outer, width};
    case 4:
      return {outer, 1, rows / outer, width};
    default:
      return {rows, width};
  }
}

Shape Size::channels_shape() const {
  const std::int64_t outer = outer_of(rows);
  switch (dims) {
    case 3:
      return {outer, width, rows / outer};
    case 4:
      return {outer, width, 1, rows / outer};
    default:
      return {rows, width};
  }
}

std::string Size::label() const {
  return fmt::format("{} x {}, {} dimensions{}{}", rows, width, dims, weight ? "" : ", no weight",
                     bias ? "" : ", no bias");
}

const std::vector<Size>& museum() {
  static const std::vector<Size> sizes = [] {
    std::vector<Size> all;
    // All of the small ones, but for sanitizers; the options take turns.
    const std::vector<std::int64_t> widths =
        sanitized ? std::vector<std::int64_t>{1, 3, 33, 255, 1025}
                  : std::vector<std::int64_t>{1, 3, 31, 32, 33, 255, 768, 1023, 1024, 1025};
    for (const std::int64_t rows : {0, 1, 2, 31, 33})
      for (const std::int64_t width : widths) {
        if (sanitized && rows == 31) continue;
        const bool few = all.size() % 4 == 3;
        all.push_back({rows, width, 2, !few || all.size() % 8 == 3, !few || all.size() % 8 == 7});
      }
    for (const int dims : {1, 3, 4}) {
      const std::int64_t rows = dims == 1 ? 1 : 33;
      all.push_back({rows, 33, dims});
      all.push_back({rows, 255, dims, false, true});
      all.push_back({rows, 64, dims, false, false});
      all.push_back({rows, 1025, dims, true, false});
    }
    if (sanitized) return all;
    // Some of the large ones.
    all.insert(all.end(), {{0, 65536}, {2, 2048}, {33, 2048}, {2, 4096}, {3, 8192}, {2, 8197}});
    all.insert(all.end(), {{1, 65536}, {2, 65536, 2, true, false}, {65537, 1}, {65537, 3}});
    return all;
  }();
  return sizes;
}

std::vector<OpSample> samples_with_sizes(const OpEntry& op) {
  std::vector<OpSample> all = op.samples;
  if (!op.at_size) return all;
  for (const Size& size : {Size{33, 768}, Size{3, 1025}, Size{2, 8197}, Size{65537, 3}}) {
    if (sanitized && size.rows * size.width > 32768) continue;
    if (!op.not_at || op.not_at(size).empty()) all.push_back(op.at_size(size));
  }
  return all;
}

}  // namespace norma::test
