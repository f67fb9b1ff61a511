#include "norma/ops/softmax.h"
#include "norma/core/factory.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {

namespace {

using Function = Tensor (*)(const Tensor&, std::int64_t);

OpEntry entry_of(const char* name, Function function, Function twin) {
  OpEntry entry{.name = name};
  const auto add = [&](const char* label, const Shape& shape, std::int64_t dim,
                       bool large = false) {
    entry.samples.push_back({label,
                             {random(shape, 1, -3.0, 3.0)},
                             [=](const TensorList& in) { return TensorList{function(in[0], dim)}; },
                             [=](const TensorList& in) { return TensorList{twin(in[0], dim)}; },
                             large});
  };
  add("rows", {3, 5}, -1);
  add("columns", {4, 3}, 0);
  add("middle dimension", {2, 5, 3}, 1);
  add("width 1", {3, 1}, 1);
  add("vector with a tail", {13}, 0);
  add("scalar", {}, 0);
  add("no rows", {0, 4}, 1);
  add("no columns", {4, 0}, 1);
  for (const std::int64_t width : {31, 33, 1023, 4096}) add("wide rows", {33, width}, 1, true);
  entry.errors = {{"dim",
                   [=] {
                     function(ones({2, 3}), 2);
                   },
                   name},
                  {"integers", [=] { function(ones({2}, {.dtype = int64}), 0); }, "got int64"}};
  return entry;
}

}  // namespace

void add_softmax_ops(OpTable& table) {
  table.push_back(entry_of("softmax", softmax, composite::softmax));
  table.push_back(entry_of("log_softmax", log_softmax, composite::log_softmax));
}

}  // namespace norma::test
