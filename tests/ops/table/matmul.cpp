#include "norma/ops/matmul.h"
#include "norma/core/factory.h"
#include "norma/ops/linear.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {

namespace {

OpSample matmul_sample(std::string label, const Shape& a, const Shape& b, bool large = false) {
  return {.label = std::move(label),
          .inputs = {random(a, 1), random(b, 2)},
          .run = [](const TensorList& x) { return TensorList{matmul(x[0], x[1])}; },
          .large = large};
}

OpEntry matmul_op() {
  OpEntry op{.name = "matmul"};
  op.samples = {
      matmul_sample("matrices", {3, 4}, {4, 2}),
      matmul_sample("vectors", {5}, {5}),
      matmul_sample("matrix, vector", {3, 4}, {4}),
      matmul_sample("vector, matrix", {4}, {4, 3}),
      matmul_sample("batch folded into one product", {2, 3, 4}, {4, 2}),
      matmul_sample("batch, vector", {2, 3, 4}, {4}),
      matmul_sample("vector, batch", {4}, {2, 4, 3}),
      matmul_sample("one matrix, many", {3, 2}, {2, 2, 3}),
      matmul_sample("two batch dimensions, broadcast", {2, 1, 2, 3}, {3, 3, 2}),
      matmul_sample("batch of one", {1, 2, 3}, {2, 3, 2}),
      matmul_sample("sizes of 1", {1, 1}, {1, 1}),
      matmul_sample("one row in each batch", {3, 1, 4}, {4, 2}),
      matmul_sample("no rows", {0, 4}, {4, 2}),
      matmul_sample("empty sum", {3, 0}, {0, 2}),
      matmul_sample("empty sum in a batch", {2, 3, 0}, {0, 2}),
      matmul_sample("empty batch", {0, 3, 4}, {4, 2}),
      matmul_sample("more than a block", {130, 67}, {67, 33}, true),
      matmul_sample("many small ones", {96, 17, 9}, {96, 9, 5}, true),
      {.label = "transposed views",
       .inputs = {random({4, 3}, 3), random({2, 4}, 4)},
       .run = [](const TensorList& x) { return TensorList{matmul(x[0].t(), x[1].t())}; }},
      {.label = "heads split by a transposed view",
       .inputs = {random({2, 3, 2, 2}, 5), random({2, 3, 2, 2}, 6)},
       .run =
           [](const TensorList& x) {
             const Tensor k = x[1].transpose(1, 2);
             return TensorList{matmul(x[0].transpose(1, 2), k.transpose(-2, -1))};
           }},
      {.label = "expanded operand",
       .inputs = {random({3, 1}, 7), random({4, 2}, 8)},
       .run =
           [](const TensorList& x) {
             return TensorList{matmul(x[0].expand({3, 4}), x[1])};
           }},
  };
  op.errors = {
      {"inner sizes",
       [] {
         matmul(zeros({3, 4}), zeros({3, 4}));
       },
       "must match the second to last"},
      {"vector length",
       [] {
         matmul(zeros({3, 4}), zeros({3}));
       },
       "must match the length"},
      {"scalar", [] { matmul(zeros({}), zeros({3})); }, "at least one dimension"},
      {"batches",
       [] {
         matmul(zeros({2, 3, 4}), zeros({3, 4, 5}));
       },
       "[2]"},
      {"dtypes",
       [] {
         matmul(zeros({2, 2}), zeros({2, 2}, {.dtype = float64}));
       },
       "one dtype"},
      {"bool",
       [] {
         matmul(zeros({2, 2}, {.dtype = bool_}), zeros({2, 2}, {.dtype = bool_}));
       },
       "must be numbers"},
      {"undefined", [] { matmul(Tensor(), zeros({2})); }, "undefined"},
  };
  op.thread_dependent = true;
  op.no_threads_because = "work grows faster than the elements: many small ones are enough";
  return op;
}

OpEntry mm_op() {
  OpEntry op{.name = "mm"};
  op.samples = {{.label = "matrices",
                 .inputs = {random({2, 3}, 1), random({3, 4}, 2)},
                 .run = [](const TensorList& x) { return TensorList{mm(x[0], x[1])}; }},
                {.label = "sums of nothing",
                 .inputs = {random({2, 0}, 1), random({0, 4}, 2)},
                 .run = [](const TensorList& x) { return TensorList{mm(x[0], x[1])}; }}};
  op.errors = {{"batch", [] { mm(zeros({2, 3, 4}), zeros({4, 2})); }, "must be matrices"}};
  op.thread_dependent = true;
  op.no_threads_because = "runs matmul";
  return op;
}

OpEntry bmm_op() {
  OpEntry op{.name = "bmm"};
  op.samples = {{.label = "batches",
                 .inputs = {random({2, 2, 3}, 1), random({2, 3, 2}, 2)},
                 .run = [](const TensorList& x) { return TensorList{bmm(x[0], x[1])}; }},
                {.label = "no batches",
                 .inputs = {random({0, 2, 3}, 1), random({0, 3, 2}, 2)},
                 .run = [](const TensorList& x) { return TensorList{bmm(x[0], x[1])}; }}};
  op.errors = {{"no broadcasting", [] { bmm(zeros({1, 3, 4}), zeros({2, 4, 2})); }, "[B, M, K]"}};
  op.thread_dependent = true;
  op.no_threads_because = "runs matmul";
  return op;
}

OpEntry addmm_op() {
  OpEntry op{.name = "addmm"};
  const auto run = [](const TensorList& x) {
    return TensorList{addmm(x[0], x[1], x[2], {.beta = 0.5, .alpha = -2.0})};
  };
  op.samples = {
      {.label = "full",
       .inputs = {random({2, 4}, 1), random({2, 3}, 2), random({3, 4}, 3)},
       .run = run},
      {.label = "row",
       .inputs = {random({4}, 1), random({2, 3}, 2), random({3, 4}, 3)},
       .run = run},
      {.label = "defaults, transposed",
       .inputs = {random({2, 1}, 1), random({3, 2}, 2), random({4, 3}, 3)},
       .run = [](const TensorList& x) { return TensorList{addmm(x[0], x[1].t(), x[2].t())}; }},
      {.label = "empty sum",
       .inputs = {random({2, 4}, 1), random({2, 0}, 2), random({0, 4}, 3)},
       .run = run},
  };
  op.errors = {
      {"input shape",
       [] {
         addmm(zeros({3}), zeros({2, 3}), zeros({3, 4}));
       },
       "must broadcast to"},
      {"inner sizes",
       [] {
         addmm(zeros({4}), zeros({2, 3}), zeros({2, 4}));
       },
       "[K, N]"},
  };
  op.thread_dependent = true;
  op.no_threads_because = "runs the kernel of matmul";
  return op;
}

OpSample linear_sample(std::string label, const Shape& input, const Shape& weight, bool with_bias,
                       Activation activation, bool large = false) {
  Tensor bias;
  if (with_bias) bias = random(weight.size() == 2 ? Shape{weight[0]} : Shape{}, 3);
  return {
      .label = std::move(label),
      .inputs = {random(input, 1), random(weight, 2), bias},
      .run = [activation](
                 const TensorList& x) { return TensorList{linear(x[0], x[1], x[2], activation)}; },
      .composite =
          [activation](const TensorList& x) {
            return TensorList{composite::linear(x[0], x[1], x[2], activation)};
          },
      .large = large};
}

OpEntry linear_op() {
  OpEntry op{.name = "linear"};
  op.samples = {
      linear_sample("plain", {3, 4}, {2, 4}, false, Activation::none),
      linear_sample("bias", {3, 4}, {2, 4}, true, Activation::none),
      linear_sample("relu", {3, 4}, {2, 4}, true, Activation::relu),
      linear_sample("gelu", {3, 4}, {2, 4}, true, Activation::gelu),
      linear_sample("gelu_tanh", {3, 4}, {2, 4}, true, Activation::gelu_tanh),
      linear_sample("silu", {3, 4}, {2, 4}, true, Activation::silu),
      linear_sample("gelu without bias", {2, 3, 4}, {3, 4}, false, Activation::gelu),
      linear_sample("one sample", {4}, {2, 4}, true, Activation::none),
      linear_sample("three dimensions", {2, 2, 3}, {4, 3}, true, Activation::silu),
      linear_sample("weight without out_features", {3, 4}, {4}, true, Activation::gelu),
      linear_sample("sizes of 1", {1, 1}, {1, 1}, true, Activation::none),
      linear_sample("no rows", {0, 4}, {2, 4}, true, Activation::relu),
      linear_sample("no in_features", {3, 0}, {2, 0}, true, Activation::silu),
      linear_sample("no out_features", {3, 4}, {0, 4}, true, Activation::none),
      linear_sample("many blocks of rows", {2100, 33}, {17, 33}, true, Activation::gelu, true),
      linear_sample("classifier head", {64, 128}, {2, 128}, true, Activation::none, true),
  };
  op.errors = {
      {"in_features",
       [] {
         linear(zeros({3, 5}), zeros({2, 4}));
       },
       "in_features = 4"},
      {"bias",
       [] {
         linear(zeros({3, 4}), zeros({2, 4}), zeros({3}));
       },
       "bias must be"},
      {"weight rank",
       [] {
         linear(zeros({3, 4}), zeros({2, 4, 1}));
       },
       "[out_features, in_features]"},
      {"integer",
       [] {
         linear(zeros({3, 4}, {.dtype = int64}), zeros({2, 4}));
       },
       "floating point"},
      {"dtype",
       [] {
         linear(zeros({3, 4}), zeros({2, 4}, {.dtype = float64}));
       },
       "dtype of input"},
  };
  op.thread_dependent = true;
  return op;
}

}  // namespace

void add_matmul_ops(OpTable& table) {
  table.push_back(matmul_op());
  table.push_back(mm_op());
  table.push_back(bmm_op());
  table.push_back(addmm_op());
  table.push_back(linear_op());
}

}  // namespace norma::test
