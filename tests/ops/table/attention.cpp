#include <limits>

#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/attention.h"
#include "norma/ops/rope.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/op_table.h"

namespace norma::test {

namespace {

struct AttentionShape {
  std::int64_t batch = 1, heads = 2, kv_heads = 2, queries = 3, keys = 3, width = 2,
               value_width = 2;
};

using test::beside;

AttentionOptions beside(const Tensor& input, AttentionOptions options) {
  options.attn_mask = beside(input, options.attn_mask);
  options.key_padding_mask = beside(input, options.key_padding_mask);
  return options;
}

RopeTables beside(const Tensor& input, const RopeTables& tables) {
  return {beside(input, tables.cos), beside(input, tables.sin)};
}

OpSample attention_sample(std::string label, const AttentionShape& s, AttentionOptions options = {},
                          bool large = false) {
  options.enable_gqa = s.heads != s.kv_heads;
  // The same seed before each call: dropout drops the same weights in all of them.
  return {.label = std::move(label),
          .inputs = {random({s.batch, s.heads, s.queries, s.width}, 1),
                     random({s.batch, s.kv_heads, s.keys, s.width}, 2),
                     random({s.batch, s.kv_heads, s.keys, s.value_width}, 3)},
          .run =
              [options](const TensorList& x) {
                manual_seed(11);
                return TensorList{
                    scaled_dot_product_attention(x[0], x[1], x[2], beside(x[0], options))};
              },
          .composite =
              [options](const TensorList& x) {
                manual_seed(11);
                return TensorList{composite::scaled_dot_product_attention(x[0], x[1], x[2],
                                                                          beside(x[0], options))};
              },
          .large = large};
}

Tensor bools(const std::vector<int>& values, const Shape& shape) {
  return from_values(std::vector<double>(values.begin(), values.end()), shape, {.dtype = bool_});
}

OpSample learned_bias_sample() {
  const auto call = [](auto&& attention) {
    return [attention](const TensorList& x) {
      AttentionOptions options;
      options.attn_mask = x[3];
      return TensorList{attention(x[0], x[1], x[2], options)};
    };
  };
  return {.label = "mask with gradient",
          .inputs = {random({1, 2, 3, 2}, 1), random({1, 2, 3, 2}, 2), random({1, 2, 3, 2}, 3),
                     random({2, 3, 3}, 4)},
          .run = call(scaled_dot_product_attention),
          .composite = call(composite::scaled_dot_product_attention)};
}

/// Half of the mask's entries -inf, one row all of them.
Tensor float_mask_with_holes() {
  const double inf = std::numeric_limits<double>::infinity();
  return from_values(std::vector<double>{0.3, -inf, 0.1, -inf, -inf, -inf, -0.5, 0.2, -inf},
                     {3, 3});
}

std::vector<OpSample> attention_samples() {
  const Tensor two_padded = bools({0, 0, 0, 0, 0, 0, 1, 1}, {2, 4});
  const Tensor hole = bools({1, 0, 1, 0, 0, 1, 0, 1}, {2, 4});
  const Tensor all_padded = bools({1, 1, 1, 0, 0, 1}, {2, 3});
  return {
      attention_sample("plain", {}),
      attention_sample("width 3, other value width", {.width = 3, .value_width = 1}),
      attention_sample("cross attention", {.queries = 2, .keys = 5}),
      attention_sample("causal", {}, {.is_causal = true}),
      attention_sample("causal, more keys", {.queries = 2, .keys = 4}, {.is_causal = true}),
      attention_sample("causal, more queries", {.queries = 4, .keys = 2}, {.is_causal = true}),
      attention_sample("scale", {}, {.scale = -0.7}),
      attention_sample("softcap", {}, {.scale = 2.0, .softcap = 0.8}),
      attention_sample("trailing padding", {.batch = 2, .heads = 1, .kv_heads = 1, .keys = 4},
                       {.key_padding_mask = two_padded}),
      attention_sample("padding at both ends and inside",
                       {.batch = 2, .heads = 1, .kv_heads = 1, .keys = 4},
                       {.key_padding_mask = hole}),
      attention_sample("nothing but padding", {.batch = 2, .heads = 1, .kv_heads = 1},
                       {.key_padding_mask = all_padded}),
      attention_sample("bool mask", {}, {.attn_mask = bools({1, 1, 0, 0, 1, 1, 0, 0, 0}, {3, 3})}),
      attention_sample("added mask with a row of -inf", {}, {.attn_mask = float_mask_with_holes()}),
      attention_sample("mask of heads", {}, {.attn_mask = random({2, 1, 3}, 9)}),
      attention_sample("causal, mask, padding, softcap",
                       {.batch = 2, .heads = 1, .kv_heads = 1, .keys = 4},
                       {.attn_mask = random({3, 4}, 9),
                        .is_causal = true,
                        .key_padding_mask = hole,
                        .softcap = 1.5}),
      attention_sample("grouped heads", {.heads = 4, .kv_heads = 2, .queries = 2, .keys = 2}),
      attention_sample("one key head, causal", {.heads = 3, .kv_heads = 1}, {.is_causal = true}),
      attention_sample("dropout", {.keys = 5}, {.dropout_p = 0.4}),
      attention_sample("dropout, causal, softcap", {},
                       {.dropout_p = 0.3, .is_causal = true, .softcap = 1.0}),
      attention_sample("dropout of everything", {}, {.dropout_p = 1.0}),
      attention_sample(
          "sizes of 1",
          {.heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .width = 1, .value_width = 1}),
      attention_sample("no keys", {.keys = 0}),
      attention_sample("no queries", {.queries = 0}),
      attention_sample("empty batch", {.batch = 0}),
      learned_bias_sample(),
      attention_sample("blocks, causal",
                       {.batch = 2, .queries = 150, .keys = 150, .width = 17, .value_width = 17},
                       {.is_causal = true}, true),
      attention_sample(
          "blocks, dropout, groups",
          {.heads = 4, .kv_heads = 2, .queries = 140, .keys = 301, .width = 8, .value_width = 8},
          {.dropout_p = 0.2, .softcap = 3.0}, true),
  };
}

void call_attention(const Shape& q, const Shape& k, const Shape& v,
                    const AttentionOptions& options = {}) {
  scaled_dot_product_attention(zeros(q), zeros(k), zeros(v), options);
}

std::vector<OpErrorSample> attention_errors() {
  const Shape s{1, 2, 3, 4};
  return {
      {"rank",
       [] {
         call_attention({3, 4}, {3, 4}, {3, 4});
       },
       "must all be [batch, heads"},
      {"widths",
       [=] {
         call_attention(s, {1, 2, 3, 5}, s);
       },
       "one width"},
      {"lengths",
       [=] {
         call_attention(s, s, {1, 2, 4, 4});
       },
       "one length"},
      {"batch",
       [=] {
         call_attention(s, {2, 2, 3, 4}, s);
       },
       "one batch size"},
      {"groups not allowed",
       [=] {
         call_attention(s, {1, 1, 3, 4}, {1, 1, 3, 4});
       },
       ".enable_gqa"},
      {"groups do not divide",
       [] {
         call_attention({1, 3, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {.enable_gqa = true});
       },
       "multiple"},
      {"dropout", [=] { call_attention(s, s, s, {.dropout_p = 1.5}); }, "[0, 1]"},
      {"softcap", [=] { call_attention(s, s, s, {.softcap = -1.0}); }, "softcap"},
      {"mask shape",
       [=] {
         call_attention(s, s, s, {.attn_mask = zeros({2, 3})});
       },
       "broadcast"},
      {"mask dtype",
       [=] {
         call_attention(s, s, s, {.attn_mask = zeros({3, 3}, {.dtype = int64})});
       },
       "attn_mask must be bool"},
      {"padding dtype",
       [=] {
         call_attention(s, s, s, {.key_padding_mask = zeros({1, 3})});
       },
       "true = ignore"},
      {"padding shape",
       [=] {
         call_attention(s, s, s, {.key_padding_mask = zeros({3, 1}, {.dtype = bool_})});
       },
       "[batch, key length]"},
      {"integers",
       [] {
         const Tensor x = zeros({1, 1, 2, 2}, {.dtype = int64});
         scaled_dot_product_attention(x, x, x);
       },
       "floating point"},
  };
}

OpSample rope_sample(std::string label, const Shape& shape, std::int64_t rotary, bool interleaved,
                     bool large = false) {
  const RopeTables tables =
      rope_tables(shape[shape.size() - 2], rotary, 100.0, 3, {.dtype = float64});
  return {
      .label = std::move(label),
      .inputs = {random(shape, 1)},
      .run =
          [=](const TensorList& x) {
            return TensorList{apply_rope(x[0], beside(x[0], tables), {.interleaved = interleaved})};
          },
      .composite =
          [=](const TensorList& x) {
            return TensorList{composite::apply_rope(x[0], beside(x[0], tables.cos),
                                                    beside(x[0], tables.sin),
                                                    {.interleaved = interleaved})};
          },
      .large = large};
}

OpEntry rope_op() {
  OpEntry op{.name = "apply_rope"};
  op.samples = {
      rope_sample("halves", {2, 2, 3, 4}, 4, false),
      rope_sample("neighbours", {2, 2, 3, 4}, 4, true),
      rope_sample("part of the width", {2, 3, 5}, 2, false),
      rope_sample("part of the width, neighbours", {2, 3, 7}, 4, true),
      rope_sample("matrix", {3, 2}, 2, false),
      rope_sample("five dimensions", {2, 1, 2, 3, 2}, 2, false),
      rope_sample("no positions", {2, 2, 0, 4}, 4, false),
      rope_sample("two threads", {2, 3, 257, 48}, 48, false, true),
      rope_sample("two threads, neighbours", {2, 3, 257, 48}, 32, true, true),
  };
  const auto call = [](const Shape& shape, std::int64_t length, std::int64_t rotary) {
    return [=] { apply_rope(zeros(shape), rope_tables(length, rotary)); };
  };
  op.errors = {
      {"length", call({2, 3, 4}, 4, 4), "one row for each position"},
      {"width", call({2, 3, 4}, 3, 6), "at most head_dim"},
      {"rank", call({4}, 1, 4), "[..., length, head_dim]"},
      {"odd", [] { rope_tables(3, 5); }, "even"},
      {"base", [] { rope_tables(3, 4, -1.0); }, "base"},
      {"offset", [] { rope_tables(3, 4, 10000.0, -1); }, "negative"},
      {"learned tables",
       [] {
         const RopeTables tables = rope_tables(3, 4);
         tables.cos.requires_grad_();
         apply_rope(zeros({3, 4}), tables);
       },
       "constants"},
  };
  return op;
}

}  // namespace

void add_attention_ops(OpTable& table) {
  OpEntry attention{.name = "scaled_dot_product_attention"};
  attention.samples = attention_samples();
  attention.errors = attention_errors();
  attention.thread_dependent = true;
  attention.no_threads_because = "work grows with the square of the length: blocks are enough";
  table.push_back(std::move(attention));
  table.push_back(rope_op());
}

}  // namespace norma::test
