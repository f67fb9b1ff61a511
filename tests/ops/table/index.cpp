#include "norma/ops/index.h"
#include "norma/core/factory.h"
#include "norma/ops/matmul.h"
#include "norma/ops/view.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {
namespace {

/// Integers in [0, bound), the same every time.
Tensor indices(const Shape& shape, std::int64_t bound, std::uint64_t seed = 31) {
  return random(shape, seed, 0.0, static_cast<double>(bound)).to(int64);
}

OpSample sample(const char* label, const TensorList& inputs, const OpFunction& run) {
  return {label, inputs, run};
}

/// One with elements for two threads.
OpSample many(const char* label, const TensorList& inputs, const OpFunction& run) {
  return {.label = label, .inputs = inputs, .run = run, .large = true};
}

void add_picking(OpTable& table) {
  const Tensor x = random({3, 4}, 1);
  const auto gather_along = [](std::int64_t dim) {
    return [dim](const TensorList& in) { return TensorList{gather(in[0], dim, in[1])}; };
  };
  table.push_back(
      {.name = "gather",
       .samples = {sample("rows", {random({3, 4}, 1), indices({3, 5}, 4)}, gather_along(1)),
                   sample("columns", {random({3, 4}, 2), indices({2, 4}, 3)}, gather_along(0)),
                   sample("smaller index", {random({3, 4, 2}, 3), indices({2, 3, 2}, 4)},
                          gather_along(1)),
                   sample("vector", {random({5}, 4), indices({3}, 5)}, gather_along(-1)),
                   sample("scalar", {random({}, 4), indices({}, 1)}, gather_along(0)),
                   sample("no indices", {random({3, 4}, 4), indices({3, 0}, 1)}, gather_along(1)),
                   many("two threads", {random({257, 263}, 5), indices({257, 263}, 263)},
                        gather_along(1))},
       .errors = {
           {"range",
            [=] {
              gather(x, 1, full({3, 1}, 4, {.dtype = int64}));
            },
            "[gather] every index must be in [0, 4); got 4 at position [0, 0]"},
           {"rank", [=] { gather(x, 1, indices({3}, 2)); }, "index must have the 2 dimensions"},
           {"size",
            [=] {
              gather(x, 1, indices({4, 1}, 2));
            },
            "no larger than input outside of dim 1"},
           {"dtype", [=] { gather(x, 1, x); }, "indices must be int64 or int32; got float64"}}});
  const auto select_along = [](std::int64_t dim) {
    return [dim](const TensorList& in) { return TensorList{index_select(in[0], dim, in[1])}; };
  };
  table.push_back(
      {.name = "index_select",
       .samples = {sample("rows", {random({3, 4}, 1), indices({5}, 3)}, select_along(0)),
                   sample("middle", {random({2, 4, 3}, 2), indices({2}, 4)}, select_along(1)),
                   sample("last", {random({2, 4}, 3), indices({3}, 4)}, select_along(-1)),
                   sample("no indices", {random({2, 4}, 3), indices({0}, 1)}, select_along(1)),
                   many("two threads", {random({63, 263}, 4), indices({257}, 63)},
                        select_along(0))},
       .errors = {{"range",
                   [=] {
                     index_select(x, 0, tensor({0, -1}));
                   },
                   "got -1 at position [1]"},
                  {"rank",
                   [=] {
                     index_select(x, 0, indices({1, 1}, 1));
                   },
                   "index must be a vector"}}});
}

void add_placing(OpTable& table) {
  const Tensor x = random({3, 4}, 1);
  using Scatter = Tensor (*)(const Tensor&, std::int64_t, const Tensor&, const Tensor&);
  const auto add = [&](const char* name, Scatter f, const Tensor& rows, const Tensor& many_rows) {
    const auto along = [f](std::int64_t dim) {
      return [=](const TensorList& in) { return TensorList{f(in[0], dim, in[1], in[2])}; };
    };
    const std::string prefix = std::string("[") + name + "] ";
    table.push_back(
        {.name = name,
         .samples = {sample("rows", {random({3, 4}, 1), rows, random({3, 2}, 2)}, along(1)),
                     sample("columns", {random({4, 3}, 3), tensor({{2, 0, 1}}), random({1, 3}, 4)},
                            along(0)),
                     sample("smaller index",
                            {random({3, 4, 3}, 5), tensor({{3, 1}, {0, 2}}).unsqueeze(-1),
                             random({2, 3, 2}, 6)},
                            along(1)),
                     sample("no indices",
                            {random({2, 3}, 7), indices({2, 0}, 1), random({2, 2}, 8)}, along(1)),
                     many("two threads, rows",
                          {random({257, 263}, 9), many_rows, random({257, 263}, 10)}, along(1)),
                     many("two threads, columns",
                          {random({263, 257}, 9), many_rows.t(), random({263, 257}, 10)},
                          along(0))},
         .errors = {{"range",
                     [=] {
                       f(x, 1, full({3, 1}, 7, {.dtype = int64}), x);
                     },
                     prefix + "every index must be in [0, 4); got 7"},
                    {"source",
                     [=] {
                       f(x, 1, indices({3, 4}, 4), random({3, 2}, 1));
                     },
                     "index must be no larger than src"},
                    {"dtype",
                     [=] {
                       f(x, 1, indices({3, 4}, 4), x.to(float32));
                     },
                     "src must have the dtype of input"}}});
  };
  // scatter has a gradient only where no two indices of a row agree.
  const Tensor backwards = arange(262, -1, -1).unsqueeze(0).expand({257, 263});
  add("scatter", scatter, tensor({{3, 0}, {1, 2}, {0, 1}}), backwards);
  add("scatter_add", scatter_add, tensor({{3, 3}, {1, 2}, {0, 0}}), indices({257, 263}, 263));
}

void add_embedding(OpTable& table) {
  const Tensor weight = random({7, 3}, 1);
  const auto look_up = [](std::optional<std::int64_t> padding_idx) {
    return [=](const TensorList& in) { return TensorList{embedding(in[0], in[1], padding_idx)}; };
  };
  table.push_back(
      {.name = "embedding",
       .samples = {sample("batch", {indices({2, 4}, 7), weight}, look_up(std::nullopt)),
                   sample("scalar", {indices({}, 7), weight}, look_up(std::nullopt)),
                   sample("no tokens", {indices({0, 4}, 7), weight}, look_up(std::nullopt)),
                   {"many repeats",
                    {indices({50, 100}, 300), random({300, 16}, 2)},
                    look_up(std::nullopt),
                    [](const TensorList& in) {
                      const Tensor rows = one_hot(in[0], 300).to(in[1].dtype());
                      return TensorList{matmul(rows, in[1])};
                    },
                    true}},
       .errors = {
           {"range",
            [=] {
              embedding(tensor({{1, 2}, {3, 7}}), weight);
            },
            "[embedding] every index must be in [0, 7); got 7 at position [1, 1]"},
           {"padding", [=] { embedding(tensor({1}), weight, 7); },
            "padding_idx must be in [-7, 6]; got 7"},
           {"weight", [=] { embedding(tensor({1}), weight[0]); },
            "[num_embeddings, embedding_dim]"},
           {"dtype", [=] { embedding(weight, weight); }, "indices must be int64 or int32"}}});
  table.push_back(
      {.name = "one_hot",
       .samples = {sample("matrix", {indices({2, 3}, 4)},
                          [](const TensorList& in) { return TensorList{one_hot(in[0], 4)}; }),
                   sample("empty", {indices({0, 3}, 4)},
                          [](const TensorList& in) { return TensorList{one_hot(in[0], 4)}; }),
                   many("two threads", {indices({257}, 263)},
                        [](const TensorList& in) { return TensorList{one_hot(in[0], 263)}; })},
       .errors = {{"range",
                   [] {
                     one_hot(tensor({0, 5}), 4);
                   },
                   "every index must be in [0, 4); got 5"},
                  {"classes", [] { one_hot(tensor({0}), 0); }, "num_classes must be positive"}},
       .differentiable = false});
}

void add_joining(OpTable& table) {
  const Tensor x = random({2, 3}, 1);
  const auto joined = [](std::int64_t dim) {
    return [dim](const TensorList& in) { return TensorList{cat(in, dim)}; };
  };
  table.push_back(
      {.name = "cat",
       .samples = {sample("rows", {random({2, 3}, 1), random({1, 3}, 2), random({3, 3}, 3)},
                          joined(0)),
                   sample("columns", {random({2, 1}, 1), random({2, 3}, 2)}, joined(-1)),
                   sample("one of no size", {random({2, 3}, 1), random({2, 0}, 2)}, joined(1)),
                   sample("alone", {random({2, 3}, 1)}, joined(0)),
                   many("two threads", {random({257, 200}, 3), random({257, 63}, 4)}, joined(1))},
       .errors = {{"none", [] { cat({}); }, "needs at least one tensor; got none"},
                  {"scalar", [] { cat({random({}, 1)}); }, "got a scalar; use stack"},
                  {"sizes",
                   [=] {
                     cat({x, random({2, 4}, 1)});
                   },
                   "must agree; got [2, 3] (tensor 0) and [2, 4] (tensor 1)"}}});
  const auto stacked = [](std::int64_t dim) {
    return [dim](const TensorList& in) { return TensorList{stack(in, dim)}; };
  };
  table.push_back({.name = "stack",
                   .samples = {sample("front", {random({2, 3}, 1), random({2, 3}, 2)}, stacked(0)),
                               sample("back", {random({2, 3}, 1), random({2, 3}, 2)}, stacked(-1)),
                               sample("scalars", {random({}, 1), random({}, 2)}, stacked(0)),
                               sample("empty", {random({0, 3}, 1), random({0, 3}, 2)}, stacked(1)),
                               many("two threads", {random({257, 131}, 3), random({257, 131}, 4)},
                                    stacked(-1))},
                   .errors = {{"shapes",
                               [=] {
                                 stack({x, random({3, 2}, 1)});
                               },
                               "all tensors must have one shape"},
                              {"none", [] { stack({}); }, "needs at least one tensor"}}});
}

}  // namespace

void add_index_ops(OpTable& table) {
  add_picking(table);
  add_placing(table);
  add_embedding(table);
  add_joining(table);
}

}  // namespace norma::test
