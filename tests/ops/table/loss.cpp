#include "norma/ops/loss.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/op_table.h"

namespace norma::test {

namespace {

constexpr const char* names[] = {"none", "mean", "sum"};

Tensor classes(const std::vector<std::int64_t>& values, const Shape& shape) {
  return from_values(values, shape);
}

/// 65 of 1023 classes.
Tensor many_classes() {
  std::vector<std::int64_t> values(65);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(i * 37 % 1023);
  return classes(values, {65});
}

OpEntry cross_entropy_entry() {
  OpEntry entry{.name = "cross_entropy"};
  const auto add = [&](const std::string& label, const Tensor& logits, const Tensor& target,
                       const Tensor& weight, const CrossEntropyOptions& options,
                       bool large = false) {
    // Class weights have the dtype of the logits, and no gradient.
    const auto with_weight = [weight, options](const Tensor& input) {
      CrossEntropyOptions all = options;
      if (weight.defined()) all.weight = beside(input, weight).to(input.dtype());
      return all;
    };
    entry.samples.push_back({label,
                             {logits, target},
                             [=](const TensorList& in) {
                               return TensorList{cross_entropy(in[0], in[1], with_weight(in[0]))};
                             },
                             [=](const TensorList& in) {
                               return TensorList{
                                   composite::cross_entropy(in[0], in[1], with_weight(in[0]))};
                             },
                             large});
  };
  const Tensor logits = random({4, 5}, 1, -3.0, 3.0);
  const Tensor target = classes({1, 4, 0, 1}, {4});
  const Tensor some_ignored = classes({1, -100, 0, -100}, {4});
  const Tensor weight = random({5}, 2, 0.5, 2.0);
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const std::string name = names[static_cast<int>(reduction)];
    add(name, logits, target, {}, {.reduction = reduction});
    add(name + ", weights, smoothing, ignored rows", logits, some_ignored, weight,
        {.label_smoothing = 0.1, .reduction = reduction});
  }
  add("smoothing 1", logits, target, {}, {.label_smoothing = 1.0});
  add("ignore_index 1", logits, target, weight, {.ignore_index = 1});
  add("one sample", random({5}, 3), classes({3}, {}), {}, {});
  add("images", random({2, 3, 2, 2}, 4), classes({0, 2, 1, 1, 2, 0, 0, 1}, {2, 2, 2}), {},
      {.label_smoothing = 0.2, .reduction = Reduction::none});
  add("empty", random({0, 5}, 5), classes({}, {0}), {}, {.reduction = Reduction::sum});
  add("one class", random({3, 1}, 6), classes({0, 0, 0}, {3}), {}, {});
  add("wide rows", random({65, 1023}, 7, -5.0, 5.0), many_classes(), {}, {.label_smoothing = 0.1},
      true);

  const auto call = [](const Tensor& x, const Tensor& t, const CrossEntropyOptions& options = {}) {
    return [=] { cross_entropy(x, t, options); };
  };
  const Tensor x = ones({2, 3});
  entry.errors = {
      {"too large", call(x, classes({0, 7}, {2})), "in [0, 3) or ignore_index = -100; got 7"},
      {"negative", call(x, classes({-1, 0}, {2})), "got -1"},
      {"target dtype", call(x, ones({2})), "int64; got float32"},
      {"target shape", call(x, classes({0}, {1})), "without its class dimension; got [1]"},
      {"smoothing", call(x, classes({0, 0}, {2}), {.label_smoothing = 1.5}), "got 1.5"},
      {"weight", call(x, classes({0, 0}, {2}), {.weight = ones({2})}), "3 classes; got shape [2]"}};
  return entry;
}

OpEntry nll_entry() {
  OpEntry entry{.name = "nll_loss"};
  const Tensor input = random({4, 5}, 11, -3.0, -0.1);
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum})
    entry.samples.push_back({names[static_cast<int>(reduction)],
                             {input, classes({1, -100, 0, 4}, {4})},
                             [=](const TensorList& in) {
                               return TensorList{nll_loss(in[0], in[1], {.reduction = reduction})};
                             }});
  entry.samples.push_back(
      {"empty", {random({0, 5}, 13), classes({}, {0})}, [](const TensorList& in) {
         return TensorList{nll_loss(in[0], in[1], {.reduction = Reduction::sum})};
       }});
  entry.samples.push_back(
      {.label = "wide rows",
       .inputs = {random({65, 1023}, 12, -3.0, -0.1), many_classes()},
       .run = [](const TensorList& in) { return TensorList{nll_loss(in[0], in[1])}; },
       .large = true});
  entry.errors = {{"class", [] { nll_loss(ones({2, 3}), classes({0, 3}, {2})); }, "got 3"}};
  return entry;
}

OpEntry bce_entry() {
  OpEntry entry{.name = "binary_cross_entropy_with_logits"};
  const Tensor x = random({4, 3}, 21, -4.0, 4.0);
  const Tensor y = random({4, 3}, 22, 0.0, 1.0);
  const Tensor pos = random({3}, 23, 0.5, 3.0);
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const std::string name = names[static_cast<int>(reduction)];
    entry.samples.push_back({name, {x, y}, [=](const TensorList& in) {
                               return TensorList{binary_cross_entropy_with_logits(
                                   in[0], in[1], {.reduction = reduction})};
                             }});
    entry.samples.push_back({name + ", pos_weight", {x, y, pos}, [=](const TensorList& in) {
                               return TensorList{binary_cross_entropy_with_logits(
                                   in[0], in[1], {.pos_weight = in[2], .reduction = reduction})};
                             }});
  }
  entry.samples.push_back(
      {"empty", {random({0, 3}, 27), random({0, 3}, 28)}, [](const TensorList& in) {
         return TensorList{
             binary_cross_entropy_with_logits(in[0], in[1], {.reduction = Reduction::sum})};
       }});
  entry.samples.push_back(
      {.label = "two threads",
       .inputs = {random({257, 263}, 24, -4.0, 4.0), random({257, 263}, 25, 0.0, 1.0),
                  random({263}, 26, 0.5, 3.0)},
       .run =
           [](const TensorList& in) {
             return TensorList{
                 binary_cross_entropy_with_logits(in[0], in[1], {.pos_weight = in[2]})};
           },
       .large = true});
  entry.errors = {
      {"shapes",
       [] {
         binary_cross_entropy_with_logits(ones({2, 1}), ones({2}));
       },
       "one shape; got [2, 1] and [2]"},
      {"pos_weight",
       [] {
         binary_cross_entropy_with_logits(ones({2, 3}), ones({2, 3}), {.pos_weight = ones({2})});
       },
       "must broadcast"}};
  return entry;
}

OpEntry mse_entry() {
  OpEntry entry{.name = "mse_loss"};
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum})
    entry.samples.push_back({names[static_cast<int>(reduction)],
                             {random({4, 3}, 31), random({4, 3}, 32)},
                             [=](const TensorList& in) {
                               return TensorList{mse_loss(in[0], in[1], {.reduction = reduction})};
                             }});
  entry.samples.push_back(
      {"empty", {random({0, 3}, 35), random({0, 3}, 36)}, [](const TensorList& in) {
         return TensorList{mse_loss(in[0], in[1], {.reduction = Reduction::sum})};
       }});
  entry.samples.push_back(
      {.label = "two threads",
       .inputs = {random({257, 263}, 33), random({257, 263}, 34)},
       .run = [](const TensorList& in) { return TensorList{mse_loss(in[0], in[1])}; },
       .large = true});
  entry.errors = {{"shapes", [] { mse_loss(ones({2, 1}), ones({2})); }, "one shape"}};
  return entry;
}

}  // namespace

void add_loss_ops(OpTable& table) {
  table.push_back(cross_entropy_entry());
  table.push_back(nll_entry());
  table.push_back(bce_entry());
  table.push_back(mse_entry());
}

}  // namespace norma::test
