#include "norma/core/factory.h"
#include "norma/ops/dropout.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {

void add_random_ops(OpTable& table) {
  OpEntry entry{.name = "dropout"};
  for (const double p : {0.3, 1.0}) {
    // A fixed place in the stream: every call of the sample draws one mask.
    const PhiloxState state{17, 1000};
    const OpFunction run = [=](const TensorList& in) {
      return TensorList{detail::dropout(in[0], p, state)};
    };
    const OpFunction twin = [=](const TensorList& in) {
      return TensorList{composite::dropout(in[0], p, state)};
    };
    const auto label = [p](const char* text) { return fmt::format("{}, p = {}", text, p); };
    entry.samples.push_back({label("matrix"), {random({5, 7}, 1)}, run, twin});
    entry.samples.push_back({label("empty"), {random({0, 3}, 2)}, run, twin});
    entry.samples.push_back({label("two threads"), {random({257, 263}, 3)}, run, twin, true});
  }
  entry.errors = {{"p", [] { dropout(ones({2}), 1.5); }, "p must be in [0, 1]; got 1.5"},
                  {"integers", [] { dropout(ones({2}, {.dtype = int64})); }, "got int64"}};
  entry.no_golden_because = "other random numbers";
  table.push_back(entry);
}

}  // namespace norma::test
