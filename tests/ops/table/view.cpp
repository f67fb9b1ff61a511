#include "norma/ops/view.h"
#include "norma/core/factory.h"
#include "norma/ops/cast.h"
#include "support/compare.h"
#include "support/op_table.h"

#include <algorithm>
#include <limits>

namespace norma::test {
namespace {

/// A sample of an operation with one input.
template <class F>
OpSample unary(const char* label, const Shape& shape, const F& f) {
  return {label, {random(shape, 11)}, [f](const TensorList& in) { return TensorList{f(in[0])}; }};
}

/// The same with elements for two threads.
template <class F>
OpSample many(const char* label, const F& f) {
  OpSample sample = unary(label, {257, 263}, f);
  sample.large = true;
  return sample;
}

/// A sample of an operation with one input and several results.
template <class F>
OpSample pieces(const char* label, const Shape& shape, const F& f) {
  return {label, {random(shape, 12)}, [f](const TensorList& in) { return f(in[0]); }};
}

/// Its square is 2^64, which wraps to 0.
constexpr std::int64_t huge = std::int64_t{1} << 32;

void add_shape_ops(OpTable& table) {
  const Tensor x = random({2, 3}, 1);
  const Tensor empty_rows = zeros({2, 0});
  table.push_back({.name = "alias",
                   .samples = {unary("matrix", {2, 3}, [](auto& t) { return alias(t); }),
                               unary("empty", {0, 3}, [](auto& t) { return alias(t); })},
                   .errors = {},
                   .no_errors_because = "takes any tensor",
                   .no_golden_because = "PyTorch has none"});
  table.push_back({.name = "view",
                   // contiguous() first: the suites also pass inputs that no view can cut.
                   .samples = {unary("merge", {2, 3, 4},
                                     [](auto& t) {
                                       return view(contiguous(t), {6, 4});
                                     }),
                               unary("inferred", {2, 6},
                                     [](auto& t) {
                                       return view(contiguous(t), {3, -1});
                                     }),
                               unary("scalar", {1}, [](auto& t) { return view(t, {}); }),
                               unary("empty", {0, 3},
                                     [](auto& t) {
                                       return view(contiguous(t), {2, 0});
                                     }),
                               unary("cut a strided dimension", {4, 6},
                                     [](auto& t) {
                                       return view(contiguous(t).t(), {2, 3, 4});
                                     })},
                   .errors = {{"count", [x] { view(x, {4}); },
                               "must hold all 6 elements of shape [2, 3]; got [4]"},
                              {"two unknown",
                               [x] {
                                 view(x, {-1, -1});
                               },
                               "only one size can be inferred"},
                              {"indivisible",
                               [x] {
                                 view(x, {4, -1});
                               },
                               "must divide evenly"},
                              {"negative",
                               [x] {
                                 view(x, {-2, 3});
                               },
                               "sizes must be at least 0"},
                              {"strides", [x] { view(x.t(), {6}); }, "use reshape"},
                              {"past the integers",
                               [empty_rows] {
                                 view(empty_rows, {huge, huge});
                               },
                               "fewer than 2^63 elements; got shape [4294967296, 4294967296]"},
                              {"inferred past the integers",
                               [x] {
                                 view(x, {huge, huge, -1});
                               },
                               "fewer than 2^63"}}});
  table.push_back(
      {.name = "reshape",
       .samples = {unary("plain", {2, 3, 2},
                         [](auto& t) {
                           return reshape(t, {4, 3});
                         }),
                   unary("of a transpose", {2, 3}, [](auto& t) { return reshape(t.t(), {6}); }),
                   unary("to a scalar", {1, 1}, [](auto& t) { return reshape(t, {}); }),
                   unary("empty", {0, 3},
                         [](auto& t) {
                           return reshape(t, {3, 0, 2});
                         })},
       .errors = {{"count", [x] { reshape(x, {7}); }, "[reshape] the new shape must hold all 6"}}});
  table.push_back(
      {.name = "flatten",
       .samples = {unary("all", {2, 3, 2}, [](auto& t) { return flatten(t); }),
                   unary("middle", {2, 3, 2, 2}, [](auto& t) { return flatten(t, 1, -2); }),
                   unary("scalar", {}, [](auto& t) { return flatten(t); }),
                   unary("empty", {2, 0, 3}, [](auto& t) { return flatten(t, 1); })},
       .errors = {{"order", [x] { flatten(x, 1, 0); }, "start_dim must not come after end_dim"},
                  {"dim", [x] { flatten(x, 2); }, "dimension must be in [-2, 1]; got 2"}}});
  table.push_back(
      {.name = "squeeze",
       .samples = {unary("one", {2, 1, 3}, [](auto& t) { return squeeze(t, 1); }),
                   unary("nothing to do", {2, 3}, [](auto& t) { return squeeze(t, -1); }),
                   unary("all", {1, 3, 1}, [](auto& t) { return squeeze(t); }),
                   unary("empty", {1, 0}, [](auto& t) { return squeeze(t); })},
       .errors = {{"dim", [x] { squeeze(x, 2); }, "[squeeze] dimension must be in"}}});
  table.push_back({.name = "unsqueeze",
                   .samples = {unary("front", {2, 3}, [](auto& t) { return unsqueeze(t, 0); }),
                               unary("back", {2, 3}, [](auto& t) { return unsqueeze(t, -1); }),
                               unary("scalar", {}, [](auto& t) { return unsqueeze(t, 0); }),
                               unary("empty", {0, 3}, [](auto& t) { return unsqueeze(t, 1); })},
                   .errors = {{"dim", [x] { unsqueeze(x, 3); },
                               "[unsqueeze] dimension must be in [-3, 2]; got 3"}}});
}

void add_order_ops(OpTable& table) {
  const Tensor x = random({2, 3}, 1);
  table.push_back(
      {.name = "transpose",
       .samples = {unary("matrix", {2, 3}, [](auto& t) { return transpose(t, 0, 1); }),
                   unary("4-D", {2, 1, 3, 2}, [](auto& t) { return transpose(t, -3, -1); }),
                   unary("scalar", {}, [](auto& t) { return transpose(t, 0, -1); }),
                   unary("empty", {0, 3}, [](auto& t) { return transpose(t, 0, 1); })},
       .errors = {{"dim", [x] { transpose(x, 0, 2); }, "[transpose] dimension must be in"}}});
  table.push_back({.name = "t",
                   .samples = {unary("matrix", {2, 3}, [](auto& v) { return t(v); }),
                               unary("vector", {3}, [](auto& v) { return t(v); }),
                               unary("empty", {2, 0}, [](auto& v) { return t(v); })},
                   .errors = {{"3-D",
                               [] {
                                 t(random({1, 2, 3}, 1));
                               },
                               "at most 2 dimensions"}}});
  table.push_back(
      {.name = "permute",
       .samples = {unary("3-D", {2, 3, 4},
                         [](auto& t) {
                           return permute(t, {2, 0, 1});
                         }),
                   unary("negative", {2, 3},
                         [](auto& t) {
                           return permute(t, {-1, 0});
                         }),
                   unary("empty", {2, 0, 4},
                         [](auto& t) {
                           return permute(t, {2, 0, 1});
                         })},
       .errors = {{"twice",
                   [x] {
                     permute(x, {0, 0});
                   },
                   "must name each of the 2 dimensions once"},
                  {"count", [x] { permute(x, {0}); }, "must name each of the 2 dimensions once"}}});
  table.push_back(
      {.name = "expand",
       .samples = {unary("sizes of 1", {2, 1, 3},
                         [](auto& t) {
                           return expand(t, {2, 4, 3});
                         }),
                   unary("new in front", {3},
                         [](auto& t) {
                           return expand(t, {2, 2, -1});
                         }),
                   unary("scalar", {},
                         [](auto& t) {
                           return expand(t, {2, 3});
                         }),
                   unary("empty", {1, 0},
                         [](auto& t) {
                           return expand(t, {4, 0});
                         }),
                   unary("to nothing", {1, 3},
                         [](auto& t) {
                           return expand(t, {0, 3});
                         })},
       .errors = {{"size",
                   [x] {
                     expand(x, {2, 4});
                   },
                   "only sizes of 1"},
                  {"rank", [x] { expand(x, {3}); }, "needs a size for each of the 2 dimensions"},
                  {"past the integers",
                   [] {
                     expand(zeros({1, 1}), {huge, huge});
                   },
                   "[expand] a tensor must have fewer than 2^63"}}});
  table.push_back(
      {.name = "contiguous",
       .samples = {unary("of a transpose", {2, 3}, [](auto& t) { return contiguous(t.t()); }),
                   unary("empty", {0, 3}, [](auto& t) { return contiguous(t.t()); }),
                   many("of a large transpose", [](auto& t) { return contiguous(t.t()); }),
                   many("of large pieces",
                        [](auto& t) { return contiguous(narrow(t, 1, 1, 256)); })},
       .errors = {},
       .no_errors_because = "takes any tensor"});
  table.push_back({.name = "clone",
                   .samples = {unary("matrix", {2, 3}, [](auto& t) { return clone(t); }),
                               unary("empty", {0, 3}, [](auto& t) { return clone(t); }),
                               many("many", [](auto& t) { return clone(t); }),
                               unary("of a transpose", {2, 3, 2},
                                     [](auto& t) { return clone(transpose(t, 0, 2)); })},
                   .errors = {},
                   .no_errors_because = "takes any tensor"});
  table.push_back(
      {.name = "to",
       .samples = {unary("float32", {2, 3}, [](auto& t) { return to(to(t, float64), t.dtype()); }),
                   unary("device", {2, 3}, [](auto& t) { return to(t, t.device()); }),
                   unary("empty", {0, 3}, [](auto& t) { return to(to(t, float64), t.dtype()); }),
                   many("many", [](auto& t) { return to(to(t, float64), t.dtype()); })},
       .errors = {{"no such device", [x] { to(x, cuda(99)); }, "cuda"}},
       .no_golden_because = "exact: cast_test.cpp"});
}

void add_piece_ops(OpTable& table) {
  const Tensor x = random({2, 3}, 1);
  const Tensor scalar = random({}, 1);
  table.push_back(
      {.name = "narrow",
       .samples = {unary("middle", {5, 2}, [](auto& t) { return narrow(t, 0, 1, 3); }),
                   unary("from the end", {2, 4}, [](auto& t) { return narrow(t, -1, -2, 2); }),
                   unary("nothing", {2, 4}, [](auto& t) { return narrow(t, 1, 4, 0); }),
                   unary("empty", {0, 4}, [](auto& t) { return narrow(t, 1, 1, 2); })},
       .errors = {{"length", [x] { narrow(x, 1, 2, 2); }, "got start 2, length 2"},
                  {"length past the integers",
                   [x] { narrow(x, 1, 1, std::numeric_limits<std::int64_t>::max()); },
                   "must stay within dimension 1"},
                  {"start", [x] { narrow(x, 1, -4, 1); }, "must stay within dimension 1 of size 3"},
                  {"scalar", [scalar] { narrow(scalar, 0, 0, 1); }, "got a scalar"}}});
  table.push_back({.name = "select",
                   .samples = {unary("first", {3, 2}, [](auto& t) { return select(t, 0, 0); }),
                               unary("last", {2, 3, 2}, [](auto& t) { return select(t, 1, -1); }),
                               unary("to a scalar", {3}, [](auto& t) { return t[1]; }),
                               unary("empty", {2, 0}, [](auto& t) { return select(t, 0, 1); })},
                   .errors = {{"index", [x] { select(x, 1, 3); },
                               "index must be in [-3, 2] for dimension 1; got 3"}}});
  table.push_back(
      {.name = "zero_embed",
       .samples = {unary("middle", {2, 3}, [](auto& t) { return zero_embed(t, 1, 2, 6); }),
                   unary("empty", {2, 0}, [](auto& t) { return zero_embed(t, 1, 1, 3); }),
                   many("many", [](auto& t) { return zero_embed(t, 1, 2, 300); })},
       .errors = {{"room", [x] { zero_embed(x, 1, 2, 4); }, "got 3 slices from 2 in 4"}},
       .no_golden_because = "PyTorch has none"});
  table.push_back({.name = "split",
                   .samples = {pieces("equal", {4, 2}, [](auto& t) { return split(t, 2); }),
                               pieces("rest", {2, 5}, [](auto& t) { return split(t, 2, 1); }),
                               pieces("empty", {0, 4}, [](auto& t) { return split(t, 2, 1); }),
                               pieces("sizes", {2, 6},
                                      [](auto& t) {
                                        return split(t, {1, 0, 5}, -1);
                                      })},
                   .errors = {{"sum",
                               [x] {
                                 split(x, {1, 1}, 1);
                               },
                               "must add up to 3"},
                              {"sum past the integers",
                               [x] {
                                 constexpr auto most = std::numeric_limits<std::int64_t>::max();
                                 split(x, {most, most, 5}, 1);
                               },
                               "must add up to 3"},
                              {"zero", [x] { split(x, 0); }, "split_size must be positive"}}});
  table.push_back(
      {.name = "chunk",
       .samples = {pieces("three of seven", {7, 2}, [](auto& t) { return chunk(t, 3); }),
                   pieces("more than there are", {2, 2}, [](auto& t) { return chunk(t, 5, 1); }),
                   pieces("empty", {0, 4}, [](auto& t) { return chunk(t, 2, 1); }),
                   pieces(
                       "far more", {2, 2},
                       [](auto& t) { return chunk(t, std::numeric_limits<std::int64_t>::max()); })},
       .errors = {{"count", [x] { chunk(x, 0); }, "chunks must be positive"}}});
  table.push_back({.name = "unbind",
                   .samples = {pieces("rows", {3, 2}, [](auto& t) { return unbind(t); }),
                               pieces("columns", {2, 3}, [](auto& t) { return unbind(t, -1); }),
                               pieces("empty", {0, 2}, [](auto& t) { return unbind(t, 1); })},
                   .errors = {{"scalar", [scalar] { unbind(scalar); }, "got a scalar"}}});
}

}  // namespace

void add_view_ops(OpTable& table) {
  OpTable views;
  add_shape_ops(views);
  add_order_ops(views);
  add_piece_ops(views);
  for (OpEntry& entry : views) {
    const auto is_large = [](const OpSample& sample) { return sample.large; };
    if (std::none_of(entry.samples.begin(), entry.samples.end(), is_large))
      entry.no_threads_because = "a view moves no elements";
    table.push_back(std::move(entry));
  }
}

}  // namespace norma::test
