// The CUDA kernels of attention against the CPU's.
#include "cuda/kernel_cases.h"

#include <limits>

namespace norma::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Mask { none, broadcast, full };
struct Case {
  std::int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  Mask mask = Mask::none;
  bool padding = false, causal = false;
  double dropout = 0.0, softcap = 0.0;
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  bool split = false;  ///< heads inside, as they come from a projection
};
constexpr std::int64_t wide_keys = 40;

Tensor heads_of(const Case& c, std::int64_t heads, std::int64_t length, const Tensor& data,
                const Device& device) {
  const std::int64_t width = data.numel() / std::max<std::int64_t>(c.batch * heads * length, 1);
  if (!c.split) return placed(data, device).view({c.batch, heads, length, width});
  return placed(data, device, 1).view({c.batch, length, heads, width}).transpose(1, 2);
}

/// out, log-sum-exp, dq, dk, dv, of which those that are not `wanted` stay undefined.
TensorList run(const Case& c, DType dtype, const Device& device, bool wants_dq = true,
               bool wants_dk = true, bool wants_dv = true) {
  const auto input = [&](std::int64_t heads, std::int64_t length, std::int64_t width,
                         std::uint64_t seed, const Device& where) {
    return heads_of(c, heads, length, values({c.batch * heads * length * width}, dtype, seed),
                    where);
  };
  const auto result = [&](bool wanted, std::int64_t heads, std::int64_t length,
                          std::int64_t width) {
    return wanted ? heads_of(c, heads, length,
                             output({c.batch * heads * length * width}, dtype, cpu), device)
                  : Tensor();
  };
  const AttentionParams params{.scale = 1.7,
                               .softcap = c.softcap,
                               .dropout_p = c.dropout,
                               .causal = c.causal,
                               .philox = {.seed = 5, .offset = 3}};
  // Half of the scores of some queries are -inf, and all of the last one.
  Tensor mask, padding;
  if (c.mask != Mask::none) {
    const std::int64_t heads = c.mask == Mask::full ? c.heads : 1;
    mask = values({heads, c.queries, c.keys}, dtype, 6);
    mask.narrow(1, c.queries / 2, 1).narrow(2, 0, c.keys / 2).fill_(-infinity);
    mask.narrow(1, c.queries - 1, 1).fill_(-infinity);
  }
  const Shape scores{c.batch, c.heads, c.queries, c.keys};
  const auto expanded = [&](const Device& where) {
    return mask.defined() ? placed(mask, where, 1).expand(scores) : Tensor();
  };
  if (c.padding) {
    padding = full({c.batch, c.keys}, 0.0, {.dtype = bool_});
    padding.narrow(1, c.keys / 2, 1).fill_(1.0);
    // A whole tile of the last batch element: its keys hold NaN.
    if (c.keys >= wide_keys)
      padding.narrow(0, c.batch - 1, 1).narrow(1, c.keys - wide_keys, wide_keys).fill_(1.0);
  }

  TensorList results;
  // The backward on both devices is of the CPU's output: a rounding of that is not its own.
  Tensor out, lse;
  for (const Device& where : {device, cpu}) {
    out = heads_of(c, c.heads, c.queries,
                   output({c.batch * c.heads * c.queries * c.value_width}, dtype, cpu), where);
    lse = output({c.batch, c.heads, c.queries}, accumulate_of(dtype), where);
    const Tensor v = input(c.kv_heads, c.keys, c.value_width, 3, where);
    if (c.padding && c.keys >= wide_keys)
      v.narrow(0, c.batch - 1, 1)
          .narrow(2, c.keys - wide_keys, wide_keys)
          .fill_(std::numeric_limits<double>::quiet_NaN());
    backend(where).attention(input(c.heads, c.queries, c.width, 1, where),
                             input(c.kv_heads, c.keys, c.width, 2, where), v, expanded(where),
                             placed(padding, where), params, out, lse);
    if (results.empty()) results = {out, lse};
  }
  const TensorList gradients = {result(wants_dq, c.heads, c.queries, c.width),
                                result(wants_dk, c.kv_heads, c.keys, c.width),
                                result(wants_dv, c.kv_heads, c.keys, c.value_width)};
  backend(device).attention_backward(
      input(c.heads, c.queries, c.width, 1, device), input(c.kv_heads, c.keys, c.width, 2, device),
      input(c.kv_heads, c.keys, c.value_width, 3, device), expanded(device),
      placed(padding, device), params, placed(out, device), placed(lse, device),
      input(c.heads, c.queries, c.value_width, 4, device), gradients[0], gradients[1],
      gradients[2]);
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

void check_case(const Case& c, DType dtype) {
  INFO(dtype_name(dtype) << " " << c.queries << " queries, " << c.keys << " keys, widths "
                         << c.width << " and " << c.value_width << ", heads " << c.heads << "/"
                         << c.kv_heads << (c.padding ? ", padding" : "")
                         << (c.causal ? ", causal" : "") << ", mask " << static_cast<int>(c.mask)
                         << ", dropout " << c.dropout << ", cap " << c.softcap);
  check_devices([&](const Device& device) { return run(c, dtype, device); }, dtype,
                [&](std::size_t) {
                  return 4 * std::max(c.width, c.value_width) +
                         c.heads / c.kv_heads * std::max(c.queries, c.keys);
                });
}

const Case everything{.queries = 33,
                      .keys = 65,
                      .width = 9,
                      .value_width = 33,
                      .mask = Mask::full,
                      .padding = true,
                      .causal = true,
                      .dropout = 0.3,
                      .softcap = 2.0,
                      .batch = 2,
                      .heads = 4,
                      .kv_heads = 2,
                      .split = true};

}  // namespace

TEST_CASE("CUDA: attention agrees with the CPU at the edges of tiles and for all it can do") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const Case& c :
       {Case{1, 1, 1, 1}, Case{31, 33, 32, 32}, Case{32, 32, 33, 31}, Case{33, 31, 64, 65},
        Case{65, 65, 5, 3}, Case{64, 64, 128, 128}, Case{2, 3, 257, 129}, Case{3, 0, 4, 5},

        // Each of the rules by itself.
        Case{33, 65, 8, 8, Mask::broadcast}, Case{65, 33, 8, 8, Mask::full},
        Case{33, 70, 8, 8, Mask::none, true}, Case{70, 33, 8, 8, Mask::none, false, true},
        Case{33, 70, 8, 8, Mask::none, false, true},
        Case{33, 65, 8, 8, Mask::none, false, false, 0.4},
        Case{33, 65, 8, 8, Mask::none, false, false, 1.0},
        Case{33, 65, 8, 8, Mask::none, false, false, 0.0, 0.7}})
    check_case(c, float32);
  for (const DType dtype : floating_dtypes) {
    check_case(everything, dtype);
    check_case({5, 7, 40, 70}, dtype);
  }
}

TEST_CASE("CUDA: the backward of attention makes the gradients that are wanted") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  const TensorList all = run(everything, float32, cuda(0));
  for (const int which : {0, 1, 2}) {
    const TensorList one = run(everything, float32, cuda(0), which == 0, which == 1, which == 2);
    for (const int i : {0, 1, 2}) {
      const auto at = static_cast<std::size_t>(2 + i);
      REQUIRE(one[at].defined() == (i == which));
      if (i == which) CHECK(bitwise_equal(one[at], all[at]));
    }
  }
}

TEST_CASE("CUDA: attention keeps NaN and infinities of scores as the CPU does") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  const auto attend = [](const Device& device) {
    Tensor mask = zeros({1, 1, 4, 40});
    mask.narrow(2, 0, 1).narrow(3, 1, 1).fill_(std::numeric_limits<double>::quiet_NaN());
    mask.narrow(2, 1, 1).narrow(3, 39, 1).fill_(infinity);
    mask.narrow(2, 2, 1).narrow(3, 0, 36).fill_(-infinity);  // sees the second tile alone
    mask.narrow(2, 3, 1).fill_(-3e38);
    const Tensor out = placed(output({1, 1, 4, 3}, float32, cpu), device),
                 lse = output({1, 1, 4}, float32, device);
    const auto x = [&](std::int64_t rows, std::uint64_t seed) {
      return placed(values({1, 1, rows, 3}, float32, seed), device);
    };
    backend(device).attention(x(4, 1), x(40, 2), x(40, 3), placed(mask, device), Tensor(),
                              AttentionParams{}, out, lse);
    return TensorList{out, lse};
  };
  check_devices(attend, float32, [](std::size_t) { return 40; });
}

TEST_CASE("CUDA: attention repeats bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  check_repeats([](const Device& device) { return run(everything, float32, device); });
  check_repeats([](const Device& device) { return run({65, 33, 40, 70}, float32, device); });
}

}  // namespace norma::test
